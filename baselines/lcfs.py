"""Last come, first served, without preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from baselines.agent import RankingAgent, places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from queue_env.observation import Shown

__all__ = ["LCFS"]


class LCFS(RankingAgent):
    """Keeps who is in service, and gives a free server to the latest arrival. It has no rows to look at as a threshold.

    Of waiting jobs of equal age the one in the upper row goes first. With more jobs than rows it cannot tell whether
    those that it does not see are in service.
    """

    name = "lcfs"
    expressed_as = (*RankingAgent.expressed_as, "threshold")

    def ranking(self, shown: Shown) -> NDArray[np.int64]:
        """Rank those in service first, then by arrival, the latest first."""
        assert shown.served is not None
        return places(shown, np.logical_not(shown.served), *self._latest_first(shown))

    def share_and_order(self) -> tuple[float, float]:
        """Return that nobody has priority, and the newest go first."""
        return 0.0, 1.0

    def _needs_all_jobs(self) -> bool:
        return self.kind != "threshold"
