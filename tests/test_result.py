"""Results against plain sums over the jobs they were made from; intervals by their coverage."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from queue_env.distributions import law
from queue_env.kernel.layout import BINS, SIZE_BINS, STATS
from queue_env.quantities import QUANTITIES
from queue_env.result import QUANTILES, Result
from queue_env.tail import t_interval

FALSE_ALARM = 1e-6  # of each statistical assertion
BIN_WIDTH = 1 / 128

Floats = NDArray[np.float64]
PARETO = law({"law": "pareto", "alpha": 1.5, "mean": 1})
SCENARIO = {"name": "custom", "servers": 2, "load": 0.8, "sizes": PARETO.spec()}


def binned(rows: list[Floats], per_octave: int = 128) -> NDArray[np.int64]:
    """Histograms by logarithms and fractions of octaves, not by the kernel's bits, shape (rows, bins)."""
    bins = BINS * per_octave // 128
    counts = np.zeros((len(rows), bins), dtype=np.int64)
    for row, values in enumerate(rows):
        fraction, exponent = np.frexp(values)  # fraction in [1/2, 1)
        place = (exponent - 1 + 40) * per_octave + np.floor((2 * fraction - 1) * per_octave).astype(int)
        counts[row] = np.bincount(np.clip(place, 0, bins - 1), minlength=bins)
    return counts


def result(responses: list[Floats], sizes: list[Floats] | None = None, **changes: Any) -> Result:
    """A result from the response times of the served jobs of each row; waiting is what is not size.

    `abandoned` (list of waiting times, one array a row; their sizes in `lost`, 1 if not given) and `present`
    (counts) add other jobs; further changes are fields of `Result`.
    """
    rows = len(responses)
    sizes = sizes or [np.ones(len(row)) for row in responses]
    abandoned = changes.pop("abandoned", [np.zeros(0)] * rows)
    lost = changes.pop("lost", [np.ones(len(row)) for row in abandoned])
    sums = np.zeros(rows, STATS)
    slowdowns = [t / s for t, s in zip(responses, sizes, strict=True)]
    waiting = [np.concatenate([t - s, a]) for t, s, a in zip(responses, sizes, abandoned, strict=True)]
    for name, values in (("response", responses), ("slowdown", slowdowns), ("waiting", waiting)):
        sums[f"{name}_sum"] = [np.sum(row) for row in values]
        sums[f"{name}_square_sum"] = [np.sum(row**2) for row in values]
        if name != "waiting":
            sums[f"{name}_max"] = [np.max(row, initial=0.0) for row in values]
    sums["size_sum"] = [np.sum(row) for row in sizes]
    sums["abandoned_time_sum"] = [np.sum(row) for row in abandoned]
    sums["served"] = [len(row) for row in responses]
    sums["abandoned"] = [len(row) for row in abandoned]
    sums["present"] = changes.pop("present", 0)
    sums["counted"] = sums["served"] + sums["abandoned"]
    sums["waited"] = [np.count_nonzero(row > 0) for row in waiting]
    jobs = int(np.sum(sums["counted"] + sums["present"]))
    given: dict[str, Any] = {
        "policy": "srpt",
        "scenario": SCENARIO,
        "servers": 2,
        "spare": 0.4,
        "load": 0.8,
        "seed": 7,
        "jobs": jobs,
        "simulated": jobs + 100,
        "streams": rows,
        "seconds": 0.5,
        "interrupted": False,
        "sizes": PARETO,
        "stats": sums,
        "response_counts": binned(responses),
        "slowdown_counts": binned(slowdowns),
        "size_counts": np.stack([binned(sizes, 16), binned(lost, 16)], axis=1),
        "window": np.full(rows, 100.0),
        "number_area": np.full(rows, 250.0),
        "busy_area": np.full(rows, 160.0),
        "served_in_window": np.full(rows, 130.0),
        "little_gaps": np.full(rows, 1e-15),
    }
    return Result(**(given | changes))


def pareto_result(seed: int = 1, rows: int = 10, length: int = 2000, **changes: Any) -> Result:
    rng = np.random.default_rng(seed)
    sizes = [PARETO.sample(rng, length) for _ in range(rows)]
    return result([size * (1 + rng.exponential(1.0, length)) for size in sizes], sizes, **changes)


