"""Tails and quantiles from histograms against exact order statistics; intervals by their coverage."""

import math
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from queue_env.kernel.layout import BINS
from queue_env.tail import (
    Estimate,
    Interval,
    bin_edges,
    counts_above,
    jackknife,
    quantile_from_counts,
    quotient,
    t_interval,
    tail_estimate,
    tail_from_counts,
)

FALSE_ALARM = 1e-6  # of each statistical assertion
BIN_WIDTH = 1 / 128  # of the lower edge, at most

Floats = NDArray[np.float64]

within_range = st.floats(2.0**-39, 2.0**59)
samples = st.lists(within_range | st.sampled_from([1.0, 2.0, 1.5, 1e6]), min_size=1, max_size=60)


def binned(values: Floats) -> NDArray[np.int64]:
    """Histogram by logarithms and fractions of octaves, not by the kernel's bits."""
    fraction, exponent = np.frexp(values)  # fraction in [1/2, 1)
    place = (exponent - 1 + 40) * 128 + np.floor((2 * fraction - 1) * 128).astype(int)
    return np.bincount(np.clip(place, 0, BINS - 1), minlength=BINS)


def assert_coverage(hits: int, trials: int, level: float, slack: float = 0.0) -> None:
    """The number of intervals that hold the truth is what a binomial variable at level ± slack can be."""
    low = stats.binom.ppf(FALSE_ALARM / 2, trials, level - slack)
    high = stats.binom.isf(FALSE_ALARM / 2, trials, min(level + slack, 1.0))
    assert low <= hits <= high, f"{hits / trials:.3f} of the intervals hold the truth, not {level}"


# ---- bins -------------------------------------------------------------------------------------------------


def test_edges() -> None:
    edges = bin_edges()
    assert edges.shape == (BINS + 1,)
    assert (edges[0], edges[-1]) == (2.0**-40, 2.0**60)
    assert edges[40 * 128] == 1.0
    assert edges[40 * 128 + 1] == 1 + 1 / 128
    widths = np.diff(edges) / edges[:-1]
    assert np.all((widths > 1 / 256) & (widths <= BIN_WIDTH))
    with pytest.raises(ValueError, match="read-only"):
        edges[0] = 0.0


def test_edges_are_those_of_the_kernel() -> None:
    events = pytest.importorskip("queue_env.kernel.events", reason="the kernel's counting is not there")
    edges = bin_edges()
    for place in (0, 1, 127, 128, 5000, BINS - 1):
        middle = (edges[place] + edges[place + 1]) / 2
        below_next = np.nextafter(edges[place + 1], 0)
        for value in (edges[place], middle, below_next):
            assert events.bin_of.py_func(value) == place
    assert events.bin_of.py_func(1e-300) == 0
    assert events.bin_of.py_func(1e300) == BINS - 1


def test_no_compiler_is_loaded() -> None:
    code = "import sys, queue_env.tail, queue_env.result; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- tails ------------------------------------------------------------------------------------------------


@given(samples, st.lists(st.floats(0, 1e20) | within_range, min_size=1, max_size=10))
@settings(deadline=None, max_examples=150)
def test_tail_is_within_a_bin_of_the_exact_one(sample: list[float], times: list[float]) -> None:
    values = np.array(sample)
    found = tail_from_counts(binned(values), times)
    for t, tail in zip(times, found, strict=True):
        exact = np.mean(values > t)
        place = np.searchsorted(bin_edges(), t, side="right") - 1
        low, high = (-1.0, 2.0**-40) if place < 0 else bin_edges()[np.minimum([place, place + 1], BINS)]
        mass = np.mean((values >= low) & (values <= high))
        assert abs(tail - exact) <= mass + 1e-12


@given(samples)
@settings(deadline=None, max_examples=50)
def test_tail_is_a_tail(sample: list[float]) -> None:
    counts = binned(np.array(sample))
    times = np.sort(np.concatenate([[0.0, math.inf], bin_edges()[::97], sample]))
    tail = tail_from_counts(counts, times)
    assert (tail[0], tail[-1]) == (1.0, 0.0)
    assert np.all(np.diff(tail) <= 0)


def test_tail_at_edges_is_exact_and_linear_between() -> None:
    counts = binned(np.array([1.0, 1.003, 1.5, 4.0]))
    edge = 1 + 1 / 128
    assert tail_from_counts(counts, [1.0, edge, 1.25, 4.0]).tolist() == [1.0, 0.5, 0.5, 0.25]
    assert tail_from_counts(counts, 1 + 1 / 512) == pytest.approx(1 - 0.5 / 4, abs=1e-15)
    assert counts_above(counts, 1.5) == 2


def test_values_beyond_the_bins() -> None:
    counts = binned(np.array([1e-300, 1e-20, 1e30, 1e300]))
    smallest, largest = bin_edges()[1], bin_edges()[-2]
    assert tail_from_counts(counts, [0.0, smallest, largest, math.inf]).tolist() == [1.0, 0.5, 0.5, 0.0]
    assert quantile_from_counts(counts, 0.25) <= smallest
    assert largest <= quantile_from_counts(counts, 1.0) <= bin_edges()[-1]


