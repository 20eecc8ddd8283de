"""The anchor's rate as a function of what a network could see, for networks and for reference policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.distributions.checks import refuse
from queue_env.kernel import layout
from queue_env.kernel.anchor import margin
from queue_env.network import NAMES, Network, NetworkPolicy
from queue_env.settings import Setting

__all__ = ["AnchorLaw", "anchor_law"]

FloatArray: TypeAlias = NDArray[np.float64]

_ALLOWED = "a learned policy, dynasplit, backlog-split or split: those in which the anchor has a rate of its own"


@dataclass(frozen=True, eq=False)
class AnchorLaw:
    """The anchor's rate while more jobs than servers are present.

    Attributes:
        label: of the policy.
        features: what the rate depends on, among `queue_env.network.FEATURES`.
        of: the rates, shape (B,), for values of these features, shape (B, features).
        network: if it is one.
    """

    label: str
    features: tuple[str, ...]
    of: Callable[[FloatArray], FloatArray]
    network: Network | None = None

    def rates(self, features: FloatArray) -> FloatArray:
        """Return the rates, shape (B,), for values of all of `FEATURES`, shape (B, features)."""
        return self.of(features[:, [NAMES.index(name) for name in self.features]])


def anchor_law(setting: Setting, unit: float) -> AnchorLaw:
    """Return the law of a policy's anchor.

    Args:
        setting: the policy on a system.
        unit: mean size.

    Raises:
        ValueError: the policy has no anchor, or one with a server of its own whatever else is there.
    """
    label, user = setting.policy.label, setting.policy.user
    if isinstance(user, NetworkPolicy):
        return AnchorLaw(label, user.network.features, user.network.rates, user.network)
    kind = None if user is not None else setting.kernel.get("rate_kind")
    if kind == layout.DYNASPLIT:
        return AnchorLaw(label, ("anchor_size",), lambda x: _by_margin(setting, unit * np.expm1(x[:, 0])))
    if kind == layout.BACKLOG:
        b, kappa = setting.parameters.tolist()
        seen = ("anchor_size", "others_work")
        return AnchorLaw(label, seen, lambda x: _by_backlog(unit * np.expm1(x), b, kappa))
    if kind == layout.SPLIT:
        return AnchorLaw(label, (), lambda x: np.ones(len(x)))
    refuse("explain", "policy", _ALLOWED, label)


def _by_margin(setting: Setting, sizes: FloatArray) -> FloatArray:
    kept: Any = getattr(margin, "py_func")  # noqa: B009, numba's, which its stubs do not know
    kind, shape = setting.parameters.tolist()
    spare = setting.spare
    return np.array([min(1.0, spare - kept(kind, shape, size, spare)) for size in sizes.tolist()])


def _by_backlog(seen: FloatArray, b: float, kappa: float) -> FloatArray:
    return np.where(seen[:, 1] <= b * seen[:, 0] ** kappa, 1.0, 0.0)
