"""A network as an agent: the anchor's rate from what the environment shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from baselines.agent import Floats
from baselines.dynasplit import DynaSplit
from queue_env.distributions.checks import refuse
from queue_env.network import NetworkPolicy
from queue_env.rules import OnePolicy, Policy, parse_policy
from queue_env.settings import Setting, set_up

if TYPE_CHECKING:
    from queue_env.observation import Shown

__all__ = ["NetworkAgent", "network_inputs", "rows_of"]


class NetworkAgent(DynaSplit):
    """Serves the anchor at the rate that a network gives, and the others as `DynaSplit` does.

    The "dict" view shows all that the network sees to full digits. In the views of float32 the others' work, where not
    all of them are shown, is the small difference of large numbers beside a very large anchor: it is then known to
    about a millionth of the anchor's remaining size only.
    """

    name = "learned"
    expressed_as = ("allocation", "anchor")
    only_because = "the environment's rules are reference policies"

    def anchor_rate(self, shown: Shown) -> Floats:
        """Return what the network gives, or one while N <= n."""
        crowded = shown.number > self.servers
        rates = np.ones(len(crowded))
        if crowded.any():
            columns = network_inputs(rows_of(shown, crowded), self.servers, self.setting.spare, self.config.unit)
            rates[crowded] = self._network.rates(np.column_stack([columns[name] for name in self._network.features]))
        return rates

    # ---- what it is made of ----------------------------------------------------------------------

    def _resolve(self, policy: OnePolicy | None) -> Setting:
        parsed = Policy(self.name) if policy is None else parse_policy(policy)
        if not isinstance(parsed.user, NetworkPolicy):
            refuse(
                "NetworkAgent", "policy", "learned:FILE.json, or a learned policy that comes with the package", policy
            )
        self._network = parsed.user.network
        return set_up(parsed, self.config.servers, self.config.spare, self.config.scenario.sizes)

    def _check(self) -> None:
        super()._check()
        least = 2 * self.servers + 3
        if self.layout.kind != "compact" and self.layout.slots < least:
            allowed = (
                f"at least {least}, for the table to hold the anchor and the {self.servers} smallest of the others"
            )
            refuse(self.label, "slots", allowed, self.layout.slots)


def network_inputs(shown: Shown, servers: int, spare: float, unit: float) -> dict[str, Floats]:
    """Return all features of `queue_env.network.FEATURES`, each of shape (B,).

    Args:
        shown: a batch of B observations, each with more jobs than servers.
        servers: number of servers n.
        spare: n(1-ρ).
        unit: mean size.
    """
    assert shown.anchor is not None
    assert shown.size is not None
    assert shown.remaining is not None
    assert shown.work is not None
    anchor = np.argmax(shown.anchor, axis=1)
    others = shown.present & ~shown.anchor
    place = np.cumsum(others, axis=1)
    following, first = np.argmax(place == servers, axis=1), np.argmax(place == 1, axis=1)
    anchors = _pick(shown.remaining, anchor)
    shown_work = np.where(others, shown.remaining, 0.0).sum(axis=1)
    others_work = np.where(place[:, -1] + 1 >= shown.number, shown_work, shown.work - anchors)
    like_work = {
        "anchor_size": _pick(shown.size, anchor),
        "anchor_remaining": anchors,
        "anchor_age": _pick(shown.age, anchor),
        "next_remaining": _pick(shown.remaining, following),
        "next_age": _pick(shown.age, following),
        "least_remaining": _pick(shown.remaining, first),
        "others_work": np.maximum(others_work, shown_work),
    }
    count, all_spare = np.full(len(anchor), float(servers)), np.full(len(anchor), spare)
    like_number = {"crowd": shown.number / servers, "servers": count}
    return (
        {name: np.log1p(values / unit) for name, values in like_work.items()}
        | {name: np.log(values) for name, values in like_number.items()}
        | {"load": 1.0 - all_spare / count, "spare": all_spare}
    )


def rows_of(shown: Shown, which: NDArray[np.bool_]) -> Shown:
    """Return those of a batch of observations."""
    parts: dict[str, Any] = {name: None if part is None else part[which] for name, part in shown._asdict().items()}
    return shown._replace(**parts)


def _pick(rows: Floats, index: NDArray[Any]) -> Floats:
    return np.asarray(np.take_along_axis(rows, index[:, None], axis=1)[:, 0])
