"""Arrival processes: exact rates, closed forms, memory and messages.

Statistical checks use two-sided intervals of 4.9 standard deviations: a false-alarm rate of 1e-6 each.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import linalg, stats

from queue_env import arrivals
from queue_env.arrivals import ArrivalProcess, MarkovModulated, Poisson, arrival_process
from queue_env.distributions import Law, law

SIGMAS = 4.9

POISSON = {"process": "poisson"}
RENEWAL = {"process": "renewal", "law": {"law": "weibull", "shape": 0.7, "mean": 3}}
MMPP = {"process": "mmpp", "rates": [4, 0.5], "generator": [[-0.1, 0.1], [0.05, -0.05]]}
CYCLE = {
    "process": "mmpp",
    "rates": [6, 0, 1],
    "generator": [[-0.5, 0.5, 0], [0, -0.25, 0.25], [0.2, 0.1, -0.3]],
}
BATCH = {"process": "batch", "batch": {"law": "geometric", "mean": 2.5}, "epochs": POISSON}
BURSTY_BATCH = {"process": "batch", "batch": {"law": "fixed", "count": 3}, "epochs": MMPP}
SPECS: list[dict[str, Any]] = [POISSON, RENEWAL, MMPP, CYCLE, BATCH, BURSTY_BATCH]


def check_mean(sample: NDArray[np.float64], expected: float) -> None:
    error = sample.std() / np.sqrt(sample.size)
    assert abs(sample.mean() - expected) < SIGMAS * error


def check_variance(sample: NDArray[np.float64], expected: float) -> None:
    check_mean((sample - sample.mean()) ** 2, expected)


def check_law(sample: NDArray[np.float64], expected: Law) -> None:
    assert stats.kstest(expected.cdf(sample), "uniform").pvalue > 1e-6


def counts(spec: Mapping[str, Any], rate: float, horizon: float, runs: int, seed: int) -> NDArray[np.float64]:
    """Arrivals in [0, horizon] in independent runs, drawn 32 gaps at a time."""
    rng = np.random.default_rng(seed)
    numbers = np.empty(runs)
    for run in range(runs):
        process, clock, number = arrival_process(spec, rate), 0.0, 0
        while clock <= horizon:
            times = clock + np.cumsum(process.gaps(rng, 32))
            number += int(np.searchsorted(times, horizon, side="right"))
            clock = float(times[-1])
        numbers[run] = number
    return numbers


def count_variance(process: MarkovModulated, horizon: float) -> float:
    """Var N(t) = λt + 2 π Λ (D t - D² (I - e^{Qt})) Λ 1, with D = (1π - Q)⁻¹ - 1π the deviation matrix."""
    q, rates, pi = process.generator, process.rates, process.stationary
    limit = np.outer(np.ones(pi.size), pi)
    deviation = np.linalg.inv(limit - q) - limit
    memory = deviation * horizon - deviation @ deviation @ (np.eye(pi.size) - linalg.expm(q * horizon))
    return float(process.rate * horizon + 2 * (pi * rates) @ memory @ rates)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("rate", [0.8, 1e-6, 95.0])
def test_rate_is_the_one_asked_for(spec: dict[str, Any], rate: float) -> None:
    assert arrival_process(spec, rate).rate == pytest.approx(rate, rel=1e-15)


@pytest.mark.parametrize("spec", SPECS)
def test_rate_only_sets_the_time_unit(spec: dict[str, Any]) -> None:
    slow = arrival_process(spec, 0.5).gaps(np.random.default_rng(1), 5_000)
    fast = arrival_process(spec, 8.0).gaps(np.random.default_rng(1), 5_000)
    np.testing.assert_allclose(fast, slow / 16, rtol=1e-9, atol=1e-12)


def test_poisson_is_scaled_standard_exponentials() -> None:
    gaps = Poisson(4.0).gaps(np.random.default_rng(3), 1_000)
    np.testing.assert_array_equal(gaps, np.random.default_rng(3).standard_exponential(1_000) / 4)


@pytest.mark.parametrize("spec", [POISSON, RENEWAL])
def test_gaps_without_memory_do_not_depend_on_the_calls(spec: dict[str, Any]) -> None:
    process, rng = arrival_process(spec, 1.0), np.random.default_rng(5)
    whole = process.gaps(np.random.default_rng(5), 100)
    np.testing.assert_array_equal(np.concatenate([process.gaps(rng, n) for n in (1, 30, 69)]), whole)


def test_renewal_has_its_law_at_the_rate() -> None:
    process = arrival_process(RENEWAL, 2.0)
    gaps = process.gaps(np.random.default_rng(7), 20_000)
    target = law({"law": "weibull", "shape": 0.7, "mean": 0.5})
    check_law(gaps, target)


def test_deterministic_renewal() -> None:
    spec = {"process": "renewal", "law": {"law": "deterministic", "value": 7}}
    np.testing.assert_allclose(arrival_process(spec, 4.0).gaps(np.random.default_rng(0), 3), 0.25)


def test_mmpp_stationary_law_and_rates() -> None:
    process = MarkovModulated(1.0, [4, 0.5], [[-0.1, 0.1], [0.05, -0.05]])
    np.testing.assert_allclose(process.stationary, [1 / 3, 2 / 3], rtol=1e-14)
    np.testing.assert_allclose(process.rates, np.array([4, 0.5]) / (5 / 3), rtol=1e-14)  # (4 + 2·0.5)/3 = 5/3
    assert process.stationary @ process.rates == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize(("spec", "horizon"), [(MMPP, 5.0), (MMPP, 60.0), (CYCLE, 20.0)])
def test_mmpp_counts(spec: dict[str, Any], horizon: float) -> None:
    process = arrival_process(spec, 2.0)
    assert isinstance(process, MarkovModulated)
    numbers = counts(spec, 2.0, horizon, runs=4_000, seed=11)
    check_mean(numbers, 2.0 * horizon)
    check_variance(numbers, count_variance(process, horizon))


def test_mmpp_index_of_dispersion() -> None:
    """Two phases: IDC(t) = 1 + 2ab(r-s)²/((a+b)²(rb+sa)) · (1 - (1 - e^{-(a+b)t})/((a+b)t)).

    Source: Fischer and Meier-Hellstern (1993).
    """
    (a, b), (r, s), horizon = (0.1, 0.05), (4.0, 0.5), 30.0
    decay = (a + b) * horizon
    limit = 2 * a * b * (r - s) ** 2 / ((a + b) ** 2 * (r * b + s * a))
    index = 1 + limit * (1 + np.expm1(-decay) / decay)
    rate = (r * b + s * a) / (a + b)
    process = arrival_process(MMPP, rate)
    assert isinstance(process, MarkovModulated)
    assert count_variance(process, horizon) / (rate * horizon) == pytest.approx(index, rel=1e-12)
    assert index > 10  # bursts indeed
    check_variance(counts(MMPP, rate, horizon, runs=4_000, seed=13), index * rate * horizon)


def test_mmpp_that_switches_fast_is_poisson() -> None:
    """With 2·10⁴ switches a job the phases average out; one call needs many batches of sojourns."""
    generator = np.array([[-1.0, 1.0], [1.0, -1.0]]) * 4e4
    process = MarkovModulated(2.0, [1, 3], generator)
    gaps = process.gaps(np.random.default_rng(17), 40)
    assert gaps.size * 2e4 > 10 * arrivals._MAX_SOJOURNS
    check_law(gaps, law({"law": "exponential", "mean": 0.5}))


def test_mmpp_that_never_switches_in_time_keeps_its_phase() -> None:
    generator = np.array([[-1.0, 1.0], [1.0, -1.0]]) * 1e-12
    means = [
        MarkovModulated(1.0, [1, 9], generator).gaps(np.random.default_rng(seed), 4_000).mean() for seed in range(30)
    ]
    fast = np.isclose(means, 1 / 1.8, rtol=0.1)
    slow = np.isclose(means, 1 / 0.2, rtol=0.1)
    assert (fast ^ slow).all()
    assert 3 <= fast.sum() <= 27  # a phase of probability 1/2: false alarm 8e-6


def test_batches_of_fixed_size() -> None:
    process = arrival_process({"process": "batch", "batch": {"law": "fixed", "count": 4}, "epochs": POISSON}, 2.0)
    rng = np.random.default_rng(19)
    gaps = np.concatenate([process.gaps(rng, n) for n in (1, 2, 3, 10, 4, 1, 3, 8_000)])
    opens = np.arange(gaps.size) % 4 == 0
    assert (gaps[~opens] == 0).all()
    check_law(gaps[opens], law({"law": "exponential", "mean": 2}))


@pytest.mark.parametrize("calls", [[60_000], [3] * 20_000])
def test_batches_of_geometric_size(calls: list[int]) -> None:
    process, rng = arrival_process(BATCH, 1.0), np.random.default_rng(23)
    gaps = np.concatenate([process.gaps(rng, n) for n in calls])
    sizes = np.diff(np.flatnonzero(gaps))
    check_mean(sizes, 2.5)
    expected = sizes.size * stats.geom.pmf(np.arange(1, 12), 1 / 2.5)
    observed = np.bincount(sizes, minlength=12)[1:12]
    rest = [sizes.size - observed.sum()], [sizes.size - expected.sum()]
    assert stats.chisquare([*observed, *rest[0]], [*expected, *rest[1]]).pvalue > 1e-6
    check_mean(gaps[gaps > 0], 2.5)


@pytest.mark.parametrize("spec", SPECS)
def test_state_continues_bit_for_bit(spec: dict[str, Any]) -> None:
    process, rng = arrival_process(spec, 1.0), np.random.default_rng(29)
    process.gaps(rng, 1_000)
    state, generator = json.loads(json.dumps(process.state())), rng.bit_generator.state
    other, rng_2 = arrival_process(spec, 1.0), np.random.default_rng()
    other.restore(state)
    rng_2.bit_generator.state = generator
    for count in (1, 17, 400):
        np.testing.assert_array_equal(process.gaps(rng, count), other.gaps(rng_2, count))


@st.composite
def mmpp_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Two to four phases in a ring, of any speeds, so that every phase can be reached."""
    phases = draw(st.integers(2, 4))
    speed = st.floats(1e-3, 1e3)
    generator = np.roll(np.eye(phases), 1, axis=1) * draw(st.lists(speed, min_size=phases, max_size=phases))
    generator -= np.diag(generator.sum(axis=1))
    rates = draw(st.lists(st.floats(0, 1e3), min_size=phases - 1, max_size=phases - 1))
    return {"process": "mmpp", "rates": [*rates, 1.0], "generator": generator.tolist()}


