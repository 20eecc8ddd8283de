"""Terms of a reward, and the tail cost: against closed forms and SciPy's quadrature, exact and from its table."""

import math
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, special, stats

from queue_env.distributions import law
from queue_env.kernel import env_layout
from queue_env.reward import CostTable, TailCost, job_costs, parse_reward, tail_cost
from queue_env.scenarios import Scenario, scenario

Floats = NDArray[np.float64]

LAWS: dict[str, dict[str, Any]] = {
    "pareto": {"law": "pareto", "alpha": 1.7, "mean": 1.0},
    "lomax": {"law": "lomax", "alpha": 2.0, "mean": 1.0},
    "bounded-pareto": {"law": "bounded-pareto", "alpha": 1.5, "low": 1.0, "high": 1e6, "mean": 1.0},
    "exponential": {"law": "exponential", "mean": 1.0},
    "weibull": {"law": "weibull", "shape": 0.4, "mean": 1.0},
    "increasing-hazard": {"law": "weibull", "shape": 3.0, "mean": 1.0},
    "lognormal": {"law": "lognormal", "sigma": 1.5, "mean": 1.0},
    "narrow": {"law": "lognormal", "sigma": 1e-4, "mean": 1.0},
    "hyperexponential": {"law": "hyperexponential", "mean": 1.0, "scv": 20.0},
    "uniform": {"law": "uniform", "low": 0.75, "high": 1.25},
    "deterministic": {"law": "deterministic", "value": 1.0},
    "empirical": {"law": "empirical", "values": [0.5, 0.5, 0.75, 1.0, 1.75, 2.5, 4.0]},
}
HEAVY = ("lomax", "lognormal")  # and without a kink: their tables are near exact


def model(name: str, load: float = 0.8) -> Scenario:
    """Two servers; c = 0.4 at the default load."""
    return scenario("high-load-2", sizes=LAWS[name], load=load)


def evaluated(table: CostTable, age: Floats) -> Floats:
    """What the kernel computes, as the table's interface states it."""
    bits = np.minimum(np.maximum(age, table.low), table.high).view(np.int64)
    place = (bits >> (52 - env_layout.COST_BITS)) - table.first
    u = (bits & (2 ** (52 - env_layout.COST_BITS) - 1)) * 2.0 ** -(52 - env_layout.COST_BITS)
    c = table.coefficients[place].T
    return np.asarray(c[0] + u * (c[1] + u * (c[2] + u * c[3])))


def ages_within(cost: TailCost, count: int, seed: int = 0) -> Floats:
    uniform = np.random.default_rng(seed).random(count)
    return cost.t0 * (cost.t1 / cost.t0) ** uniform


def integral(cost: TailCost, low: float, high: float) -> float:
    """∫ dt/(t·F̄(ct)) by SciPy, over log t, cut at quantiles: at all kinks and jumps, and as the tail runs out."""
    cuts = [cost.sizes.quantile(q) / cost.c for q in np.arange(1000) / 1000]
    cuts += [cost.sizes.tail_quantile(10.0**-k) / cost.c for k in np.arange(3.0, 9.0, 0.25)]
    ends = [low, *sorted({float(t) for t in cuts if low < t < high}), high]
    pieces = [
        integrate.quad(
            lambda u: 1 / float(cost.sizes.tail(cost.c * math.exp(u))), math.log(a), math.log(b), epsabs=0, epsrel=1e-11
        )[0]
        for a, b in pairwise(ends)
        if math.log(a) < math.log(b)
    ]
    return math.fsum(pieces)


# ---- the tail cost ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAWS)
def test_cost_is_the_integral(name: str) -> None:
    cost = tail_cost(model(name))
    span = math.log(cost.t1 / cost.t0)
    times = ages_within(cost, 12)
    expected = [integral(cost, cost.t0, t) / span for t in times]
    np.testing.assert_allclose(cost.of(times), expected, rtol=1e-9, atol=1e-12)
    if name != "uniform":  # near its end SciPy runs out of digits; there is a closed form
        assert cost.of(cost.t1) == pytest.approx(integral(cost, cost.t0, cost.t1) / span, rel=1e-9)


