"""Tails and quantiles from the histograms a run leaves, and confidence intervals over its rows.

A row is a replication: an independent stream, or a batch of consecutive jobs of one workload.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from queue_env.distributions.checks import refuse
from queue_env.kernel.layout import BIN_BITS, BINS, LOWEST_OCTAVE

__all__ = [
    "Estimate",
    "Interval",
    "bin_edges",
    "check_times",
    "counts_above",
    "jackknife",
    "quantile_from_counts",
    "quotient",
    "t_interval",
    "tail_estimate",
    "tail_from_counts",
]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

# q·n is a whole number for most q that people write, but not after rounding: 0.07·100 > 7.
_ROUNDING = 4 * np.finfo(np.float64).eps


class Interval(NamedTuple):
    """An estimate and its confidence interval.

    Attributes:
        value: the estimate.
        low: lower end; NaN where the data cannot give an interval.
        high: upper end; NaN where `low` is.
        level: the probability with which such intervals hold the true value, in (0, 1).
    """

    value: float
    low: float
    high: float
    level: float

    @property
    def half_width(self) -> float:
        """The smallest h such that value ± h holds the interval."""
        return max(self.high - self.value, self.value - self.low)


@cache
def bin_edges() -> FloatArray:
    """Edges of the histograms' bins, read-only, shape (BINS + 1,): bin k is [edge k, edge k+1).

    The first bin also holds all values below its edge, the last all values above.
    """
    octave, step = np.divmod(np.arange(BINS + 1), 1 << BIN_BITS)
    edges: FloatArray = np.ldexp(1 + step / (1 << BIN_BITS), octave + LOWEST_OCTAVE)
    edges.flags.writeable = False
    return edges


def counts_above(counts: ArrayLike, t: ArrayLike) -> FloatArray:
    """Number of values above t in a histogram; exact at edges, linear inside a bin.

    The error is less than what lies in the bin of t. A value equal to an edge counts as above it; the values
    in the last bin count as below the last edge.

    Args:
        counts: shape (..., BINS), whole numbers >= 0.
        t: any shape, >= 0; inf is allowed.

    Returns:
        Shape of counts without its last axis, followed by that of t.

    Raises:
        ValueError: counts has another last axis, or t is NaN or negative.
    """
    histogram, times = _histogram(counts), check_times(t)
    edges = bin_edges()
    place = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, BINS - 1)
    low = np.where(place == 0, 0.0, edges[place])
    passed = np.minimum((times - low) / (edges[place + 1] - low), 1.0)
    from_here = np.cumsum(histogram[..., ::-1], axis=-1)[..., ::-1]
    above: FloatArray = from_here[..., place] - passed * histogram[..., place]
    return above


def tail_from_counts(counts: ArrayLike, t: ArrayLike) -> FloatArray:
    """P[X > t] of the values X in a histogram; 1 at t = 0, NaN for an empty histogram.

    Arguments, shape, accuracy and errors are those of `counts_above`; for a pooled tail, sum the rows before.
    """
    above = counts_above(counts, t)
    total = np.sum(_histogram(counts), axis=-1)
    return quotient(above, np.expand_dims(total, tuple(range(total.ndim, above.ndim))))


def quantile_from_counts(counts: ArrayLike, q: ArrayLike) -> FloatArray:
    """The smallest x with P[X <= x] >= q of the values X in a histogram.

    It lies in the bin of the exact order statistic, so it is off by at most 1/128 of it (but for the first
    and the last bin), and inside the bin it inverts `tail_from_counts`. At q = 0 it is the lower edge of the
    first bin in use.

    Args:
        counts: shape (..., BINS), whole numbers >= 0.
        q: any shape, in [0, 1].

    Returns:
        Shape of counts without its last axis, followed by that of q; NaN for an empty histogram.

    Raises:
        ValueError: counts has another last axis, or q is NaN or outside [0, 1].
    """
    histogram = _histogram(counts)
    levels = np.asarray(q, dtype=np.float64)
    if not np.all((levels >= 0) & (levels <= 1)):
        refuse("quantile", "q", "in [0, 1]", q)
    rows = histogram.reshape(-1, BINS)
    found = [_row_quantiles(row, levels.ravel()) for row in rows]
    return np.reshape(found, histogram.shape[:-1] + levels.shape)


def _row_quantiles(counts: IntArray, q: FloatArray) -> FloatArray:
    reached = np.cumsum(counts)
    if reached[-1] == 0:
        return np.full(q.shape, np.nan)
    position = q * reached[-1]
    rank = np.maximum(np.ceil(position * (1 - _ROUNDING)), 1)
    place = np.searchsorted(reached, rank)
    passed = np.clip((position - reached[place]) / counts[place] + 1, 0, 1)
    low, high = bin_edges()[place], bin_edges()[place + 1]
    quantiles: FloatArray = low + passed * (high - low)
    return quantiles


def t_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Student's interval for the mean of independent rows; exact for normal rows.

    Args:
        values: shape (rows,), one number a row; with a single row both ends are NaN.
        level: confidence level in (0, 1).

    Raises:
        ValueError: values is empty or not one-dimensional, or the level is out of range.

    Source: Law, Simulation Modeling and Analysis (5th ed., 2015), section 4.5 and (batch means) 9.5.3.
    """
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 1 or rows.size == 0:
        refuse("t_interval", "values", "one-dimensional and not empty", values)
    mean, half = float(rows.mean()), float(_half_width(rows, level))
    return Interval(mean, mean - half, mean + half, level)


