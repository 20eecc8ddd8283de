"""Last come, first served, with preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING

from baselines.agent import RankingAgent, places

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from queue_env.observation import Shown

__all__ = ["PLCFS"]


class PLCFS(RankingAgent):
    """Serves the n latest arrivals.

    Of jobs of equal age those in service stay, then the one in the upper row goes first. The table always holds the
    newest job, and the n newest where sizes are hidden.
    """

    name = "plcfs"

    def ranking(self, shown: Shown) -> NDArray[np.int64]:
        """Rank by arrival, the latest first."""
        return places(shown, *self._latest_first(shown))

    def _needs_all_jobs(self) -> bool:
        return self.servers > 1 and bool(self.layout.known)