def test_far_tail_keeps_its_digits() -> None:
    counts = np.zeros(BINS, dtype=np.int64)
    counts[40 * 128], counts[60 * 128] = 10**10, 1
    assert tail_from_counts(counts, 1000.0) == 1 / (10**10 + 1)


def test_shapes_of_tails_and_quantiles() -> None:
    rows = np.stack([binned(np.array(sample)) for sample in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0])])
    times = np.array([[0.5, 1.75], [3.5, 7.0]])
    found = tail_from_counts(rows, times)
    assert found.shape == (3, 2, 2)
    assert found[:, 1, 0].tolist() == [0.0, 0.5, 1.0]
    assert tail_from_counts(rows, 2.5).shape == (3,)
    assert np.shape(tail_from_counts(rows[0], 2.5)) == ()
    quantiles = quantile_from_counts(rows, [[0.5, 1.0]])
    assert quantiles.shape == (3, 1, 2)
    np.testing.assert_allclose(quantiles[:, 0, 0], [1, 3, 5], rtol=BIN_WIDTH)
    assert np.shape(quantile_from_counts(rows[0], 0.5)) == ()


def test_empty_histograms_have_no_tail() -> None:
    counts = np.stack([np.zeros(BINS, dtype=np.int64), binned(np.array([1.0]))])
    assert np.isnan(tail_from_counts(counts, 0.5)).tolist() == [True, False]
    assert np.isnan(quantile_from_counts(counts, [0.5, 1.0])).tolist() == [[True, True], [False, False]]


# ---- quantiles --------------------------------------------------------------------------------------------


@given(samples, st.integers(0, 1000))
@settings(deadline=None, max_examples=150)
def test_quantile_is_in_the_bin_of_the_order_statistic(sample: list[float], thousandths: int) -> None:
    q = thousandths / 1000
    exact = sorted(sample)[max(math.ceil(Fraction(thousandths, 1000) * len(sample)), 1) - 1]
    found = float(quantile_from_counts(binned(np.array(sample)), q))
    place = np.searchsorted(bin_edges(), exact, side="right") - 1
    assert bin_edges()[place] <= found <= bin_edges()[place + 1]
    assert abs(found / exact - 1) <= BIN_WIDTH


@pytest.mark.parametrize(("q", "count", "rank"), [(0.07, 100, 7), (0.7, 10, 7), (0.55, 100, 55), (0.9, 10, 9)])
def test_rounding_of_q_does_not_skip_a_value(q: float, count: int, rank: int) -> None:
    """0.07 · 100 > 7 in floating point, but the 7th value is meant."""
    counts = binned(10.0 ** np.linspace(-5, 5, count))
    assert quantile_from_counts(counts, q) == pytest.approx(10 ** np.linspace(-5, 5, count)[rank - 1], rel=BIN_WIDTH)


@given(samples, st.floats(0.001, 0.999))
@settings(deadline=None, max_examples=50)
def test_quantile_inverts_the_tail(sample: list[float], q: float) -> None:
    counts = binned(np.array(sample))
    assert tail_from_counts(counts, quantile_from_counts(counts, q)) == pytest.approx(1 - q, abs=1e-9)


# ---- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [math.nan, -1e-9, -math.inf, [1.0, math.nan]])
def test_times_out_of_range(t: Any) -> None:
    with pytest.raises(ValueError, match=r"t must be >= 0, got .*(nan|-)"):
        tail_from_counts(np.zeros(BINS, dtype=np.int64), t)


@pytest.mark.parametrize("q", [math.nan, -0.1, 1.1, [0.5, 2.0]])
def test_quantiles_out_of_range(q: Any) -> None:
    with pytest.raises(ValueError, match=r"q must be in \[0, 1\], got"):
        quantile_from_counts(np.zeros(BINS, dtype=np.int64), q)


@pytest.mark.parametrize("counts", [[1, 2, 3], np.zeros((BINS, 2)), 5])
def test_counts_of_another_shape(counts: Any) -> None:
    for function in (tail_from_counts, quantile_from_counts):
        with pytest.raises(ValueError, match=rf"shape of counts must be \(..., {BINS}\), got"):
            function(counts, 0.5)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.1, math.nan])
def test_levels_out_of_range(level: float) -> None:
    with pytest.raises(ValueError, match="level must be between 0 and 1, both excluded, got"):
        t_interval([1.0, 2.0], level)


@pytest.mark.parametrize("values", [[], 1.0, [[1.0, 2.0]]])
def test_rows_of_another_shape(values: Any) -> None:
    with pytest.raises(ValueError, match="values must be one-dimensional and not empty, got"):
        t_interval(values)


# ---- intervals --------------------------------------------------------------------------------------------


def test_student_by_hand() -> None:
    # Mean 3, standard deviation sqrt(2.5), t(4; 0.975) = 2.776445.
    found = t_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    half = 2.7764451051977987 * math.sqrt(2.5 / 5)
    assert found == pytest.approx((3.0, 3 - half, 3 + half, 0.95), rel=1e-12)
    assert found.half_width == pytest.approx(half, rel=1e-12)
    assert t_interval([1.0, 2.0, 3.0, 4.0, 5.0], 0.99).half_width > half


