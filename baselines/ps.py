"""Processor sharing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from baselines.agent import Agent, Floats

if TYPE_CHECKING:
    from queue_env.observation import Shown

__all__ = ["PS"]


class PS(Agent):
    """Serves all N jobs at rate min(1, n/N); all of them must be in the table."""

    name = "ps"
    expressed_as = ("allocation", "rule")

    def rates(self, shown: Shown) -> Floats:
        """Return the same rate for all."""
        share = np.minimum(1.0, self.servers / np.maximum(shown.number, 1.0))
        return share[:, None] * shown.present

    def _needs_all_jobs(self) -> bool:
        return True
