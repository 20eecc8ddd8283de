"""What became of jobs by their size: against records of every job, closed forms, and sums by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from queue_env import Workload, simulate, theory
from queue_env.by_size import size_classes, size_edges
from queue_env.distributions import law
from queue_env.kernel.layout import SIZE_BINS
from queue_env.tail import Interval
from tests.intervals import LEVEL, check_interval, queue, run

EXPONENTIAL = law({"law": "exponential", "mean": 1.0})


def counts(served: list[dict[float, int]], abandoned: list[dict[float, int]]) -> NDArray[np.int64]:
    """Histograms of how many jobs had which size, by row."""
    found = np.zeros((len(served), 2, SIZE_BINS), np.int64)
    for row, outcomes in enumerate(zip(served, abandoned, strict=True)):
        for outcome, sizes in enumerate(outcomes):
            for size, number in sizes.items():
                found[row, outcome, np.flatnonzero(size_edges() <= size)[-1]] += number
    return found


# ---- the counts of a run ----------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", ["queue", "fractional", "sojourn"])
@pytest.mark.parametrize("policy", ["fcfs", "srpt", "ps", "las", "backlog-split", "loss-priority:tau=1"])
def test_counts_are_those_of_the_records(policy: str, clock: str) -> None:
    """Sizes over 30 octaves, among them powers of two, which are ends of bins; more jobs than there is room for."""
    rng = np.random.default_rng(1)
    sizes = np.exp2(np.where(rng.random(4000) < 0.2, rng.integers(-20, 3, 4000), rng.uniform(-25, 5, 4000)))
    workload = Workload(np.cumsum(rng.exponential(0.25, 4000)), sizes, rng.exponential(100.0, 4000))
    result = simulate(workload, policy, servers=2, clock=clock, records=True)
    assert result.records is not None
    left = result.records["outcome"]
    assert (left == 1).any() == ((policy, clock) != ("ps", "queue"))  # nobody is at rate 0 there
    for outcome in (0, 1):
        mantissa, exponent = np.frexp(result.records["size"][left == outcome])
        place = (exponent - 1 + 40) * 16 + np.floor((2 * mantissa - 1) * 16).astype(int)
        np.testing.assert_array_equal(result.size_counts[:, outcome].sum(axis=0), np.bincount(place, minlength=1600))


def test_sizes_beyond_the_bins_are_in_the_first_and_the_last() -> None:
    result = simulate(Workload([0.0, 1.0], [1e-13, 1e19]), "fcfs", servers=2)
    assert np.flatnonzero(result.size_counts.sum(axis=(0, 1))).tolist() == [0, SIZE_BINS - 1]
    found = result.by_size([0.0, 1.0, np.inf])
    assert (found.edges.tolist(), found.jobs.tolist()) == ([0.0, 1.0, math.inf], [1, 1])


# ---- closed forms -----------------------------------------------------------------------------------------


def intervals(found: Any) -> list[Interval]:
    return [Interval(*ends, LEVEL) for ends in zip(found.served, found.low, found.high, strict=True)]


def test_blind_policies_serve_all_sizes_alike() -> None:
    """M/M/10+M: under fcfs a job's fate does not depend on its size. Thirty intervals of 99.9 %."""
    exact = theory.erlang_a(12.0, 1.0, 10, 0.5)
    scenario = queue(EXPONENTIAL, 1.2, 10, patience={"law": "exponential", "mean": 2.0})
    for result in run(scenario, ["fcfs", "lcfs"], 1_000_000, seed=1).values():
        found = result.by_size(15, LEVEL)
        assert len(found.jobs) == 15
        for k, interval in enumerate(intervals(found)):
            check_interval(interval, 1.0 - exact.abandonment, 0.03, f"{result.policy}, class {k}")


def test_with_a_server_for_each_a_job_is_served_if_its_patience_is_longer_than_its_size() -> None:
    """P[served | size in [a, b)] = ∫ e^{-θx} f(x) dx / P[a <= S < b], with f(x) = e^{-x}; the clock always runs."""
    theta = 0.5
    scenario = queue(EXPONENTIAL, 0.2, 200, patience={"law": "exponential", "mean": 1 / theta}, clock="sojourn")
    found = run(scenario, ["fcfs"], 1_000_000, seed=2)["fcfs"].by_size([0, 0.25, 0.5, 1, 2, 4, 8], LEVEL)
    low, high = found.edges[:-1], found.edges[1:]
    exact = (np.exp(-1.5 * low) - np.exp(-1.5 * high)) / 1.5 / (np.exp(-low) - np.exp(-high))
    for interval, value in zip(intervals(found), exact.tolist(), strict=True):
        check_interval(interval, value, 0.1, "served")


