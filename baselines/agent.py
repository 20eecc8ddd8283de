"""What the agents share: policies as maps from observations to actions, with the protocol of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from baselines.wrapping import unwrap
from queue_env.distributions.checks import refuse
from queue_env.rules import OnePolicy, parse_policy
from queue_env.settings import Setting, set_up

if TYPE_CHECKING:
    from queue_env.observation import Observation, Shown

__all__ = ["Agent", "Floats", "RankingAgent", "places"]

Floats = NDArray[np.float64]


class Agent:
    """A reference policy that acts through an environment's observations and actions, and knows nothing else.

    It keeps no memory, so one agent serves any number of environments of the same arguments, in any order.

    Args:
        env: a `QueueEnv` or `QueueVectorEnv`, wrapped or not, or Stable-Baselines3's view of one; it is only asked for
            its arguments.
        policy: as `queue_env.rules.parse_policy` reads it; by default the agent's policy with its default parameters.

    Attributes:
        name: of the policy.
        expressed_as: the kinds of action by which it can act.
        only_because: why it can act by these only, where it is not for the want of a way to say it.
        needs_sizes: whether it must know sizes.
        idles: whether it leaves servers idle on purpose.

    Raises:
        ValueError: the environment's actions cannot express the policy, or its observations do not show what it needs,
            or a wrapper has changed either.
    """

    name: ClassVar[str]
    expressed_as: ClassVar[tuple[str, ...]] = ("rule",)
    only_because: ClassVar[str] = ""
    needs_sizes: ClassVar[bool] = False
    idles: ClassVar[bool] = False

    def __init__(self, env: Any, policy: OnePolicy | None = None) -> None:
        inner = unwrap(env)
        self.config, self.layout, self.actions = inner.config, inner.layout, inner.actions
        self.kind: str = self.actions.kind
        self.servers: int = self.layout.servers
        self.setting = self._resolve(policy)
        self._check()
        self._rule = self._find_rule() if self.kind == "rule" else -1

    @property
    def label(self) -> str:
        """The policy as it was given."""
        return self.setting.policy.label

    def predict(
        self, observation: Observation, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Return the action for an observation, or the actions for a batch of them.

        Args:
            observation: as the environment gives it; a batch has one axis more, in front.
            state: handed back as it is, for the agent has no memory.
            episode_start: not used.
            deterministic: not used; the agent always is.

        Returns:
            The action and `state`. Rates, priorities and thresholds are float64, shape (entries,) or (B, entries),
            within the bounds of the action space. A rule is an int, or int64 of shape (B,).

        Raises:
            ValueError: the observation is none of the environment's, or more jobs are present than the table shows and
                the policy has to see them.
        """
        batched = self.layout.batched(observation)
        if self.kind == "rule":
            first = observation["number"] if isinstance(observation, Mapping) else observation
            return (np.full(len(first), self._rule, np.int64) if batched else self._rule), state
        shown = self.layout.read(observation)
        if self._needs_all_jobs():
            self._check_all_shown(shown)
        action = self._act(shown)
        return (action if batched else action[0]), state

    # ---- what a policy defines -------------------------------------------------------------------

    def rates(self, shown: Shown) -> Floats:
        """Return the rate of each row, shape (B, rows), for the action "allocation"."""
        raise NotImplementedError

    def priorities(self, shown: Shown) -> Floats:
        """Return the priority of each row in [-1, 1], shape (B, rows), for the action "priority"."""
        raise NotImplementedError

    def anchor_rate(self, shown: Shown) -> Floats:
        """Return the anchor's rate, shape (B,), for the action "anchor"."""
        raise NotImplementedError

    def share_and_order(self) -> tuple[float, float]:
        """Return the share of the jobs that have priority, and the order within the classes, for "threshold"."""
        raise NotImplementedError

    def _needs_all_jobs(self) -> bool:
        """Whether it may need a row that the table does not hold when more jobs than rows are present."""
        return False

    # ---- what they share -------------------------------------------------------------------------

    def _act(self, shown: Shown) -> Floats:
        if self.kind == "priority":
            return self.priorities(shown)
        if self.kind == "threshold":
            rates = np.tile(self.share_and_order(), (len(shown.number), 1))
        else:
            rates = self.rates(shown) if self.kind == "allocation" else self.anchor_rate(shown)[:, None]
        return 2.0 * rates - 1.0 if self.actions.symmetric else rates

    def _resolve(self, policy: OnePolicy | None) -> Setting:
        parsed = parse_policy(self.name if policy is None else policy)
        if parsed.name != self.name or parsed.user is not None:
            refuse(type(self).__name__, "policy", f"{self.name!r}, with parameters or without", policy)
        return set_up(parsed, self.config.servers, self.config.spare, self.config.scenario.sizes)

    def _check(self) -> None:
        """Refuse an environment that cannot express the policy, or does not show what it needs."""
        if self.needs_sizes and not self.layout.known:
            refuse(self.name, "size_knowledge", "'known', for the policy looks at sizes", "unknown")
        if self.kind not in self.expressed_as:
            ways = " or ".join(repr(kind) for kind in self.expressed_as)
            refuse(self.name, "action", ways + (f", for {self.only_because}" if self.only_because else ""), self.kind)
        if self.layout.kind == "compact" and self.kind in ("allocation", "priority"):
            refuse(self.name, "observation", f"'flat' or 'dict' with action={self.kind!r}", "compact")
        if self.idles and self.kind == "allocation" and self.config.work_conserving:
            refuse(self.name, "work_conserving", "False, for the policy leaves servers idle on purpose", True)

    def _find_rule(self) -> int:
        """Return the index of the environment's rule that is this policy, whatever their labels."""
        for index, setting in enumerate(self.config.rule_settings):
            if _meaning(setting) == _meaning(self.setting):
                return index
        labels = ", ".join(self.config.rules)
        raise ValueError(
            f"{self.label}: the environment's rules must hold it, got {labels}; make the environment with "
            f"rules=[{self.label!r}, ...]"
        )

    def _check_all_shown(self, shown: Shown) -> None:
        most = int(shown.number.max(initial=0.0))
        if most > self.layout.slots:
            allowed = (
                f"at least N={most}, the jobs present, for the policy may need one that the table of K rows does not "
                f"hold; make the environment with slots={most} or more"
            )
            refuse(self.label, "slots", allowed, self.layout.slots)

    # ---- orders ----------------------------------------------------------------------------------

    def _earliest_first(self, shown: Shown) -> tuple[NDArray[Any], ...]:
        """Keys for `places` of the order of arrival.

        Job numbers are not shown: of rows of equal age one that is being served counts as the first, then they go by
        row. Where sizes are hidden the rows themselves are in the order of arrival.
        """
        return (-shown.age, ~_served(shown)) if self.layout.known else ()

    def _latest_first(self, shown: Shown) -> tuple[NDArray[Any], ...]:
        """Keys for `places` of the reverse order of arrival; of rows of equal age the same goes first as above."""
        return (shown.age, ~_served(shown))


