"""M/G/1 formulas against quadrature written another way, textbook special cases, and a small simulation."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from queue_env import theory
from queue_env.distributions import (
    BoundedPareto,
    Deterministic,
    Empirical,
    Exponential,
    Hyperexponential,
    Law,
    Lognormal,
    Lomax,
    Pareto,
    Uniform,
    Weibull,
)

Function = Callable[[float], float]

HEAVY = Pareto(1.5, 1.0 / 3.0)  # mean 1, infinite variance
LAWS = [
    HEAVY,
    Pareto(1.1, 1.0 / 11.0),
    Lomax(1.5, 0.5),
    BoundedPareto(1.1, 0.1, 1e6),
    Weibull(0.3, 0.1),
    Weibull(3.0, 1.0),
    Lognormal(2.0, -2.0),
    Exponential(1.0),
    Hyperexponential((0.99, 0.01), (0.5, 50.0)),
    Uniform(0.0, 2.0),
]
SIZE_BASED = ("sjf", "psjf", "srpt", "las")


def integral(function: Function, low: float, high: float) -> float:
    """Adaptive quadrature by QUADPACK to 1e-11."""
    return float(integrate.quad(function, low, high, epsabs=0.0, epsrel=1e-11, limit=500)[0])


def textbook_response(policy: str, rate: float, tail: Function, x: float) -> float:
    """E[T(x)] from the tail F̄ alone: E[S; S≤x] = ∫_0^x F̄ - xF̄(x), E[S²; S≤x] = ∫_0^x 2tF̄ - x²F̄(x)."""

    def load(t: float) -> float:
        return rate * (integral(tail, 0.0, t) - t * tail(t)) if t > 0.0 else 0.0

    square = integral(lambda t: 2.0 * t * tail(t), 0.0, x)
    if policy == "psjf":
        return x / (1.0 - load(x)) + rate / 2.0 * (square - x * x * tail(x)) / (1.0 - load(x)) ** 2
    if policy == "las":
        spare = 1.0 - rate * integral(tail, 0.0, x)
        return (x + rate / 2.0 * square / spare) / spare
    residence = integral(lambda t: 1.0 / (1.0 - load(t)), 0.0, x)
    return residence + rate / 2.0 * square / (1.0 - load(x)) ** 2


@pytest.mark.parametrize("policy", ["psjf", "las", "srpt"])
@pytest.mark.parametrize(
    ("law", "tail"),
    [
        (Exponential(1.0), lambda t: math.exp(-t)),
        (Lomax(1.5, 0.5), lambda t: (1.0 + t / 0.5) ** -1.5),
        (Weibull(2.0, 1.0), lambda t: math.exp(-t * t)),
    ],
)
def test_response_of_a_size_from_the_tail_alone(policy: str, law: Law, tail: Function) -> None:
    sizes = np.array([0.01, 0.4, 2.0, 7.0])
    rate = 0.9 / law.mean
    expected = [textbook_response(policy, rate, tail, x) for x in sizes]
    assert theory.CONDITIONAL_RESPONSE[policy](rate, law, sizes) == pytest.approx(expected, rel=1e-8)


def pareto_mean(policy: str, rate: float, alpha: float, low: float) -> float:
    """E[T] from closed moments, integrated over s = F̄(x)^{(α-1)/α}, which keeps the integrand bounded."""
    power = alpha / (alpha - 1.0)

    def load(x: float) -> float:
        return float(rate * alpha * low**alpha * (low ** (1 - alpha) - x ** (1 - alpha)) / (alpha - 1))

    def second(x: float) -> float:
        return float(alpha * low**alpha * (x ** (2 - alpha) - low ** (2 - alpha)) / (2 - alpha))

    def response(x: float) -> float:
        tail = float((x / low) ** -alpha)
        capped = second(x) + x**2 * tail
        if policy == "psjf":
            return x / (1 - load(x)) + rate / 2 * second(x) / (1 - load(x)) ** 2
        if policy == "las":
            spare = 1 - load(x) - rate * x * tail
            return x / spare + rate / 2 * capped / spare**2
        return rate / 2 * capped / (1 - load(x)) ** 2

    def weighted(s: float) -> float:
        return float(response(low * s ** (-power / alpha)) * power * s ** (power - 1.0))

    total = integral(weighted, 0.0, 1.0)
    if policy == "srpt":  # residence ∫ F̄/(1-ρ): low before the smallest size, then t = low·s^(-1/(α-1))

        def residence(s: float) -> float:
            t = float(low * s ** (-1.0 / (alpha - 1.0)))
            return low / (alpha - 1.0) / (1.0 - load(t))

        total += low + integral(residence, 0.0, 1.0)
    return total


@pytest.mark.parametrize("policy", ["psjf", "las", "srpt"])
@pytest.mark.parametrize("alpha", [1.1, 1.5, 1.9])
@pytest.mark.parametrize("load", [0.3, 0.95])
def test_infinite_variance_has_a_finite_mean_response(policy: str, alpha: float, load: float) -> None:
    low = (alpha - 1.0) / alpha
    expected = pareto_mean(policy, load, alpha, low)
    assert theory.mean_response(policy, load, Pareto(alpha, low)) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("policy", ["fcfs", "lcfs", "sjf"])
def test_infinite_variance_makes_non_preemptive_policies_infinite(policy: str) -> None:
    assert theory.mean_response(policy, 0.5, HEAVY) == math.inf


def test_index_just_above_one_is_within_reach() -> None:
    alpha, load = 1.02, 0.8
    low = (alpha - 1.0) / alpha
    mean = theory.mean_response("psjf", load, Pareto(alpha, low))
    assert mean == pytest.approx(pareto_mean("psjf", load, alpha, low), rel=1e-6)


@pytest.mark.parametrize("load", [0.1, 0.7, 0.95])
def test_mean_slowdown_by_nested_quadrature(load: float) -> None:
    """Uniform sizes on [0, 2]: ρ(x) = λx²/4, so the residence is (2/√λ)·artanh(x√λ/2)."""
    root = math.sqrt(load)

    def waiting(x: float) -> float:
        return load / 2.0 * (x**3 / 6.0 + x**2 * (1.0 - x / 2.0)) / (1.0 - load * x**2 / 4.0) ** 2

    srpt = integral(lambda x: (waiting(x) + 2.0 / root * math.atanh(x * root / 2.0)) / x / 2.0, 0.0, 2.0)
    assert theory.mean_slowdown("srpt", load, Uniform(0.0, 2.0)) == pytest.approx(srpt, rel=1e-8)

    def psjf(x: float) -> float:
        spare = 1.0 - load * x**2 / 4.0
        return 1.0 / spare + load / 12.0 * x**2 / spare**2

    assert theory.mean_slowdown("psjf", load, Uniform(0.0, 2.0)) == pytest.approx(
        integral(lambda x: psjf(x) / 2.0, 0.0, 2.0), rel=1e-8
    )


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_expectation_reproduces_the_mean(law: Law) -> None:
    assert theory.expectation(law, lambda x: x) == pytest.approx(law.mean, rel=1e-7)
    assert theory.expectation(law, np.ones_like) == pytest.approx(1.0, rel=1e-9)


def test_expectation_encloses_a_jump() -> None:
    inside = theory.expectation(Exponential(1.0), lambda x: np.where((x > 0.3) & (x < 4.0), 1.0, 0.0))
    assert inside == pytest.approx(math.exp(-0.3) - math.exp(-4.0), rel=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("load", [0.2, 0.8, 0.98])
def test_known_order_of_the_policies(law: Law, load: float) -> None:
    """SRPT is best, PSJF within twice SRPT and better than PS.

    Source: Wierman, Harchol-Balter and Osogami, "Nearly insensitive bounds on SMART scheduling" (2005).
    """
    rate = load / law.mean
    srpt, psjf, ps = (theory.mean_response(policy, rate, law) for policy in ("srpt", "psjf", "ps"))
    assert law.mean < srpt < psjf < ps
    assert psjf <= 2.0 * srpt
    assert 1.0 < theory.mean_slowdown("srpt", rate, law) < 1.0 / (1.0 - load)


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9, 0.99])
def test_exponential_sizes_make_blind_policies_equal(load: float) -> None:
    means = [theory.mean_response(policy, load, Exponential(1.0)) for policy in ("fcfs", "lcfs", "ps", "plcfs", "las")]
    assert means == pytest.approx([1.0 / (1.0 - load)] * 5, rel=1e-9)


def test_las_beats_ps_for_decreasing_hazard_only() -> None:
    for law, better in ((Weibull(0.5, 1.0), True), (HEAVY, True), (Weibull(2.0, 1.0), False)):
        las, ps = (theory.mean_response(policy, 0.7 / law.mean, law) for policy in ("las", "ps"))
        assert (las < ps) == better


def test_ps_depends_on_the_mean_only() -> None:
    for policy in ("ps", "plcfs"):
        for law in (HEAVY, Exponential(1.0), Deterministic(1.0)):
            assert theory.mean_response(policy, 0.75, law) == pytest.approx(4.0, rel=1e-12)
            assert theory.mean_slowdown(policy, 0.75, law) == pytest.approx(4.0, rel=1e-12)


def test_pollaczek_khinchine_for_constant_sizes() -> None:
    """M/D/1: half the waiting of M/M/1; policies that order by size are FCFS, LAS keeps all to the end."""
    law = Deterministic(2.0)
    assert theory.fcfs_mean_waiting(0.4, law) == pytest.approx(4.0, rel=1e-12)
    for policy in ("fcfs", "lcfs", "sjf", "psjf", "srpt"):
        assert theory.mean_response(policy, 0.4, law) == pytest.approx(6.0, rel=1e-12)
    assert theory.mean_response("las", 0.4, law) == pytest.approx(2.0 / 0.2 + 0.2 * 4.0 / 0.04, rel=1e-12)


def test_sizes_so_dense_at_zero_that_quantiles_underflow() -> None:
    """Weibull of shape 0.05: the 10^-20 quantile is 10^-400. SRPT is near its least, one, in slowdown."""
    law = Weibull(0.05, 1.0)
    assert float(law.quantile(1e-20)) == 0.0
    assert 1.0 < theory.mean_slowdown("srpt", 0.5 / law.mean, law) < 1.05
    assert law.mean < theory.mean_response("srpt", 0.5 / law.mean, law) < 2.0 * law.mean


def test_two_sizes_are_two_priority_classes() -> None:
    """Sizes 1 and 3 with odds 2 to 1.

    Source: Cobham (1954) for non-preemptive priorities, White and Christie (1958) for preemptive ones.
    """
    law, rate = Empirical((1.0, 1.0, 3.0)), 0.5
    small, whole = rate * 2.0 / 3.0, rate * 5.0 / 3.0
    work = rate * (2.0 * 1.0 + 9.0) / 3.0 / 2.0
    small_work = small * 1.0 / 2.0
    sizes = np.array([1.0, 3.0])
    sjf = [1.0 + work / (1.0 - small), 3.0 + work / ((1.0 - small) * (1.0 - whole))]
    assert theory.sjf_response(rate, law, sizes) == pytest.approx(sjf, rel=1e-12)
    psjf = [1.0 + small_work / (1.0 - small), 3.0 / (1.0 - small) + work / ((1.0 - small) * (1.0 - whole))]
    assert theory.psjf_response(rate, law, sizes) == pytest.approx(psjf, rel=1e-12)
    assert theory.mean_response("psjf", rate, law) == pytest.approx((2.0 * psjf[0] + psjf[1]) / 3.0, rel=1e-12)


def simulated_srpt(arrivals: list[float], sizes: list[float]) -> list[float]:
    """Response times in order of arrival; ties go to the earlier job."""
    responses = [0.0] * len(sizes)
    waiting: list[tuple[float, int]] = []
    for job, (now, following) in enumerate(pairwise([*arrivals, math.inf])):
        heapq.heappush(waiting, (sizes[job], job))
        while waiting and now < following:
            remaining, first = heapq.heappop(waiting)
            end = min(now + remaining, following)
            if end < now + remaining:
                heapq.heappush(waiting, (remaining - (end - now), first))
            else:
                responses[first] = end - arrivals[first]
            now = end
    return responses


@pytest.mark.parametrize("law", [Empirical((1.0, 1.0, 3.0)), Uniform(0.0, 2.0)], ids=str)
def test_srpt_against_simulation(law: Law) -> None:
    """30 batches of 10,000 jobs, Student's t with 29 degrees of freedom at 4.5: false alarm 1e-4 a test."""
    rng, jobs, batches = np.random.default_rng(20261), 300_000, 30
    rate = 0.8 / law.mean
    arrivals = np.cumsum(rng.exponential(1.0 / rate, jobs))
    responses = np.array(simulated_srpt(arrivals.tolist(), law.sample(rng, jobs).tolist()))
    means = responses.reshape(batches, -1).mean(axis=1)
    error = means.std(ddof=1) / math.sqrt(batches)
    expected = theory.mean_response("srpt", rate, law)
    assert error < 0.02 * expected
    assert abs(means.mean() - expected) < 4.5 * error