def test_pareto_in_closed_form() -> None:
    """F̄(ct) is 1 up to minimum/c, which lies within the range, and (minimum/ct)^alpha beyond."""
    sizes = law({"law": "pareto", "alpha": 1.7, "minimum": 0.5})
    cost = TailCost(1.0, 1e4, 0.4, sizes)
    times = np.concatenate([[1.0, 1.1, 1.25, 1.25000001, 1e4], ages_within(cost, 500)])
    above = np.maximum(times / 1.25, 1.0) ** 1.7
    expected = (np.log(np.minimum(times, 1.25)) + (above - 1) / 1.7) / math.log(1e4)
    np.testing.assert_allclose(cost.of(times), expected, rtol=1e-12, atol=1e-15)


def test_lomax_in_closed_form() -> None:
    cost = tail_cost(model("lomax"))
    times = ages_within(cost, 500)
    y = cost.c * times  # the scale is 1
    start = cost.c * cost.t0
    expected = (np.log(y / start) + 2 * (y - start) + (y**2 - start**2) / 2) / math.log(1e4)
    np.testing.assert_allclose(cost.of(times), expected, rtol=1e-11)


def test_exponential_in_closed_form() -> None:
    cost = tail_cost(model("exponential"))
    times = ages_within(cost, 500)
    expected = (special.expi(cost.c * times) - special.expi(cost.c * cost.t0)) / math.log(cost.t1 / cost.t0)
    np.testing.assert_allclose(cost.of(times), expected, rtol=1e-10)


def test_uniform_in_closed_form() -> None:
    """Up to the end of the support, where a tail of 1e-9 is known to 1e-7 of it, and the cost to 1e-8."""
    cost = tail_cost(model("uniform"), (2.0, 1e4))  # all of it beyond 0.75/c, the kink
    times = np.append(ages_within(cost, 500), cost.t1)
    rest = (1.25 - cost.c * times) / (1.25 - cost.c * cost.t0)
    expected = 0.5 / 1.25 * np.log(times / cost.t0 / rest) / math.log(cost.t1 / cost.t0)
    np.testing.assert_allclose(cost.of(times[:-1]), expected[:-1], rtol=1e-9)
    assert cost.of(cost.t1) == pytest.approx(expected[-1], rel=2e-8)


def test_jumps_in_closed_form() -> None:
    """Between its atoms a tail is constant."""
    cost = tail_cost(model("empirical"))
    jumps = np.array([0.5, 0.75, 1.0, 1.75, 2.5, 4.0]) / cost.c
    tails = np.array([7, 5, 4, 3, 2, 1]) / 7
    times = ages_within(cost, 500)
    starts = np.concatenate([[0.0], jumps[:-1]])
    low, high = np.maximum(starts, cost.t0), np.minimum(jumps, times[:, None])
    expected = np.sum(np.log(np.maximum(high / low, 1.0)) / tails, axis=1) / math.log(cost.t1 / cost.t0)
    np.testing.assert_allclose(cost.of(times), expected, rtol=1e-12)
    alone = tail_cost(model("deterministic"))
    assert alone.of([1.0, math.sqrt(2.5), 2.5]) == pytest.approx([0, 0.5, 1], rel=1e-12)


def test_many_atoms() -> None:
    """The law of a trace: its cost is that of the law it was drawn from, within 5 % at a thousandth of the jobs.

    At q the empirical tail has a relative standard deviation of sqrt((1-q)/(q·count)), here below 1 %; so a miss by
    5 % is an event of five standard deviations, less than one in a million.
    """
    values = np.random.default_rng(5).exponential(1.0, 200_000)
    cost = TailCost(1.0, 6.9, 1.0, law({"law": "empirical", "values": values.tolist()}))
    smooth = TailCost(1.0, 6.9, 1.0, law(LAWS["exponential"]))
    np.testing.assert_allclose(cost.of([2.0, 4.0, 6.9]), smooth.of([2.0, 4.0, 6.9]), rtol=0.05)
    assert np.all(np.diff(evaluated(cost.table(), np.linspace(0.5, 7.0, 20_000))) >= -1e-10)


@pytest.mark.parametrize("name", LAWS)
def test_cost_outside_the_range_and_its_density(name: str) -> None:
    cost = tail_cost(model(name))
    assert cost.of([0.0, cost.t0 / 2, cost.t0]).tolist() == [0.0, 0.0, 0.0]
    assert cost.of([cost.t1 * 1.01, 1e300, math.inf]).tolist() == [cost.of(cost.t1)] * 3
    assert cost.density([0.0, cost.t0 * 0.999, cost.t1, math.inf]).tolist() == [0.0] * 4
    times = np.sort(ages_within(cost, 2000))
    assert np.all(np.diff(cost.of(times)) > 0)
    expected = 1 / (math.log(cost.t1 / cost.t0) * times * cost.sizes.tail(cost.c * times))
    np.testing.assert_allclose(cost.density(times), expected, rtol=1e-12)


