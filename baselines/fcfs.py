"""First come, first served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from baselines.agent import RankingAgent, places

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from queue_env.observation import Shown

__all__ = ["FCFS"]


class FCFS(RankingAgent):
    """Serves the n earliest arrivals; they are always in the table. As a threshold nobody has priority, oldest first.

    Of jobs of equal age (which the float32 views give to some that arrived at nearly one time) those in service stay,
    then the one in the upper row goes first.
    """

    name = "fcfs"
    expressed_as = (*RankingAgent.expressed_as, "threshold")

    def ranking(self, shown: Shown) -> NDArray[np.int64]:
        """Rank by arrival."""
        return places(shown, *self._earliest_first(shown))

    def share_and_order(self) -> tuple[float, float]:
        """Return that nobody has priority, and the oldest go first."""
        return 0.0, 0.0
