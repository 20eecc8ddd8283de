"""One server for large jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from baselines.agent import Agent, Floats, places

if TYPE_CHECKING:
    from queue_env.observation import Shown

__all__ = ["ThreshSplit"]


class ThreshSplit(Agent):
    """Serves the oldest job of size above d, and the n-1 of smallest remaining size among those up to d.

    A server that has no job of its kind idles, so the environment must not be work conserving. Of large jobs of equal
    age one in service stays, then the one in the upper row goes first. A size that equals d in six digits may be taken
    for one on the other side of it by the float32 view.
    """

    name = "thresh-split"
    expressed_as = ("allocation", "rule")
    needs_sizes = True
    idles = True

    def rates(self, shown: Shown) -> Floats:
        """Return the rates of both sides."""
        assert shown.size is not None
        large = shown.present & (shown.size > self.setting.parameters[0])
        small = shown.present & ~large
        oldest = places(shown, ~large, *self._earliest_first(shown)) == 0
        first = small & (np.cumsum(small, axis=1) < self.servers)
        return np.asarray((large & oldest) | first, np.float64)

    def _needs_all_jobs(self) -> bool:
        return True