def test_scaling_sizes_and_rate_scales_the_times() -> None:
    for policy in (*SIZE_BASED, "fcfs"):
        unit = theory.mean_response(policy, 0.8, Uniform(0.0, 2.0))
        assert theory.mean_response(policy, 8.0, Uniform(0.0, 0.2)) == pytest.approx(unit / 10.0, rel=1e-10)


@pytest.mark.parametrize("policy", list(theory.CONDITIONAL_RESPONSE))
def test_conditional_response_keeps_the_shape_and_starts_at_zero_or_the_waiting(policy: str) -> None:
    response = theory.CONDITIONAL_RESPONSE[policy]
    law = Exponential(1.0)
    assert response(0.5, law, 1.0).shape == ()
    grid = response(0.5, law, [[0.0, 1.0], [1.0, 4.0]])
    assert grid.shape == (2, 2)
    assert grid[0, 1] == grid[1, 0] == response(0.5, law, 1.0)
    assert grid[0, 0] == pytest.approx({"fcfs": 1.0, "lcfs": 1.0, "sjf": 0.5}.get(policy, 0.0), abs=1e-12)
    assert grid[1, 1] > grid[0, 1]


def test_every_response_of_a_large_size_tends_to_that_of_ps() -> None:
    """E[T(x)]/x → 1/(1-ρ). Source: Harchol-Balter, Sigman and Wierman (2002), Asymptotic convergence."""
    for policy in ("psjf", "srpt", "las"):
        slow = theory.CONDITIONAL_RESPONSE[policy](0.5, Exponential(1.0), 1e7) / 1e7
        assert slow == pytest.approx(2.0, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.mean_response("gittins", 0.5, HEAVY), "policy must be one of fcfs.*got 'gittins'"),
        (lambda: theory.mean_slowdown("fcfs", 0.5, HEAVY), "policy must be one of plcfs.*got 'fcfs'"),
        (
            lambda: theory.mean_response("srpt", 1.0, HEAVY),
            r"arrival_rate must be below 1/E\[S\] = 1, got 1.0",
        ),
        (lambda: theory.mean_response("ps", 0.0, HEAVY), "arrival_rate must be a finite number > 0, got 0.0"),
        (
            lambda: theory.srpt_response(0.5, HEAVY, [1.0, -2.0]),
            r"x must be finite numbers >= 0, got \[1.0, -2.0\]",
        ),
        (
            lambda: theory.fcfs_mean_waiting(math.nan, HEAVY),
            "arrival_rate must be a finite number > 0, got nan",
        ),
        (lambda: theory.fcfs_mean_waiting(0.5, Pareto(1.0, 1.0)), "arrival_rate must be below"),
    ],
)
def test_bad_input_names_the_argument(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