def test_shapes() -> None:
    cost = tail_cost(model("pareto"))
    for function in (cost.of, cost.density):
        assert isinstance(function(3.0), float)
        assert function([[3.0, 4.0, 5.0]]).shape == (1, 3)
        assert function([]).shape == (0,)
    many = ages_within(cost, 100_000)
    assert cost.of(many)[::1000].tolist() == cost.of(many[::1000]).tolist()


@pytest.mark.parametrize("rate", [0.7, 0.05])
def test_mean_cost_is_the_score(rate: float) -> None:
    """E[w(T)] for T exponential is 1/ln(t1/t0)·∫ P[T>t]/F̄(ct) dt/t."""
    cost = tail_cost(model("pareto"), (1.0, 100.0))
    span = math.log(cost.t1 / cost.t0)
    kink = cost.sizes.support[0] / cost.c
    total = 0.0
    for low, high in ((cost.t0, kink), (kink, 10.0), (10.0, cost.t1)):
        total += integrate.quad(
            lambda t: rate * math.exp(-rate * t) * float(cost.of(t)), low, high, epsabs=1e-12, epsrel=1e-10
        )[0]
    total += math.exp(-rate * cost.t1) * float(cost.of(cost.t1))
    ratio = lambda u: math.exp(-rate * math.exp(u)) / float(cost.sizes.tail(cost.c * math.exp(u)))  # noqa: E731
    score = sum(
        integrate.quad(ratio, math.log(low), math.log(high), epsabs=1e-12, epsrel=1e-10)[0] / span
        for low, high in ((cost.t0, kink), (kink, 10.0), (10.0, cost.t1))
    )
    assert total == pytest.approx(score, rel=1e-8)


def test_the_bound_itself_has_score_one() -> None:
    """A sample with exactly the tail F̄(ct): R = 1, up to what its steps leave out."""
    cost = tail_cost(model("pareto"), (1.0, 100.0))
    count = 1_000_000
    responses = cost.sizes.tail_quantile((np.arange(count) + 0.5) / count) / cost.c
    assert np.mean(cost.of(responses)) == pytest.approx(1.0, abs=1e-4)


# ---- the range --------------------------------------------------------------------------------------------


def test_range_in_mean_service_times() -> None:
    cost = tail_cost(scenario("high-load-2", sizes={"law": "pareto", "alpha": 1.5, "mean": 3.0}))
    assert (cost.t0, cost.t1) == (3.0, 3e4)
    assert cost.c == pytest.approx(0.4, rel=1e-12)
    assert tail_cost(scenario("low-load-4"), [2, 50]).c == 1.0
    narrow = tail_cost(scenario("low-load-4"), (2, 50))
    assert (narrow.t0, narrow.t1) == (2.0, 50.0)


@pytest.mark.parametrize("name", LAWS)
def test_range_ends_where_the_bound_is_a_billionth(name: str) -> None:
    cost = tail_cost(model(name), (0.5, 1e12))
    assert cost.t1 == pytest.approx(float(cost.sizes.tail_quantile(1e-9)) / cost.c, rel=1e-14)
    assert cost.sizes.tail(cost.c * cost.t1) >= 0.999e-9
    assert cost.of(cost.t1) > 0


def test_no_bound_no_cost() -> None:
    with pytest.raises(ValueError, match=r"tail_cost: load of the scenario must be < 1: .*overload, got 1\.2"):
        tail_cost(scenario("impatient-100"))


@pytest.mark.parametrize(
    ("tail_range", "message"),
    [
        ((1.0,), r"tail_range must be two numbers, from and to, in mean service times, got \(1\.0,\)"),
        ("12", "tail_range must be two numbers"),
        (5.0, "tail_range must be two numbers"),
        (None, "tail_range must be two numbers"),
        ((0.0, 10.0), r"tail_range\[0\] must be a finite number > 0, got 0\.0"),
        ((1.0, math.inf), r"tail_range\[1\] must be a finite number > 0, got inf"),
        ((math.nan, 1.0), r"tail_range\[0\] must be a finite number > 0, got nan"),
        (("1", 10.0), r"tail_range\[0\] must be a finite number > 0, got '1'"),
        ((True, 10.0), r"tail_range\[0\] must be a finite number > 0, got True"),
        ((10.0, 10.0), r"tail_range\[1\] must be > tail_range\[0\] = 10\.0, got 10\.0"),
        ((10.0, 1.0), r"tail_range\[1\] must be > tail_range\[0\] = 10\.0, got 1\.0"),
        ((100.0, 1e4), r"tail_range\[0\] must be < 51\.8082 mean service times, where .* got 100\.0"),
    ],
)
def test_ranges_that_are_refused(tail_range: Any, message: str) -> None:
    with pytest.raises(ValueError, match="tail_cost: " + message):
        tail_cost(scenario("light-2"), tail_range)


