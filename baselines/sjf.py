"""Shortest job first, without preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from baselines.agent import RankingAgent, places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from queue_env.observation import Shown

__all__ = ["SJF"]


class SJF(RankingAgent):
    """Keeps who is in service, and gives a free server to the job of smallest size, of equal ones to the older.

    Of those of equal age too, the one in the upper row goes first. With more jobs than rows it cannot tell whether
    those that it does not see are in service.
    """

    name = "sjf"
    needs_sizes = True

    def ranking(self, shown: Shown) -> NDArray[np.int64]:
        """Rank those in service first, then by size."""
        assert shown.size is not None
        assert shown.served is not None
        sizes = np.where(shown.served, -np.inf, shown.size)
        return places(shown, sizes, *self._earliest_first(shown))

    def _needs_all_jobs(self) -> bool:
        return True