class RankingAgent(Agent):
    """A policy that serves the n jobs that it ranks first, each at rate one."""

    expressed_as: ClassVar[tuple[str, ...]] = ("allocation", "priority", "rule")

    def ranking(self, shown: Shown) -> NDArray[np.int64]:
        """Return the place of each row, shape (B, rows), the first being 0; rows without a job come last."""
        raise NotImplementedError

    def rates(self, shown: Shown) -> Floats:
        """Return rate one for the first n, and zero for the others."""
        return np.asarray((self.ranking(shown) < self.servers) & shown.present, np.float64)

    def priorities(self, shown: Shown) -> Floats:
        """Return priorities in steps of equal height, from 1 for the first place to -1 for the last."""
        ranking = self.ranking(shown)
        return np.asarray(1.0 - 2.0 * ranking / (ranking.shape[1] - 1), np.float64)


def places(shown: Shown, *keys: NDArray[Any]) -> NDArray[np.int64]:
    """Rank the rows of each observation by keys.

    Args:
        shown: a batch of B observations.
        *keys: of shape (B, rows), smallest first; the first counts, then the second where the first are equal, and so
            on. Rows that are equal in all keep their order.

    Returns:
        The place of each row, shape (B, rows); rows without a job come last.
    """
    order = np.lexsort((*reversed(keys), ~shown.present), axis=-1)
    ranking = np.empty_like(order)
    np.put_along_axis(ranking, order, np.arange(order.shape[1])[None], axis=-1)
    return ranking


def _served(shown: Shown) -> NDArray[np.bool_]:
    assert shown.served is not None, "the compact view is refused"
    return shown.served


def _meaning(setting: Setting) -> tuple[Any, ...]:
    """What a policy does on a system, whichever of its parameters are written out."""
    return setting.policy.name, setting.spare, setting.parameters.tolist()
