"""The anchor's rate over two features, the others being what they usually are where a policy has these two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.explain.law import AnchorLaw
from queue_env.explain.states import States
from queue_env.network import NAMES

__all__ = ["RateMap", "rate_map"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

_ENOUGH = 3  # states that make a cell visited
_LEAST, _MOST = 0.03, 1e4  # of the axes, in mean sizes
_CELLS = 40  # along an axis
_SPREAD = 0.0005  # share of the states that an axis may leave out at each end


@dataclass(frozen=True, eq=False)
class RateMap:
    """Rates in the cells of a grid over two features, those that are logarithms of one and work or time.

    Attributes:
        axes: the two features, along x and along y.
        edges: of the cells along x and along y, in mean sizes.
        visits: states in each cell, shape (y, x), as the rest.
        rates: by the label of each law, at the medians that all features have in the cell; a law of the axes alone has
            rates in all cells, others have NaN in those that are not visited.
        mean: rate of the policy whose states these are, averaged over those in the cell; NaN where there are none.
    """

    axes: tuple[str, str]
    edges: tuple[FloatArray, FloatArray]
    visits: IntArray
    rates: dict[str, FloatArray]
    mean: FloatArray

    @property
    def visited(self) -> NDArray[np.bool_]:
        """Which cells hold states enough for medians."""
        return self.visits >= _ENOUGH


def rate_map(states: States, laws: Sequence[AnchorLaw], axes: tuple[str, str]) -> RateMap:
    """Return the rates of laws over two features.

    Args:
        states: that one of the policies has visited.
        laws: its own first.
        axes: the features along x and y.

    Raises:
        ValueError: there are no states with more jobs than servers.
    """
    if not len(states.rates):
        raise ValueError("explain: in no state that was looked at more jobs than servers are present; look more often")
    x, y = states.columns(axes).T
    edges = _edges(x), _edges(y)
    rows, columns = (np.searchsorted(np.log1p(ends), v) - 1 for ends, v in ((edges[1], y), (edges[0], x)))
    inside = (rows >= 0) & (rows < _CELLS) & (columns >= 0) & (columns < _CELLS)
    cells = (rows * _CELLS + columns)[inside]
    visits = np.bincount(cells, minlength=_CELLS * _CELLS)
    typical = _typical(states.features[inside], cells, visits, axes, edges)
    own = laws[0].rates(states.features)[inside]
    with np.errstate(invalid="ignore"):  # 0/0 where there are no visits
        mean = np.bincount(cells, own, _CELLS * _CELLS) / visits
    shape = (_CELLS, _CELLS)
    rates = {law.label: _rates(law, typical, visits, axes).reshape(shape) for law in laws}
    return RateMap(axes, edges, visits.reshape(shape), rates, mean.reshape(shape))


def _edges(values: FloatArray) -> FloatArray:
    """Return the ends of cells of equal width on the logarithmic axis of a feature, in mean sizes."""
    ends = np.expm1(np.quantile(values, [_SPREAD, 1 - _SPREAD]))
    low, high = np.clip(ends, _LEAST, _MOST)
    return np.geomspace(low, max(high, 2 * low), _CELLS + 1)


def _typical(
    features: FloatArray,
    cells: IntArray,
    visits: IntArray,
    axes: tuple[str, str],
    edges: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Return the medians of all features in each cell, of the axes its middle, shape (cells, features)."""
    typical = np.full((len(visits), features.shape[1]), np.nan)
    order = np.argsort(cells, kind="stable")
    visited = np.flatnonzero(visits)
    ends = np.cumsum(visits[visited])
    for cell, own in zip(visited, np.split(features[order], ends)[:-1], strict=True):
        typical[cell] = np.median(own, axis=0)
    middles = [np.log1p(np.sqrt(end[1:] * end[:-1])) for end in edges]
    typical[:, NAMES.index(axes[0])] = np.tile(middles[0], len(middles[1]))
    typical[:, NAMES.index(axes[1])] = np.repeat(middles[1], len(middles[0]))
    return typical


def _rates(law: AnchorLaw, typical: FloatArray, visits: IntArray, axes: tuple[str, str]) -> FloatArray:
    known = np.ones(len(typical), np.bool_) if set(law.features) <= set(axes) else visits >= _ENOUGH
    rates = np.full(len(typical), np.nan)
    rates[known] = law.rates(typical[known])
    return rates
