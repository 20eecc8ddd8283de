"""What an agent can do: the kinds of actions, their spaces, and how they are handed to the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from queue_env.distributions.checks import refuse
from queue_env.kernel.env_layout import ALLOCATION, ANCHOR_RATE, PRIORITY, RULE

__all__ = ["KINDS", "ActionLayout"]

KINDS = {"allocation": ALLOCATION, "anchor": ANCHOR_RATE, "priority": PRIORITY, "rule": RULE}


@dataclass(frozen=True)
class ActionLayout:
    """How the actions of an environment are made up.

    Attributes:
        kind: "allocation" (desired rates), "anchor" (the anchor's rate), "priority" or "rule".
        slots: rows of the job table K.
        rules: labels of the reference rules, for the action "rule".
        symmetric: whether rates are given on the scale [-1, 1].
    """

    kind: str
    slots: int
    rules: tuple[str, ...] = ()
    symmetric: bool = False

    @property
    def entries(self) -> int:
        """Numbers in an action."""
        return self.slots if self.kind in ("allocation", "priority") else 1

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
        wanted = into.shape[:1] if self.kind == "rule" else into.shape
        if values.shape != wanted or values.dtype.kind not in "fiub":
            refuse("step", "action", f"numbers of shape {wanted}", action)
        into[...] = values[:, None] if self.kind == "rule" else values

    def put_one(self, action: ArrayLike, into: NDArray[np.float64]) -> None:
        """Write the action of a single environment, shape (entries,) or a number for rules, into the kernel's memory.

        Raises:
            ValueError: as `put`.
        """
        values = np.asarray(action)
        wanted = () if self.kind == "rule" else (into.shape[1],)
        if values.shape != wanted or values.dtype.kind not in "fiub":
            refuse("step", "action", f"numbers of shape {wanted}", action)
        into[0] = values
