"""DynaSPLIT: the anchor at a rate of its own, the rest by SRPT."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from baselines.agent import Agent, Floats
from queue_env.kernel.layout import LOG_MARGIN, POWER_MARGIN

if TYPE_CHECKING:
    from queue_env.observation import Shown

__all__ = ["DynaSplit", "margin"]


class DynaSplit(Agent):
    """Serves the anchor at rate γ, the n-1 others of smallest remaining size at one, and the n-th at 1-γ.

    γ(z) = min(1, δ - ε(z)), z being the anchor's original size and ε the margin. While N <= n all jobs have rate one.
    All that it needs is always shown. Rows come in SRPT order, so who is served is exact in every view; γ has about six
    digits where sizes are float32.

    Source: Li, Harchol-Balter, Scheller-Wolf, DynaSPLIT (2026), section 3.1.
    """

    name = "dynasplit"
    expressed_as: ClassVar[tuple[str, ...]] = ("allocation", "anchor", "rule")
    needs_sizes = True

    def anchor_rate(self, shown: Shown) -> Floats:
        """Return γ, or one while N <= n."""
        assert shown.anchor_size is not None
        kind, shape = self.setting.parameters
        spare = self.setting.spare
        gamma = np.minimum(1.0, spare - margin(shown.anchor_size, spare, kind, shape))
        return np.where(shown.number > self.servers, gamma, 1.0)

    def rates(self, shown: Shown) -> Floats:
        """Return the rates of all rows."""
        assert shown.anchor is not None
        gamma = self.anchor_rate(shown)[:, None]
        others = shown.present & ~shown.anchor
        place = np.cumsum(others, axis=1)
        rates = np.where(place < self.servers, 1.0, np.where(place == self.servers, 1.0 - gamma, 0.0)) * others
        return np.where(shown.anchor, gamma, rates)


def margin(size: Floats, spare: float, kind: float, shape: float) -> Floats:
    """Return the spare capacity ε(z) that is kept from an anchor.

    Args:
        size: original size z of the anchor.
        spare: spare capacity δ.
        kind: `LOG_MARGIN`, for δ/(shape + ln(1+z)), equation (53) of the paper with shape 2; `POWER_MARGIN`, for
            δ/2 (1+z)^-shape; `CONSTANT_MARGIN`, for δ shape.
        shape: of the margin.
    """
    if kind == LOG_MARGIN:
        return spare / (shape + np.log1p(size))
    if kind == POWER_MARGIN:
        return np.asarray(spare / 2.0 * (1.0 + size) ** -shape, np.float64)
    return np.full_like(size, spare * shape)