def assert_coverage(hits: int, trials: int, level: float, slack: float) -> None:
    """The number of intervals that hold the truth is what a binomial variable at level ± slack can be."""
    low = stats.binom.ppf(FALSE_ALARM / 2, trials, level - slack)
    high = stats.binom.isf(FALSE_ALARM / 2, trials, level + slack)
    assert low <= hits <= high, f"{hits / trials:.3f} of the intervals hold the truth, not {level}"


# ---- values -----------------------------------------------------------------------------------------------


def test_means_pool_all_jobs() -> None:
    """Rows of different length: the mean over jobs, not that over rows."""
    responses = [np.array([2.0, 3.0, 5.0]), np.array([4.0])]
    sizes = [np.array([2.0, 1.0, 4.0]), np.array([0.5])]
    found = result(responses, sizes, abandoned=[np.array([1.5]), np.array([0.0, 2.5])], present=[0, 3])
    times = np.concatenate(responses)
    assert found.mean_response == np.mean(times)
    assert found.std_response == pytest.approx(np.std(times), rel=1e-12)
    assert found.max_response == 5.0
    assert found.mean_slowdown == np.mean([1, 3, 1.25, 8])
    assert found.max_slowdown == 8.0
    assert found.mean_waiting == np.mean([0, 2, 1, 3.5, 1.5, 0, 2.5])
    assert found.waited_fraction == 5 / 7
    assert (found.served, found.abandoned, found.present) == (4, 3, 3)
    assert found.abandonment == 0.3


def test_time_averages_pool_the_windows() -> None:
    """One system of two batches: the arrays of systems and of rows have lengths of their own."""
    one = np.array([2.0])
    found = result(
        [one, one, one],
        servers=4,
        window=np.array([10.0, 30.0]),
        number_area=np.array([20.0, 40.0]),
        busy_area=np.array([5.0, 75.0]),
        served_in_window=np.array([8.0, 12.0]),
        little_gaps=np.array([1e-12, 3e-15]),
    )
    assert found.mean_number == 1.5
    assert found.utilisation == 0.5
    assert found.throughput == 0.5
    assert found.little_law_gap == 1e-12


def test_no_served_job_leaves_no_number() -> None:
    found = result([np.zeros(0)] * 2, abandoned=[np.ones(3)] * 2)
    for value in (found.mean_response, found.max_response, found.mean_slowdown, found.max_slowdown):
        assert math.isnan(value)
    assert math.isnan(found.tail(1.0))
    assert math.isnan(found.quantile(0.5))
    assert (found.abandonment, found.mean_waiting) == (1.0, 1.0)
    assert found.to_dict()["mean_response"] == {"value": None, "low": None, "high": None}


def test_tail_and_quantiles_are_those_of_served_jobs() -> None:
    rng = np.random.default_rng(2)
    responses = [rng.exponential(3.0, 500) for _ in range(4)]
    found = result(responses, abandoned=[np.full(50, 100.0)] * 4)
    times = np.sort(np.concatenate(responses))
    grid = np.array([[0.0, 0.5], [3.0, 12.0]])
    mass = [[np.mean(np.abs(times / t - 1) <= BIN_WIDTH) if t else 0.0 for t in row] for row in grid]
    exact = np.mean(times[:, None, None] > grid, axis=0)
    assert np.all(np.abs(found.tail(grid) - exact) <= mass)
    assert found.tail(0.0) == 1.0
    np.testing.assert_allclose(found.events(grid), found.tail(grid) * 2000, rtol=1e-12)
    ranks = np.ceil(np.array(QUANTILES) * 2000).astype(int) - 1
    np.testing.assert_allclose(found.quantile(QUANTILES), times[ranks], rtol=BIN_WIDTH)
    assert found.quantile(1.0) == found.max_response == times[-1]
    # Sizes are 1 here, so slowdowns are response times.
    np.testing.assert_array_equal(found.slowdown_quantile(QUANTILES), found.quantile(QUANTILES))


def test_scalars_give_scalars() -> None:
    found = pareto_result()
    for value in (found.tail(2.0), found.normalised_tail(2.0), found.quantile(0.5), found.events(2.0)):
        assert isinstance(value, float)
    assert all(isinstance(end, float) for end in found.tail_interval(2.0))