def test_nothing_left_of_the_range() -> None:
    """With a server to spare no job of size one is late at age one."""
    with pytest.raises(ValueError, match=r"tail_range\[0\] must be < 1 mean service times, .* got 1\.0"):
        tail_cost(model("deterministic", load=0.4))


@pytest.mark.parametrize("t", [math.nan, -1.0, [1.0, -1.0]])
def test_times_that_are_refused(t: Any) -> None:
    cost = tail_cost(scenario("high-load-2"))
    for function in (cost.of, cost.density):
        with pytest.raises(ValueError, match="t must be >= 0, got"):
            function(t)


# ---- its table --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HEAVY)
@pytest.mark.parametrize("tail_range", [(1.0, 1e4), (0.37, 512.0), (1.0, 1.001), (1.0, math.nextafter(1024.0, 0))])
def test_table_of_a_heavy_tail(name: str, tail_range: tuple[float, float]) -> None:
    cost = tail_cost(model(name), tail_range)
    times = ages_within(cost, 20_000)
    exact = cost.of(times)
    np.testing.assert_allclose(evaluated(cost.table(), times), exact, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["high-load-2", "high-load-4", "high-load-10", "low-load-4"])
def test_table_of_a_named_scenario(name: str) -> None:
    cost = tail_cost(scenario(name))
    times = ages_within(cost, 20_000)
    np.testing.assert_allclose(evaluated(cost.table(), times), cost.of(times), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["exponential", "hyperexponential", "weibull", "increasing-hazard"])
def test_table_of_a_light_tail(name: str) -> None:
    """Off by x⁴/384 at most where the tail falls by a factor e^x within a bin."""
    cost = tail_cost(model(name))
    times = ages_within(cost, 20_000)
    fall = -cost.sizes.log_tail(cost.c * times * (1 + 2**-6)) + cost.sizes.log_tail(cost.c * times * (1 - 2**-6))
    found, exact = evaluated(cost.table(), times), cost.of(times)
    assert np.all(np.abs(found - exact) <= 1e-8 * exact + 1e-9 + fall**4 / 384 * exact)
    assert np.max(np.abs(found / exact - 1)[exact > 1]) < 2e-4


