"""What an agent can do: the kinds of actions, their spaces, and how they are handed to the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from queue_env.distributions.checks import refuse
from queue_env.kernel.env_layout import ALLOCATION, ANCHOR_RATE, PRIORITY, RULE, THRESHOLD

if TYPE_CHECKING:
    from queue_env.distributions import Law

__all__ = ["KINDS", "ActionLayout"]

KINDS = {
    "allocation": ALLOCATION,
    "anchor": ANCHOR_RATE,
    "priority": PRIORITY,
    "rule": RULE,
    "threshold": THRESHOLD,
}
_ENTRIES = {"anchor": 1, "rule": 1, "threshold": 2}  # of those that do not name rows of the table


@dataclass(frozen=True)
class ActionLayout:
    """How the actions of an environment are made up.

    Attributes:
        kind: "allocation" (desired rates), "anchor" (the anchor's rate), "priority", "rule" or "threshold" (the share
            of the jobs that have priority, and the order within both classes).
        slots: rows of the job table K.
        rules: labels of the reference rules, for the action "rule".
        symmetric: whether rates, shares and orders are given on the scale [-1, 1].
        levels: for the action "threshold" where sizes are hidden: the law whose quantiles are the service after which
            a job has no priority any more.
    """

    kind: str
    slots: int
    rules: tuple[str, ...] = ()
    symmetric: bool = False
    levels: Law | None = None

    @property
    def entries(self) -> int:
        """Numbers in an action."""
        return _ENTRIES.get(self.kind, self.slots)

    @property
    def columns(self) -> int:
        """Numbers that the kernel is handed."""
        return self.entries + (self.levels is not None)

    def space(self) -> spaces.Space[Any]:
        """The action space of one environment."""
        if self.kind == "rule":
            return spaces.Discrete(len(self.rules))
        low = -1.0 if self.symmetric or self.kind == "priority" else 0.0
        return spaces.Box(low, 1.0, (self.entries,), np.float32)

    def put(self, action: ArrayLike, into: NDArray[np.float64]) -> None:
        """Write the actions of a batch, shape (B, entries) or (B,) for rules, into the kernel's memory.

        Raises:
            ValueError: the action is not of this shape, or not of numbers.
        """
        values = np.asarray(action)
        wanted = into.shape[:1] if self.kind == "rule" else (len(into), self.entries)
        if values.shape != wanted or values.dtype.kind not in "fiub":
            refuse("step", "action", f"numbers of shape {wanted}", action)
        into[:, : self.entries] = values[:, None] if self.kind == "rule" else values
        if self.levels is not None:
            into[:, -1] = self._level(into[:, 0], self.levels)

    def put_one(self, action: ArrayLike, into: NDArray[np.float64]) -> None:
        """Write the action of a single environment, shape (entries,) or a number for rules, into the kernel's memory.

        Raises:
            ValueError: as `put`.
        """
        values = np.asarray(action)
        wanted = () if self.kind == "rule" else (self.entries,)
        if values.shape != wanted or values.dtype.kind not in "fiub":
            refuse("step", "action", f"numbers of shape {wanted}", action)
        into[0, : self.entries] = values
        if self.levels is not None:
            into[:, -1] = self._level(into[:, 0], self.levels)

    def _level(self, asked: NDArray[np.float64], law: Law) -> NDArray[np.float64]:
        """Return the service after which priority is lost: the quantile of the share; 0 and infinity at its ends."""
        huge = np.finfo(np.float64).max
        shares = np.clip(np.nan_to_num(asked), -huge, huge)  # NaN is refused later
        shares = np.clip(0.5 * (shares + 1.0) if self.symmetric else shares, 0.0, 1.0)
        inside = law.quantile(shares)
        return np.where(shares <= 0.0, 0.0, np.where(shares >= 1.0, np.inf, inside))