class Estimate(NamedTuple):
    """An estimate from all rows, and those from all rows but one, from which its interval follows.

    Attributes:
        value: any shape.
        without: shape (rows, *value.shape), the estimates without each row.
        used: shape (rows,), whether the row has data.
        most: the largest possible value, a number or the shape of value; the smallest is 0.
    """

    value: FloatArray
    without: FloatArray
    used: NDArray[np.bool_]
    most: float | FloatArray = math.inf

    def half_width(self, level: float = 0.95) -> FloatArray:
        """Half the width of the interval, shape of value; NaN where fewer than two rows have data.

        What a row contributes is its pseudo-value, rows·value - (rows-1)·without, to which Student's interval
        applies. For a mean over rows of equal weight that is `t_interval`.

        Raises:
            ValueError: the level is out of range.

        Source: Miller, The jackknife - a review, Biometrika 61 (1974); for quantiles, where each row has to
            hold many values: Shao and Wu, A general theory for jackknife variance estimation, Ann. Statist.
            17 (1989).
        """
        rest = self.without[self.used]
        with np.errstate(invalid="ignore"):
            return _half_width(len(rest) * self.value - (len(rest) - 1) * rest, level)

    def ends(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Both ends of the interval, each of the shape of value, cut to the possible values."""
        half = self.half_width(level)
        with np.errstate(invalid="ignore"):
            low, high = np.maximum(self.value - half, 0.0), np.minimum(self.value + half, self.most)
        return low[()], high[()]

    def divided_by(self, divisor: ArrayLike) -> Estimate:
        """The estimate of the same quantity over known numbers, of the shape of value."""
        value, without, most = (quotient(part, divisor) for part in (self.value, self.without, self.most))
        return Estimate(value, without, self.used, most)

    def minus(self, other: Estimate) -> Estimate:
        """The estimate of a difference between quantities that were measured on the same rows."""
        with np.errstate(invalid="ignore"):
            value, without = self.value - other.value, self.without - other.without
        return Estimate(value, without, self.used | other.used)

    def ratio_to(self, other: Estimate, level: float = 0.95) -> Interval:
        """The ratio of two single numbers, with an interval over rows that belong together.

        Where one has more rows, such as further replications, those without a partner add to the value only. What is
        left of a row once the other is scaled by the ratio, its pseudo-values, is what the interval rests on.

        Source: Law, Simulation Modeling and Analysis (5th ed., 2015), section 9.3.2 (linearised).
        """
        count = min(len(self.used), len(other.used))
        both = self.used[:count] & other.used[:count]
        value = quotient(self.value, other.value)
        rows = self._pseudo_values()[:count] - value * other._pseudo_values()[:count]
        half = quotient(_half_width(rows[both], level), other.value)
        return Interval(float(value), max(float(value - half), 0.0), float(value + half), level)

    def _pseudo_values(self) -> FloatArray:
        """What each row contributes, shape (rows, *value.shape), as if those that are used were all."""
        count = int(self.used.sum())
        with np.errstate(invalid="ignore"):
            return np.asarray(count * self.value - (count - 1) * self.without)


def jackknife(sums: NDArray[Any], combine: Callable[[NDArray[Any]], FloatArray], most: float = math.inf) -> Estimate:
    """The estimate that a function of pooled sums gives.

    Pooling before taking a ratio or a quantile avoids the bias of averaging those of short rows.

    Args:
        sums: shape (rows, k), what each row adds to the sums.
        combine: takes sums of shape (..., k) to estimates of shape (..., *value.shape).
        most: the largest possible value.
    """
    total = sums.sum(axis=0)
    used: NDArray[np.bool_] = np.any(sums != 0, axis=1)
    return Estimate(combine(total), combine(total - sums), used, most)


def tail_estimate(counts: ArrayLike, t: ArrayLike) -> Estimate:
    """The pooled P[X > t] of histograms, shape of t, with no interval where no X > t was seen.

    Args:
        counts: shape (rows, BINS).
        t: any shape, >= 0.
    """
    histograms, times = _histogram(counts), check_times(t)
    above = counts_above(histograms, times.ravel())
    sums = np.column_stack([above, histograms.sum(axis=1)])
    found = jackknife(sums, lambda sums: quotient(sums[..., :-1], sums[..., -1:]), most=1.0)
    # Rows that have seen nothing agree with each other, but that is no evidence.
    without = np.where(found.value > 0, found.without, np.nan)
    return found._replace(value=found.value.reshape(times.shape), without=without.reshape(-1, *times.shape))


def quotient(numerator: ArrayLike, denominator: ArrayLike) -> FloatArray:
    """The quotient, without a warning for 0/0 = NaN and x/0 = inf."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.true_divide(numerator, denominator))


def check_times(t: ArrayLike) -> FloatArray:
    """Return t as a float64 array; ValueError where it is NaN or negative (inf is allowed)."""
    times = np.asarray(t, dtype=np.float64)
    if not np.all(times >= 0):
        refuse("tail", "t", ">= 0", t)
    return times


def _half_width(rows: FloatArray, level: float) -> FloatArray:
    if not 0 < level < 1:
        refuse("interval", "level", "between 0 and 1, both excluded", level)
    count = len(rows)
    if count < 2:
        return np.full(rows.shape[1:], np.nan)
    factor = special.stdtrit(count - 1, (1 + level) / 2)
    return np.asarray(factor * rows.std(axis=0, ddof=1) / math.sqrt(count))


def _histogram(counts: ArrayLike) -> NDArray[Any]:
    histogram = np.asarray(counts)
    if histogram.shape[-1:] != (BINS,):
        refuse("tail", "shape of counts", f"(..., {BINS})", histogram.shape)
    return histogram