@pytest.mark.parametrize(("spare", "c"), [(0.4, 0.4), (1.6, 1.0)])
def test_normalised_tail(spare: float, c: float) -> None:
    found = pareto_result(spare=spare)
    t = np.array([0.5, 5.0, 50.0])
    size_tail = np.minimum(1.0, (c * t * 3) ** -1.5)  # Pareto with mean 1 starts at 1/3
    np.testing.assert_allclose(found.tail_bound(t), size_tail, rtol=1e-12)
    np.testing.assert_allclose(found.normalised_tail(t), found.tail(t) / size_tail, rtol=1e-12)
    for plain, scaled in zip(found.tail_interval(t), found.normalised_tail_interval(t), strict=True):
        np.testing.assert_allclose(scaled, plain / size_tail, rtol=1e-12)


def test_normalised_tail_where_sizes_have_none() -> None:
    found = result([np.array([1.0, 5.0])] * 2, sizes=None, spare=0.5)
    bounded = dataclasses.replace(found, sizes=law({"law": "uniform", "low": 0.5, "high": 1.5}))
    ratio = bounded.normalised_tail([4.0, 100.0])
    assert ratio[0] == math.inf
    assert math.isnan(ratio[1])
    assert bounded.interval("normalised_tail:4").value == math.inf


@pytest.mark.parametrize("spare", [0.0, -20.0, math.nan])
def test_overload_has_no_normalised_tail(spare: float) -> None:
    found = pareto_result(spare=spare)
    for use in (found.tail_bound, found.normalised_tail, found.normalised_tail_interval):
        with pytest.raises(ValueError, match=f"spare must be > 0: .* got {spare}"):
            use(1.0)
    assert found.to_dict()["normalised_tail"] == []


# ---- intervals --------------------------------------------------------------------------------------------


def test_intervals_over_equal_rows_are_students() -> None:
    found = pareto_result(rows=6, number_area=np.array([200.0, 240.0, 260.0, 230.0, 210.0, 270.0]))
    for quantity, values in {
        "mean_response": found.stats["response_sum"] / 2000,
        "mean_slowdown": found.stats["slowdown_sum"] / 2000,
        "mean_waiting": found.stats["waiting_sum"] / 2000,
        "waited_fraction": found.stats["waited"] / 2000,
        "mean_number": found.number_area / 100.0,
    }.items():
        expected = t_interval(values, 0.9)
        assert found.interval(quantity, 0.9) == pytest.approx(expected, rel=1e-8), quantity


@pytest.mark.parametrize("quantity", [*QUANTITIES, "quantile:0.99", "slowdown_quantile:0.9", "tail:10"])
def test_interval_is_around_the_property(quantity: str) -> None:
    found = pareto_result(abandoned=[np.full(k, 0.5) for k in range(10)], present=np.arange(10))
    name, _, number = quantity.partition(":")
    value = getattr(found, name)(float(number)) if number else getattr(found, name)
    interval = found.interval(quantity)
    assert interval.value == found.value(quantity) == value
    assert interval.low <= value <= interval.high
    assert interval.low >= 0
    assert interval.level == 0.95


def test_scalar_and_array_tail_intervals_agree() -> None:
    found = pareto_result()
    times = [2.0, 10.0, 1e9]
    low, high = found.normalised_tail_interval(times, 0.99)
    for k, t in enumerate(times[:2]):
        assert found.interval(f"normalised_tail:{t}", 0.99)[1:3] == (low[k], high[k])
        np.testing.assert_array_equal(found.interval(f"tail:{t}", 0.99)[1:3], found.tail_interval(t, 0.99))
    assert found.tail(1e9) == 0
    assert np.isnan([low[2], high[2]]).all()


def test_shares_stay_shares() -> None:
    full = [np.full(5, 2.0)] * 3
    found = result(full, abandoned=[np.zeros(0), np.zeros(0), np.ones(1)])
    assert found.interval("abandonment").low == 0.0
    assert found.interval("waited_fraction")[:3] == (1.0, 1.0, 1.0)
    busy = dataclasses.replace(found, busy_area=np.array([200.0, 200.0, 190.0]))
    assert busy.interval("utilisation").high == 1.0


def test_single_row_has_values_without_intervals() -> None:
    found = result([np.array([1.0, 2.0, 8.0])])
    for interval in found.summary().values():
        assert math.isnan(interval.low)
        assert math.isnan(interval.high)
        assert not math.isnan(interval.value)


