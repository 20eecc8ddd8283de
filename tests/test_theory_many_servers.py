"""Erlang B, C and A against rational sums, recursions, Poisson identities, and each other in the limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, special, stats

from queue_env import theory


def rational_erlang_b(servers: int, load: Fraction) -> Fraction:
    """Erlang's loss formula as he wrote it."""
    terms = [load**k / math.factorial(k) for k in range(servers + 1)]
    return terms[-1] / sum(terms)


@pytest.mark.parametrize("servers", [1, 2, 7, 60])
@pytest.mark.parametrize("load", [Fraction(1, 10), Fraction(17, 4), Fraction(200)])
def test_erlang_b_is_the_rational_formula(servers: int, load: Fraction) -> None:
    expected = float(rational_erlang_b(servers, load))
    assert theory.erlang_b(servers, float(load)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("load", [1_000.0, 9_000.0, 9_999.5, 10_000.0, 11_000.0, 30_000.0])
def test_erlang_b_of_ten_thousand_servers(load: float) -> None:
    """The recursion B_k = aB_{k-1}/(k + aB_{k-1}) is stable, but underflows to 0."""
    blocked = 1.0
    for k in range(1, 10_001):
        blocked = load * blocked / (k + load * blocked)
    assert theory.erlang_b(10_000, load) == pytest.approx(blocked, rel=1e-9, abs=1e-300)


def test_erlang_c_is_erlang_b_scaled_and_tends_to_one() -> None:
    assert theory.erlang_c(1, 0.37) == pytest.approx(0.37, rel=1e-14)
    assert theory.erlang_c(2, 1.6) == pytest.approx(2 * 0.8**2 / 1.8, rel=1e-14)
    assert theory.erlang_c(10_000, 9_999.999) == pytest.approx(1.0, abs=1e-4)
    assert 0.0 < theory.erlang_c(10_000, 9_900.0) < theory.erlang_c(10_000, 9_950.0) < 1.0


@pytest.mark.parametrize("slack", [0.5, 1.0, 2.0])
def test_erlang_c_in_the_square_root_regime(slack: float) -> None:
    """Halfin and Whitt (1981): with n - a = β√n, C → 1/(1 + β·Φ(β)/φ(β)); here 1/√n = 1 %."""
    servers = 10_000
    limit = 1.0 / (1.0 + slack * stats.norm.cdf(slack) / stats.norm.pdf(slack))
    assert theory.erlang_c(servers, servers - slack * math.sqrt(servers)) == pytest.approx(limit, rel=0.03)


def test_mean_waiting_is_that_of_mm1_and_of_the_chain() -> None:
    assert theory.mmn_mean_waiting(0.8, 1.0, 1) == pytest.approx(4.0, rel=1e-13)
    rate, service, servers = 4.1, 0.9, 5
    weights = [1.0]
    for k in range(1, 3000):
        weights.append(weights[-1] * rate / (min(k, servers) * service))
    queue = sum(max(k - servers, 0) * w for k, w in enumerate(weights)) / sum(weights)
    assert theory.mmn_mean_waiting(rate, service, servers) == pytest.approx(queue / rate, rel=1e-10)
    assert theory.mmn_mean_response(rate, service, servers) == pytest.approx(queue / rate + 1 / service, rel=1e-10)


CASES = [
    (0.8, 1.0, 1),
    (1.6, 1.0, 2),
    (1.0, 1.0, 2),  # nμ-λ = μ, where two rates coincide
    (1.0 + 1e-9, 1.0, 2),
    (3.0, 0.8, 40),
    (9_990.0, 1.0, 10_000),
]


@pytest.mark.parametrize(("rate", "service", "servers"), CASES)
def test_tails_integrate_to_the_means(rate: float, service: float, servers: int) -> None:
    """E[T] = ∫ P[T>t] dt."""
    for tail, mean in (
        (theory.mmn_waiting_tail, theory.mmn_mean_waiting(rate, service, servers)),
        (theory.mmn_response_tail, theory.mmn_mean_response(rate, service, servers)),
        (theory.super_server_response_tail, 1.0 / (servers * service - rate)),
    ):
        area = integrate.quad(
            lambda t, tail=tail: float(tail(rate, service, servers, t)), 0.0, np.inf, epsrel=1e-11, limit=200
        )[0]
        assert area == pytest.approx(mean, rel=1e-8), tail.__name__


@pytest.mark.parametrize(("rate", "service", "servers"), CASES)
def test_response_tail_is_the_convolution_of_waiting_and_service(rate: float, service: float, servers: int) -> None:
    for t in (0.1, 1.0, 5.0):
        inner = integrate.quad(
            lambda s, t=t: (
                float(theory.mmn_waiting_tail(rate, service, servers, t - s)) * service * math.exp(-service * s)
            ),
            0.0,
            t,
            epsabs=1e-13,
            epsrel=1e-11,
            limit=200,
        )[0]
        expected = inner + math.exp(-service * t)
        assert float(theory.mmn_response_tail(rate, service, servers, t)) == pytest.approx(expected, rel=1e-9)


def test_tails_keep_shape_start_right_and_do_not_overflow() -> None:
    times = np.array([[0.0, 1.0], [10.0, 1e4]])
    tail = theory.mmn_response_tail(9_000.0, 1.0, 10_000, times)
    assert tail.shape == (2, 2)
    assert tail[0, 0] == 1.0
    assert tail[1, 1] == 0.0
    assert theory.mmn_waiting_tail(1.6, 1.0, 2, 0.0) == pytest.approx(theory.erlang_c(2, 1.6))
    alone = theory.mmn_response_tail(0.8, 1.0, 1, [0.5, 40.0])
    assert alone == pytest.approx(np.exp(-0.2 * np.array([0.5, 40.0])), rel=1e-12)
    assert alone == pytest.approx(theory.super_server_response_tail(0.8, 1.0, 1, [0.5, 40.0]), rel=1e-12)


@pytest.mark.parametrize(("rate", "servers"), [(120.0, 100), (0.5, 1), (10_500.0, 10_000), (300.0, 400)])
def test_patience_like_service_makes_the_number_poisson(rate: float, servers: int) -> None:
    """θ = μ: every job present leaves at rate μ, so N is Poisson(λ/μ), as in M/M/∞."""
    law = theory.erlang_a(rate, 1.0, servers, 1.0)
    number = stats.poisson(rate)
    assert law.mean_number == pytest.approx(rate, rel=1e-10)
    assert law.waits == pytest.approx(number.sf(servers - 1), rel=1e-8)
    assert law.no_wait == pytest.approx(number.cdf(servers - 1), rel=1e-8)
    queue = rate * number.sf(servers - 1) - servers * number.sf(servers)
    assert law.mean_queue == pytest.approx(queue, rel=1e-7)


@pytest.mark.parametrize(("rate", "servers"), [(0.8, 1), (1.6, 2), (90.0, 100), (9_900.0, 10_000)])
def test_endless_patience_gives_erlang_c(rate: float, servers: int) -> None:
    law = theory.erlang_a(rate, 1.0, servers, 1e-9)
    assert law.waits == pytest.approx(theory.erlang_c(servers, rate), rel=1e-4)
    assert law.mean_waiting == pytest.approx(theory.mmn_mean_waiting(rate, 1.0, servers), rel=1e-4)
    assert law.mean_waiting_served == pytest.approx(law.mean_waiting, rel=1e-4)
    # A rare abandonment picks an age by its time: E[W | abandon] → E[W²]/(2E[W]) = 1/(nμ-λ).
    assert law.mean_waiting_abandoned == pytest.approx(1.0 / (servers - rate), rel=1e-4)
    assert law.abandonment == pytest.approx(1e-9 * law.mean_waiting, rel=1e-12)


def test_no_patience_gives_erlang_b() -> None:
    law = theory.erlang_a(8.0, 1.0, 10, 1e9)
    assert law.abandonment == pytest.approx(theory.erlang_b(10, 8.0), rel=1e-6)
    assert law.waits == pytest.approx(theory.erlang_b(10, 8.0), rel=1e-6)


@pytest.mark.parametrize("servers", [1, 10, 1_000, 10_000])
@pytest.mark.parametrize("load", [0.1, 0.9, 1.0, 1.2, 3.0])
@pytest.mark.parametrize("theta", [1e-3, 0.2, 1.0, 20.0])
def test_erlang_a_identities(servers: int, load: float, theta: float) -> None:
    """P[abandon] = θE[Q]/λ (flow), E[W] split by outcome, and P[abandon] ≥ 1-1/ρ."""
    service = 0.7
    rate = load * servers * service
    law = theory.erlang_a(rate, service, servers, theta)
    assert law.abandonment == pytest.approx(theta * law.mean_queue / rate, rel=1e-9, abs=1e-300)
    assert law.waits + law.no_wait == pytest.approx(1.0, rel=1e-12)
    whole = (1.0 - law.abandonment) * law.mean_waiting_served + law.abandonment * law.mean_waiting_abandoned
    assert law.mean_waiting == pytest.approx(whole, rel=1e-9, abs=1e-300)
    assert law.abandonment >= (1.0 - 1.0 / load) * (1.0 - 1e-12)
    assert 0.0 < law.mean_waiting_abandoned < 1.0 / theta
    assert all(math.isfinite(value) for value in vars(law).values())


@pytest.mark.parametrize(("rate", "service", "servers", "theta"), [(5.0, 0.7, 6, 0.4), (20.0, 1.0, 6, 0.4)])
def test_conditional_waits_by_the_virtual_waiting_time(rate: float, service: float, servers: int, theta: float) -> None:
    """V given N≥n has density ∝ exp(-nμv + (λ/θ)(1-e^{-θv})); W = min(V, patience) is integrated directly.

    Source: Baccelli and Hebuterne, "On queues with impatient customers" (1981), for exponential patience.
    """

    def density(v: float) -> float:
        return math.exp(-servers * service * v + rate / theta * -math.expm1(-theta * v))

    def mean(weight: Callable[[float], float]) -> float:
        return integrate.quad(lambda v: density(v) * weight(v), 0.0, 40.0, epsrel=1e-12, limit=400)[0]

    law = theory.erlang_a(rate, service, servers, theta)
    total = mean(lambda v: 1.0)
    lost = mean(lambda v: -math.expm1(-theta * v))
    lost_time = mean(lambda v: -math.expm1(-theta * v) / theta - v * math.exp(-theta * v))
    kept_time = mean(lambda v: v * math.exp(-theta * v))
    assert law.abandonment == pytest.approx(law.waits * lost / total, rel=1e-9)
    assert law.mean_waiting_abandoned == pytest.approx(lost_time / lost, rel=1e-9)
    assert law.mean_waiting_served == pytest.approx(law.waits * kept_time / total / (1.0 - law.abandonment), rel=1e-9)
    # P[N≥n] from the density at 0 against π_{n-1}: ∫ density·λπ_{n-1} dv is the mass of waiting arrivals.
    idle = sum((rate / service) ** k * math.exp(-special.gammaln(k + 1)) for k in range(servers))
    last = (rate / service) ** (servers - 1) * math.exp(-special.gammaln(servers))
    assert law.waits == pytest.approx(rate * last * total / (idle + rate * last * total), rel=1e-9)


def test_overload_with_long_patience_is_the_fluid_limit() -> None:
    """λ = 30,000, n = 10,000, mean patience 1,000: W of the served is w with H(w) = 1-1/ρ, w = ln(ρ)/θ."""
    law = theory.erlang_a(30_000.0, 1.0, 10_000, 1e-3)
    assert law.abandonment == pytest.approx(2.0 / 3.0, rel=1e-9)
    assert law.mean_waiting_served == pytest.approx(math.log(3.0) * 1e3, rel=1e-5)
    assert law.no_wait == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: theory.erlang_b(0, 1.0),
            "erlang_b: servers must be a whole number from 1 to 1000000, got 0",
        ),
        (lambda: theory.erlang_b(2.5, 1.0), "servers must be a whole number.*got 2.5"),  # type: ignore[arg-type]
        (lambda: theory.erlang_b(2, -1.0), "offered_load must be a finite number > 0, got -1.0"),
        (lambda: theory.erlang_c(2, 2.0), "erlang_c: offered_load must be below servers = 2, got 2.0"),
        (
            lambda: theory.mmn_mean_waiting(2.0, 1.0, 2),
            r"arrival_rate must be below servers \* service_rate = 2",
        ),
        (
            lambda: theory.mmn_waiting_tail(1.0, 0.0, 2, 1.0),
            "service_rate must be a finite number > 0, got 0.0",
        ),
        (lambda: theory.mmn_response_tail(1.0, 1.0, 2, -1.0), "t must be finite numbers >= 0, got -1.0"),
        (lambda: theory.erlang_a(1.0, 1.0, 1, 0.0), "abandonment_rate must be a finite number > 0, got 0.0"),
        (lambda: theory.erlang_a(1.0, 1.0, 1, 1e-18), "abandonment_rate must be larger: .* got 1e-18"),
    ],
)
def test_bad_input_names_the_argument(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
