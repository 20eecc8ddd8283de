"""Shortest remaining processing time first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from baselines.agent import Floats, RankingAgent, places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from queue_env.observation import Shown

__all__ = ["SRPT"]


class SRPT(RankingAgent):
    """Serves the n jobs of smallest remaining size; they are always in the table, if it has 2n+3 rows.

    The rows come in this order, ties by job number, so it is exact in every view.
    """

    name = "srpt"
    expressed_as = ("allocation", "priority", "anchor", "rule")
    needs_sizes = True

    def ranking(self, shown: Shown) -> NDArray[np.int64]:
        """Rank by row."""
        return places(shown)

    def anchor_rate(self, shown: Shown) -> Floats:
        """Return one where the anchor is among the n smallest, else zero: then the n smallest others are served."""
        assert shown.anchor is not None
        # Row 0 of the compact view is the anchor's own; the order begins below it.
        first = 1 if self.layout.kind == "compact" else 0
        among = shown.anchor[:, first : first + self.servers].any(axis=1)
        return np.asarray(among, np.float64)

    def _needs_all_jobs(self) -> bool:
        return self.layout.kind != "compact" and bool(self.layout.slots < 2 * self.servers + 3)