@pytest.mark.parametrize(
    ("quantity", "truth"),
    [
        ("mean_response", 2.0),
        ("std_response", 2.0),
        ("quantile:0.5", 2 * math.log(2)),
        ("quantile:0.99", 2 * math.log(100)),
        ("tail:6", math.exp(-3)),
        ("abandonment", 0.2),
    ],
)
def test_intervals_cover(quantity: str, truth: float) -> None:
    """Exponential response times, abandonment at random: 95 % ± 3 %, as only means of normals are exact."""
    trials, rows, length = 150, 12, 500
    rng = np.random.default_rng(6)
    hits = 0
    for _ in range(trials):
        served = rng.binomial(length, 0.8, rows)
        found = result(
            [rng.exponential(2.0, count) for count in served],
            abandoned=[np.ones(length - count) for count in served],
        )
        interval = found.interval(quantity)
        hits += interval.low <= truth <= interval.high
    assert_coverage(hits, trials, 0.95, slack=0.03)


# ---- reports ----------------------------------------------------------------------------------------------


def test_summary_has_all_quantities_and_the_decades_seen() -> None:
    found = result([np.array([1.0, 20.0, 2999.0])] * 2, sizes=None)
    for mean, decades in ((1.0, [1, 10, 100, 1000]), (30.0, [30, 300])):
        other = dataclasses.replace(found, sizes=PARETO.scaled(mean))
        names = [*QUANTITIES]
        names += [f"{kind}:{q}" for kind in ("quantile", "slowdown_quantile") for q in QUANTILES]
        names += [f"normalised_tail:{t}" for t in decades]
        summary = other.summary(0.9)
        assert list(summary) == names
        assert all(interval.level == 0.9 for interval in summary.values())


def test_to_dict_travels_as_json() -> None:
    found = pareto_result(records={"outcome": np.zeros(3)})
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert (plain["policy"], plain["scenario"], plain["jobs"]) == ("srpt", SCENARIO, 20_000)
    mean = found.interval("mean_response")
    assert plain["mean_response"] == {"value": mean.value, "low": mean.low, "high": mean.high}
    assert [entry["q"] for entry in plain["quantile"]] == list(QUANTILES)
    assert plain["slowdown_quantile"][1]["value"] == found.slowdown_quantile(0.9)
    tail = plain["normalised_tail"][1]
    assert (tail["t"], tail["value"]) == (10.0, found.normalised_tail(10.0))
    assert tail["events"] == found.events(10.0) > 0


def test_repr_is_short() -> None:
    assert len(repr(pareto_result())) < 500


# ---- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [-1.0, math.nan])
def test_times_out_of_range(t: float) -> None:
    found = pareto_result()
    for use in (found.tail, found.normalised_tail, found.tail_interval, found.normalised_tail_interval):
        with pytest.raises(ValueError, match="t must be >= 0, got"):
            use([1.0, t])
    with pytest.raises(ValueError, match="t must be >= 0, got"):
        found.interval(f"tail:{t}")


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, math.nan])
def test_levels_out_of_range(level: float) -> None:
    for use in (pareto_result().summary, pareto_result().to_dict):
        with pytest.raises(ValueError, match="level must be between 0 and 1"):
            use(level)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stats": np.zeros(2)}, "stats must be one-dimensional records of STATS"),
        ({"stats": np.zeros(0, STATS)}, "stats must be one-dimensional records of STATS"),
        ({"response_counts": np.zeros((1, BINS), dtype=np.int64)}, "shape of response_counts must be"),
        ({"slowdown_counts": np.zeros((2, BINS), dtype=np.int64)}, "row sums of slowdown_counts must be"),
        ({"size_counts": np.zeros((2, SIZE_BINS), dtype=np.int64)}, "shape of size_counts must be"),
        ({"size_counts": np.zeros((2, 2, SIZE_BINS), dtype=np.int64)}, "row sums of size_counts must be"),
        ({"window": np.zeros(0)}, "window must be one-dimensional and not empty"),
        ({"busy_area": np.zeros(3)}, "shape of busy_area must be"),
    ],
)
def test_arrays_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(result([np.array([1.0])] * 2), **changes)