# ---- classes ----------------------------------------------------------------------------------------------


def test_ends_are_those_of_bins() -> None:
    edges = size_edges()
    assert (edges[0], edges[-1], len(edges)) == (0.0, math.inf, SIZE_BINS + 1)
    inner = edges[(edges >= 1) & (edges <= 2)]
    np.testing.assert_array_equal(inner, 1 + np.arange(17) / 16)
    with pytest.raises(ValueError, match="read-only"):
        edges[3] = 1.0


def test_share_in_each_class_is_pooled_over_rows() -> None:
    found = size_classes(counts([{1.0: 3, 2.0: 1, 9.0: 5}, {1.0: 1}], [{2.0: 1}, {1.0: 4, 2.0: 2, 0.1: 6}]), [1, 2, 4])
    np.testing.assert_array_equal(found.edges, [1, 2, 4])
    np.testing.assert_array_equal(found.jobs, [8, 4])
    np.testing.assert_array_equal(found.served, [0.5, 0.25])
    np.testing.assert_array_equal(found.abandoned, [0.5, 0.75])
    assert (found.low < found.served).all()
    assert (found.high > found.served).all()
    assert found.to_list()[1] == {
        "from": 2.0, "to": 4.0, "jobs": 4, "value": 0.25, "low": found.low[1], "high": found.high[1],
    }  # fmt: skip


def test_interval_is_that_of_students_over_rows_of_equal_size() -> None:
    served = [20, 22, 17, 25]
    made = counts([{1.0: k} for k in served], [{1.0: 50 - k} for k in served])
    found = size_classes(made, 1, level=0.9)
    half = 2.353363 * np.std(np.array(served) / 50, ddof=1) / 2  # t of 3 degrees of freedom at 95 %
    np.testing.assert_allclose([found.low[0], found.high[0]], [0.42 - half, 0.42 + half], rtol=1e-6)


def test_no_interval_where_all_were_served_or_none_or_nobody_came() -> None:
    found = size_classes(counts([{1.0: 3}, {1.0: 2}], [{4.0: 1}, {4.0: 2}]), [1, 2, 4, 8])
    np.testing.assert_array_equal(found.served, [1.0, np.nan, 0.0])
    assert np.isnan([found.low, found.high]).all()
    assert found.to_list()[1] == {"from": 2.0, "to": 4.0, "jobs": 0, "value": None, "low": None, "high": None}


def test_classes_of_about_as_many_jobs() -> None:
    result = simulate("impatient-100", "srpt", jobs=100_000, seed=1)
    for number in (1, 4, 10):
        found = result.by_size(number)
        assert len(found.jobs) == number
        assert found.jobs.sum() == 100_000
        # A bin holds at most 6.25 % of an octave of sizes, e^{-1}·ln 2/16 = 1.6 % of exponential ones.
        assert np.abs(found.jobs - 100_000 / number).max() < 2 * 1600
    assert result.by_size(10_000).jobs.min() > 0
    ends = result.by_size(3).edges
    np.testing.assert_array_equal(result.by_size(ends).served, result.by_size(3).served)


def test_one_class_holds_all() -> None:
    result = simulate("impatient-100", "srpt", jobs=50_000, seed=1)
    found = result.by_size(1)
    assert found.served[0] == pytest.approx(1 - result.abandonment, rel=1e-12)
    made = size_classes(np.zeros((2, 2, SIZE_BINS), np.int64), 10)
    assert (made.edges.tolist(), made.jobs.tolist()) == ([0.0, math.inf], [0])


def test_ends_are_moved_to_the_nearest_of_bins() -> None:
    made = counts([{1.0: 1}], [{1.0: 1}])
    np.testing.assert_array_equal(size_classes(made, [0.99, 1.03, 1.04, 1.99]).edges, [1, 1.0625, 2])


@pytest.mark.parametrize("classes", [0, -1, 2.5, [1.0], [2.0, 1.0], [-1.0, 1.0], [1.0, 1.001], [math.nan, 1.0], "x"])
def test_classes_that_are_none(classes: Any) -> None:
    with pytest.raises(ValueError, match="by_size: classes must be"):
        size_classes(counts([{1.0: 1}], [{1.0: 1}]), classes)
