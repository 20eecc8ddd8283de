"""One server for the largest job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from baselines.agent import RankingAgent, places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from queue_env.observation import Shown

__all__ = ["Split"]


class Split(RankingAgent):
    """Serves the job of largest original size, and the n-1 others of smallest remaining size.

    All are in the table, in the right order and with a flag at the largest, so it is exact in every view.
    """

    name = "split"
    needs_sizes = True

    def ranking(self, shown: Shown) -> NDArray[np.int64]:
        """Rank the largest first, the others by row."""
        assert shown.largest is not None
        return places(shown, np.logical_not(shown.largest))