def test_half_width_of_a_cut_interval() -> None:
    assert Interval(0.2, 0.0, 0.9, 0.95).half_width == pytest.approx(0.7)


def test_one_row_has_no_interval() -> None:
    found = t_interval([2.0])
    assert found.value == 2.0
    assert math.isnan(found.low)
    assert math.isnan(found.high)


@pytest.mark.parametrize(("rows", "level"), [(2, 0.5), (5, 0.95), (20, 0.99)])
def test_student_covers(rows: int, level: float) -> None:
    trials = 4000
    values = np.random.default_rng(1).normal(3.0, 2.0, (trials, rows))
    found = [t_interval(row, level) for row in values]
    assert_coverage(sum(i.low <= 3.0 <= i.high for i in found), trials, level)


def test_jackknife_of_a_mean_is_student() -> None:
    values = np.random.default_rng(2).exponential(1.0, 12)
    sums = np.column_stack([values * 50, np.full(12, 50)])
    found = jackknife(sums, lambda sums: quotient(sums[..., 0], sums[..., 1]))
    expected = t_interval(values, 0.9)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert found.half_width(0.9) == pytest.approx(expected.half_width, rel=1e-9)


def test_jackknife_of_a_ratio_covers() -> None:
    """Rows of very different weight, with values that depend on it; 95 % ± 2 %, as it is not exact."""
    trials, rows = 2000, 20
    rng = np.random.default_rng(3)
    weights = rng.integers(20, 200, (trials, rows))
    totals = weights * (1 + weights / 100) + rng.normal(0, 30, (trials, rows))
    expected = np.arange(20, 200)
    truth = np.sum(expected * (1 + expected / 100)) / np.sum(expected)
    hits = 0
    for total, weight in zip(totals, weights, strict=True):
        found = jackknife(np.column_stack([total, weight]), lambda sums: quotient(sums[..., 0], sums[..., 1]))
        hits += bool(abs(found.value - truth) <= found.half_width(0.95))
    assert_coverage(hits, trials, 0.95, slack=0.02)


def test_tail_interval_covers() -> None:
    """Exponential values, about 370 events: 95 % ± 2 %; where no event is seen, there is no interval."""
    trials, rows, length = 400, 20, 1000
    rng = np.random.default_rng(4)
    times = bin_edges()[np.searchsorted(bin_edges(), [0.5, 4.0])]
    hits = np.zeros(2)
    for _ in range(trials):
        values = rng.exponential(1.0, (rows, length))
        low, high = tail_estimate(np.stack([binned(row) for row in values]), times).ends(0.95)
        hits += (low <= np.exp(-times)) & (np.exp(-times) <= high)
    for hit in hits:
        assert_coverage(int(hit), trials, 0.95, slack=0.02)


def test_rare_tails_are_cut_at_zero_and_unseen_ones_have_no_interval() -> None:
    rows = np.stack([binned(np.array([1.0] * 9 + [last])) for last in (1.0, 1.0, 8.0, 1.0)])
    estimate = tail_estimate(rows, [[0.0, 4.0, 16.0]])
    assert estimate.value.tolist() == [[1.0, 1 / 40, 0.0]]
    low, high = estimate.ends()
    assert low.shape == high.shape == (1, 3)
    assert (low[0, 0], high[0, 0], low[0, 1]) == (1.0, 1.0, 0.0)
    assert high[0, 1] == pytest.approx(t_interval([0, 0, 0.1, 0]).high, rel=1e-12)
    assert np.isnan([low[0, 2], high[0, 2]]).all()


def test_tail_intervals_end_at_one() -> None:
    rows = np.stack([binned(np.array([first] + [4.0] * 9)) for first in (1.0, 1.0, 4.0, 4.0)])
    estimate = tail_estimate(rows, 2.0)
    assert estimate.value == 0.95
    assert t_interval([0.9, 0.9, 1.0, 1.0], 0.99).high > 1.0
    assert estimate.ends(0.99)[1] == 1.0


def test_rows_without_data_do_not_count() -> None:
    sums = np.array([[3.0, 2.0], [5.0, 2.0], [4.0, 2.0]])
    more = np.concatenate([sums, np.zeros((5, 2))])
    ratio = [jackknife(rows, lambda sums: quotient(sums[..., 0], sums[..., 1])) for rows in (sums, more)]
    assert ratio[0].half_width() == pytest.approx(ratio[1].half_width(), rel=1e-12)


def test_differences_pair_the_rows() -> None:
    common = np.random.default_rng(5).normal(0, 10, 8)
    effect = np.array([1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0])

    def mean(values: Floats) -> Estimate:
        sums = np.column_stack([values, np.ones(8)])
        return jackknife(sums, lambda sums: quotient(sums[..., 0], sums[..., 1]))

    found = mean(common + effect).minus(mean(common))
    assert found.value == pytest.approx(1.5, rel=1e-9)
    assert found.half_width() == pytest.approx(t_interval(effect).half_width, rel=1e-9)