@pytest.mark.parametrize("name", LAWS)
def test_table_is_exact_at_the_edges_of_its_bins(name: str) -> None:
    cost = tail_cost(model(name), (0.3, 1e4))
    table = cost.table()
    bins = np.arange(1, len(table.coefficients)) + table.first
    edges = (bins << (52 - env_layout.COST_BITS)).view(np.float64)
    for times in (edges, np.nextafter(edges, 0), np.array([cost.t0, cost.t1])):
        np.testing.assert_allclose(evaluated(table, times), cost.of(times), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_table_is_monotone_and_between_its_edges(name: str) -> None:
    cost = tail_cost(model(name), (0.3, 1e4))
    table = cost.table()
    assert table.coefficients.flags.c_contiguous
    assert table.coefficients.dtype == np.float64
    assert (table.low, table.high) == (cost.t0, cost.t1)
    times = np.sort(np.concatenate([ages_within(cost, 100_000), cost.c * np.linspace(0.3, 4, 1000)]))
    found = evaluated(table, times)
    assert np.min(np.diff(found)) >= -1e-14 * found[-1]
    assert np.max(np.abs(evaluated(table, np.array([0.0, cost.t0])))) < 1e-9
    beyond = evaluated(table, np.array([cost.t1, 1e300, math.inf]))
    np.testing.assert_allclose(beyond, np.full(3, cost.of(cost.t1)), rtol=1e-9)


def test_a_kink_spoils_no_more_than_its_bin() -> None:
    """The tail of a Pareto law is 1 up to its minimum; the slope of 1/F̄ jumps there."""
    cost = tail_cost(model("pareto"))
    kink = cost.sizes.support[0] / cost.c
    times = np.concatenate([ages_within(cost, 20_000), np.linspace(kink * 0.95, kink * 1.05, 10_000)])
    error = np.abs(evaluated(cost.table(), times) - cost.of(times))
    near = (times > kink * (1 - 2**-6)) & (times < kink * (1 + 2**-6))
    assert np.max(error[near]) < 1e-6
    assert np.all(error[~near] <= 1e-8 * cost.of(times[~near]) + 1e-9)


@given(st.floats(-3, 3), st.floats(1e-6, 12), st.sampled_from(sorted(LAWS)), st.sampled_from([0.4, 0.5, 0.8, 0.999]))
def test_table_over_any_range(start: float, length: float, name: str, load: float) -> None:
    """Ranges of any length, also within one bin: no warning, zero at the start, exact at the end, increasing."""
    case = model(name, load)
    low = 10.0**start
    high = low * (1 + length) if length < 1 else low * 10**length
    assume(low * case.sizes.mean * (1 + 1e-6) < case.sizes.tail_quantile(1e-9) / case.c)
    cost = tail_cost(case, (low, high))
    times = np.linspace(cost.t0, cost.t1, 50)
    found = evaluated(cost.table(), times)
    total = float(cost.of(cost.t1))
    assert abs(found[0]) <= 1e-9 * (1 + total)
    assert found[-1] == pytest.approx(total, rel=1e-7, abs=1e-9)
    assert np.min(np.diff(found)) >= -1e-9 * total


# ---- reading a reward -------------------------------------------------------------------------------------


def test_a_term_by_name() -> None:
    assert parse_reward("tail") == (("tail", env_layout.COST_TAIL, 1.0, 0.0),)
    assert parse_reward("exceed(10)") == (("exceed(10)", env_layout.COST_EXCEED, 1.0, 10.0),)


def test_all_terms() -> None:
    spec = {
        "tail": 1,
        "mean": 0.5,
        "slowdown": 0,
        "moment(2.0)": 1e-3,
        " moment( 0.1234567891 ) ": 2.0,
        "exceed(0)": np.float64(3.0),
        "wait": 4,
        "abandon": 5,
    }
    terms = parse_reward(spec)
    assert [term.name for term in terms] == [
        "tail", "mean", "slowdown", "moment(2)", "moment(0.1234567891)", "exceed(0)", "wait", "abandon",
    ]  # fmt: skip
    assert [term.kind for term in terms] == [0, 1, 2, 3, 3, 4, 5, 6]
    assert [term.weight for term in terms] == [1.0, 0.5, 0.0, 1e-3, 2.0, 3.0, 4.0, 5.0]
    assert [term.number for term in terms] == [0, 0, 0, 2.0, 0.1234567891, 0.0, 0, 0]
    assert all(type(term.weight) is float and type(term.number) is float for term in terms)
    assert parse_reward({term.name: term.weight for term in terms}) == terms


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("tial", r"term must be one of tail, mean, .*, abandon \(perhaps tail\), got 'tial'"),
        ("Tail", r"term must be one of .*\(perhaps tail\), got 'Tail'"),
        ("moments(2)", r"term must be one of .*\(perhaps moment\), got 'moments\(2\)'"),
        ("moment", r"term must be one of .*, moment\(p\), exceed\(t\), wait, abandon, got 'moment'"),
        ("tail(2)", r"term must be one of .* abandon, got 'tail\(2\)'"),
        ("moment(2", r"term must be one of .*got 'moment\(2'"),
        ("", "term must be one of .*got ''"),
        ({5: 1.0}, "term must be one of .*got 5"),
        ("moment(0)", r"number in moment\(p\) must be a finite number > 0, got 0\.0"),
        ("moment(-1)", r"number in moment\(p\) must be a finite number > 0, got -1\.0"),
        ("moment(inf)", r"number in moment\(p\) must be a finite number > 0, got inf"),
        ("moment(two)", r"number in moment\(p\) must be a finite number > 0, got 'two'"),
        ("moment()", r"number in moment\(p\) must be a finite number > 0, got ''"),
        ("exceed(-1)", r"number in exceed\(t\) must be a finite number >= 0, got -1\.0"),
        ("exceed(nan)", r"number in exceed\(t\) must be a finite number >= 0, got nan"),
        ({"tail": -1.0}, r"weight of tail must be a finite number >= 0, got -1\.0"),
        ({"moment(2.0)": math.inf}, r"weight of moment\(2\) must be a finite number >= 0, got inf"),
        ({"wait": "1"}, "weight of wait must be a finite number >= 0, got '1'"),
        ({"wait": True}, "weight of wait must be a finite number >= 0, got True"),
        ({"moment(2)": 1, "moment(2.0)": 1}, r"terms must be different, but 'moment\(2\)' comes twice, got \['mom"),
        ({}, r"spec must be a term or a mapping from 1 to 8 terms to weights, got \{\}"),
        ({f"exceed({k})": 1.0 for k in range(9)}, "spec must be a term or a mapping from 1 to 8 terms"),
        (["tail"], r"spec must be a term or a mapping .*got \['tail'\]"),
        (None, "spec must be a term or a mapping .*got None"),
        (1.0, "spec must be a term or a mapping .*got 1.0"),
    ],
)
def test_rewards_that_are_refused(spec: Any, message: str) -> None:
    with pytest.raises(ValueError, match="^reward: " + message):
        parse_reward(spec)


