"""What became of jobs by their size: P[served | size] in classes of sizes, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from queue_env.distributions.checks import refuse, whole
from queue_env.kernel.layout import ABANDONED, LOWEST_OCTAVE, SERVED, SIZE_BINS, SIZE_BITS
from queue_env.tail import jackknife, quotient

__all__ = ["SizeClasses", "size_classes", "size_edges"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SizeClasses:
    """The share of jobs that were served, by size.

    Attributes:
        edges: ends of the classes, increasing, shape (classes + 1,): class k holds the sizes in [edge k, edge k+1).
        jobs: counted jobs of each class that have left, shape (classes,), as the rest.
        served: P[served | size in the class], NaN where no job has left.
        low, high: ends of its intervals; NaN where all were served or none was, for then the rows agree with each
            other, which is no evidence.
        level: confidence level of the intervals.
    """

    edges: FloatArray
    jobs: NDArray[np.int64]
    served: FloatArray
    low: FloatArray
    high: FloatArray
    level: float

    @property
    def abandoned(self) -> FloatArray:
        """P[abandoned | size in the class], shape (classes,); its interval is (1 - high, 1 - low)."""
        return 1.0 - self.served

    def to_list(self) -> list[dict[str, float | None]]:
        """One mapping a class, fit for JSON: "from", "to", "jobs", "value", "low", "high"; None where not finite."""
        columns = (self.edges[:-1], self.edges[1:], self.jobs, self.served, self.low, self.high)
        names = ("from", "to", "jobs", "value", "low", "high")
        rows = zip(*(column.tolist() for column in columns), strict=True)
        finite = ([cell if math.isfinite(cell) else None for cell in row] for row in rows)
        return [dict(zip(names, row, strict=True)) for row in finite]


@cache
def size_edges() -> FloatArray:
    """Ends of the bins in which sizes are counted, 16 an octave, read-only, shape (SIZE_BINS + 1,).

    The first bin reaches down to 0 and the last to infinity.
    """
    octave, step = np.divmod(np.arange(SIZE_BINS + 1), 1 << SIZE_BITS)
    edges: FloatArray = np.ldexp(1 + step / (1 << SIZE_BITS), octave + LOWEST_OCTAVE)
    edges[0], edges[-1] = 0.0, np.inf
    edges.flags.writeable = False
    return edges


def size_classes(counts: NDArray[np.int64], classes: int | ArrayLike, level: float = 0.95) -> SizeClasses:
    """Merge the bins of sizes into classes, and estimate P[served | size] in each.

    Args:
        counts: shape (rows, 2, SIZE_BINS), sizes of served and of abandoned jobs.
        classes: into how many classes of about as many jobs each; or the ends of the classes, which are moved to the
            nearest ends of bins, and of which those that fall together are one.
        level: confidence level in (0, 1).

    Raises:
        ValueError: classes is neither a whole number >= 1 nor at least two ends, >= 0, increasing and more than a bin
            apart; or the level is out of range.
    """
    cuts = _cuts_of_number(counts, classes) if np.ndim(classes) == 0 else _cuts_of_ends(classes)
    pooled = np.add.reduceat(counts, cuts[:-1], axis=-1)
    if cuts[-1] < SIZE_BINS:  # the last class would reach to the last bin
        pooled[..., -1] -= counts[..., cuts[-1] :].sum(axis=-1)
    found = jackknife(pooled.reshape(len(pooled), -1), _served_share, most=1.0)
    mixed = (found.value > 0) & (found.value < 1)
    low, high = found._replace(without=np.where(mixed, found.without, np.nan)).ends(level)
    return SizeClasses(size_edges()[cuts], pooled.sum(axis=(0, 1)), found.value, low, high, level)


def _served_share(sums: NDArray[Any]) -> FloatArray:
    """Share of served jobs by class, from sums of shape (..., 2·classes)."""
    outcomes = sums.reshape(*sums.shape[:-1], 2, -1)
    served, abandoned = outcomes[..., SERVED, :], outcomes[..., ABANDONED, :]
    return quotient(served, served + abandoned)


def _cuts_of_number(counts: NDArray[np.int64], classes: Any) -> NDArray[np.intp]:
    """Places among the ends of bins, such that about as many jobs lie between any two that follow each other."""
    wanted = whole("by_size", "classes", classes, 1)
    reached = np.cumsum(counts.sum(axis=(0, 1)))
    if reached[-1] == 0:
        return np.array([0, SIZE_BINS])
    inner = np.searchsorted(reached, reached[-1] * np.arange(1, wanted) / wanted) + 1
    first, last = np.searchsorted(reached, 1), np.searchsorted(reached, reached[-1]) + 1
    return np.unique([first, *inner, last])


def _cuts_of_ends(ends: ArrayLike) -> NDArray[np.intp]:
    wanted = np.asarray(ends, dtype=np.float64)
    if wanted.ndim == 1 and wanted.size > 1 and np.all(wanted >= 0) and np.all(np.diff(wanted) > 0):
        edges = size_edges()
        cuts = np.unique(np.searchsorted((edges[:-1] + edges[1:]) / 2, wanted, side="right"))
        if len(cuts) > 1:
            return cuts
    refuse("by_size", "classes", "a whole number, or at least two increasing ends >= 0 more than a bin apart", ends)