@given(mmpp_specs(), st.integers(1, 200), st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_any_mmpp_gives_gaps(spec: dict[str, Any], count: int, seed: int) -> None:
    process = arrival_process(spec, 1.0)
    gaps = process.gaps(np.random.default_rng(seed), count)
    assert gaps.shape == (count,)
    assert np.isfinite(gaps).all()
    assert (gaps >= 0).all()
    assert process.state()["phase"] in range(len(spec["rates"]))


def test_no_gaps() -> None:
    for spec in SPECS:
        assert arrival_process(spec, 1.0).gaps(np.random.default_rng(0), 0).shape == (0,)


REFUSED: list[tuple[Any, str]] = [
    ("poisson", "process must be a mapping"),
    ({}, "must be one of poisson, renewal, mmpp, batch, got None"),
    ({"process": "poison"}, "perhaps poisson"),
    ({"process": "poisson", "rate": 2}, "poisson: keys must be exactly process"),
    ({"process": "renewal"}, "renewal: keys must be exactly process, law"),
    ({"process": "renewal", "law": {"law": "pareto", "alpha": 0.9, "minimum": 1}}, "infinite"),
    ({**MMPP, "rates": [1]}, "rates must be two or more"),
    ({**MMPP, "rates": [0, 0]}, "not all 0"),
    ({**MMPP, "rates": [1, -1]}, "rates must be two or more numbers >= 0"),
    ({**MMPP, "rates": [1, float("nan")]}, "rates must be finite"),
    ({**MMPP, "rates": ["a", 1]}, "rates must be an array of numbers"),
    ({**MMPP, "rates": [1, 2, 3]}, "generator must be 3 x 3"),
    ({**MMPP, "generator": [[-1, 1], [2]]}, "generator must be an array of numbers"),
    ({**MMPP, "generator": [[-1, 1], [1, -2]]}, "rows that sum to 0"),
    ({**MMPP, "generator": [[1, -1], [1, -1]]}, ">= 0 off the diagonal"),
    ({**MMPP, "generator": [[-1, 1], [0, 0]]}, "every phase can be reached"),
    ({**BATCH, "batch": 3}, "batch must be"),
    ({**BATCH, "batch": {"law": "fixed", "count": 0}}, "count must be an integer >= 1, got 0"),
    ({**BATCH, "batch": {"law": "geometric", "mean": 0.5}}, "mean must be >= 1, got 0.5"),
    ({**BATCH, "batch": {"law": "geometric"}}, "keys must be exactly law, mean"),
    ({**BATCH, "epochs": {"process": "x"}}, "must be one of"),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED)
def test_bad_spec_is_refused(spec: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        arrival_process(spec, 1.0)


@pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan"), "1"])
@pytest.mark.parametrize("spec", [POISSON, RENEWAL, MMPP])
def test_bad_rate_is_refused(spec: dict[str, Any], rate: Any) -> None:
    with pytest.raises(ValueError, match="rate must be a finite number > 0"):
        arrival_process(spec, rate)


@pytest.mark.parametrize(
    ("process", "state", "message"),
    [
        (arrival_process(POISSON, 1.0), {"phase": 0}, "state: keys must be exactly"),
        (arrival_process(MMPP, 1.0), {"phase": 2}, "phase must be None or one of 0 to 1"),
        (arrival_process(BATCH, 1.0), {"left": -1, "epochs": {}}, "left must be an integer >= 0"),
    ],
)
def test_bad_state_is_refused(process: ArrivalProcess, state: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        process.restore(state)