# ---- costs by job -----------------------------------------------------------------------------------------

JOBS: dict[str, Any] = {
    "ages": [2.0, 10.0, 10.5, 0.0],
    "sizes": [1.0, 4.0, 0.5, 2.0],
    "waiting": [1.0, 6.0, 10.5, 0.0],
    "abandoned": [False, False, True, False],
}


def test_costs_by_hand() -> None:
    terms = parse_reward(
        dict.fromkeys(["mean", "slowdown", "moment(2)", "moment(0.5)", "exceed(10)", "exceed(0)", "wait", "abandon"], 7)
    )
    assert job_costs(terms, **JOBS).tolist() == [
        [2.0, 10.0, 10.5, 0.0],
        [2.0, 2.5, 21.0, 0.0],
        [4.0, 100.0, 110.25, 0.0],
        [math.sqrt(2), math.sqrt(10), math.sqrt(10.5), 0.0],
        [0.0, 0.0, 1.0, 0.0],
        [1.0, 1.0, 1.0, 0.0],
        [1.0, 6.0, 10.5, 0.0],
        [0.0, 0.0, 1.0, 0.0],
    ]


def test_tail_costs_of_jobs() -> None:
    cost = tail_cost(scenario("high-load-2"))
    found = job_costs(parse_reward({"wait": 1.0, "tail": 1.0}), **JOBS, tail=cost)
    assert found.shape == (2, 4)
    assert found[1].tolist() == cost.of(JOBS["ages"]).tolist()
    assert found[1, 3] == 0.0


def test_no_jobs() -> None:
    empty: Any = []
    found = job_costs(parse_reward("mean"), ages=empty, sizes=empty, waiting=empty, abandoned=empty)
    assert found.shape == (1, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": [1.0]}, r"shape of sizes must be \(jobs,\), that of ages, \(4,\), got \(1,\)"),
        ({"abandoned": True}, r"shape of abandoned must be \(jobs,\), that of ages, \(4,\), got \(\)"),
        ({"ages": [[1.0]], "sizes": [[1.0]]}, r"shape of sizes must be \(jobs,\)"),
        ({"ages": [1.0, math.nan, 1.0, 1.0]}, "job_costs: ages must be >= 0, got"),
    ],
)
def test_records_that_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        job_costs(parse_reward("mean"), **{**JOBS, **changes})


def test_tail_costs_need_a_tail_cost() -> None:
    with pytest.raises(ValueError, match="job_costs: tail must be a TailCost where there is a term 'tail', got None"):
        job_costs(parse_reward("tail"), **JOBS)


def test_mean_tail_cost_of_a_sample_is_its_score() -> None:
    """The sum over jobs of w(T) is the integral of the empirical tail over F̄(ct), job by job and bin by bin."""
    cost = tail_cost(scenario("low-load-4"), (1.0, 50.0))
    ages = np.sort(stats.expon.ppf((np.arange(40) + 0.5) / 40, scale=8.0))
    mean = job_costs(
        parse_reward("tail"), ages=ages, sizes=np.ones(40), waiting=np.zeros(40), abandoned=np.zeros(40), tail=cost
    ).mean()
    ends = np.clip(np.concatenate([[1.0], ages, [50.0]]), 1.0, 50.0)
    ends = np.unique(ends)
    steps = [np.mean(ages > low) * integral(cost, low, high) for low, high in pairwise(ends.tolist())]
    assert mean == pytest.approx(sum(steps) / math.log(50.0), rel=1e-9)


def test_no_compiler_is_loaded() -> None:
    code = "import sys, queue_env.reward; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
