"""Preemptive shortest job first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from baselines.agent import RankingAgent, places

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from queue_env.observation import Shown

__all__ = ["PSJF"]


class PSJF(RankingAgent):
    """Serves the n jobs of smallest original size, of equal ones the older.

    Of those of equal age too, one in service stays, then the one in the upper row goes first.
    """

    name = "psjf"
    needs_sizes = True

    def ranking(self, shown: Shown) -> NDArray[np.int64]:
        """Rank by original size."""
        assert shown.size is not None
        return places(shown, shown.size, *self._earliest_first(shown))

    def _needs_all_jobs(self) -> bool:
        return True
