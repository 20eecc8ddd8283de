"""Many-server limits with impatience against closed forms of single laws and against large finite systems."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, special

from queue_env import theory
from queue_env.distributions import (
    Deterministic,
    Exponential,
    Hyperexponential,
    Law,
    Lognormal,
    Lomax,
    Pareto,
    Uniform,
    Weibull,
    law,
)

LOADS = (1.0001, 1.2, 1.4, 3.0, 50.0)


@pytest.mark.parametrize("load", LOADS)
def test_threshold_of_uniform_and_pareto_sizes_in_closed_form(load: float) -> None:
    """U(0,2): τ²/4 = 1/ρ. Pareto: 1-(m/τ)^{α-1} = 1/ρ, so 1-G = (1-1/ρ)^{α/(α-1)}."""
    assert theory.srpt_threshold(load, Uniform(0.0, 2.0)) == pytest.approx(2.0 / math.sqrt(load), rel=1e-13)
    for alpha in (1.1, 1.5, 4.0):
        sizes = Pareto(alpha, 1.0)
        tau = (1.0 - 1.0 / load) ** (-1.0 / (alpha - 1.0))
        assert theory.srpt_threshold(load, sizes) == pytest.approx(tau, rel=1e-10)
        lost = theory.srpt_limit(load, sizes, Exponential(2.0)).abandonment
        assert lost == pytest.approx((1.0 - 1.0 / load) ** (alpha / (alpha - 1.0)), rel=1e-10)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("shape", [0.4, 1.0, 2.5])
def test_threshold_of_weibull_sizes_by_the_inverse_gamma_function(load: float, shape: float) -> None:
    """E[S; S≤τ]/E[S] = P(1+1/k, (τ/m)^k), the regularised incomplete gamma function."""
    sizes = law({"law": "weibull", "shape": shape, "mean": 1.0})
    hazard = special.gammainccinv(1.0 + 1.0 / shape, 1.0 - 1.0 / load)
    limit = theory.srpt_limit(load, sizes, Weibull(0.4, 3.0))
    assert limit.abandonment == pytest.approx(math.exp(-hazard), rel=1e-10)
    assert limit.throughput + limit.abandonment == pytest.approx(1.0, rel=1e-14)
    assert limit.mean_waiting == pytest.approx(math.exp(-hazard) * Weibull(0.4, 3.0).mean, rel=1e-10)


@pytest.mark.parametrize("sizes", [Lognormal(2.0, -2.0), Hyperexponential((0.9, 0.1), (0.5, 5.5)), Lomax(1.2, 0.2)])
@pytest.mark.parametrize("load", LOADS)
def test_threshold_solves_its_equation_by_integration(sizes: Law, load: float) -> None:
    tau = theory.srpt_threshold(load, sizes)
    below = integrate.quad(lambda y: math.exp(2 * y) * float(sizes.pdf(math.exp(y))), -60.0, math.log(tau), limit=300)
    assert below[0] == pytest.approx(sizes.mean / load, rel=1e-7)


def test_srpt_serves_more_than_the_blind_policies_and_more_for_heavier_tails() -> None:
    """[I], inequality after (4), and section 4.2, figure 2."""
    shapes = (0.3, 0.6, 1.0, 2.0, 5.0)
    patience = law({"law": "weibull", "shape": 0.4, "mean": 1.0})
    served = [
        theory.srpt_limit(1.4, law({"law": "weibull", "shape": k, "mean": 1.0}), patience).throughput for k in shapes
    ]
    assert all(heavy > light for heavy, light in pairwise(served))
    assert served[-1] > theory.fcfs_limit(1.4, patience).throughput == pytest.approx(1 / 1.4)


def test_exponential_patience_gives_fcfs_and_lcfs_the_same_waiting() -> None:
    for load in LOADS:
        fcfs, lcfs = theory.fcfs_limit(load, Exponential(2.0)), theory.lcfs_limit(load, Exponential(2.0))
        assert fcfs.mean_waiting == pytest.approx(2.0 * (1.0 - 1.0 / load), rel=1e-9)
        assert lcfs.mean_waiting == pytest.approx(2.0 * (1.0 - 1.0 / load), rel=1e-12)
        assert theory.fcfs_fluid_wait(load, Exponential(2.0)) == pytest.approx(2.0 * math.log(load), rel=1e-9)


@pytest.mark.parametrize("shape", [0.4, 0.8, 1.7])
@pytest.mark.parametrize("load", [1.1, 1.4, 5.0])
def test_fcfs_waiting_of_weibull_patience_by_integration(shape: float, load: float) -> None:
    patience = law({"law": "weibull", "shape": shape, "mean": 1.0})
    scale = 1.0 / math.gamma(1.0 + 1.0 / shape)
    wait = scale * math.log(load) ** (1.0 / shape)
    assert theory.fcfs_fluid_wait(load, patience) == pytest.approx(wait, rel=1e-10)
    area = integrate.quad(lambda t: math.exp(-((t / scale) ** shape)), 0.0, wait, epsabs=0.0, epsrel=1e-10)[0]
    assert theory.fcfs_limit(load, patience).mean_waiting == pytest.approx(area, rel=1e-8)


def test_fcfs_waiting_of_patience_with_infinite_mean() -> None:
    """H̄(t) = 1/(1+t): w = ρ-1 and E[W] = ln ρ, while SRPT makes the losers wait for ever."""
    patience = Lomax(1.0, 1.0)
    assert theory.fcfs_limit(3.0, patience).mean_waiting == pytest.approx(math.log(3.0), rel=1e-9)
    assert theory.srpt_limit(3.0, Exponential(1.0), patience).mean_waiting == math.inf


def test_constant_patience_is_waited_in_full_by_all() -> None:
    limit = theory.fcfs_limit(1.3, Deterministic(5.0))
    assert limit.mean_waiting == pytest.approx(5.0, rel=1e-12)
    assert limit.abandonment == pytest.approx(1.0 - 1.0 / 1.3, rel=1e-12)


@pytest.mark.parametrize(
    ("patience", "trend"),
    [
        (Exponential(1.0), "constant"),
        (Weibull(1.0, 2.0), "constant"),
        (Weibull(1.5, 2.0), "increasing"),
        (Uniform(0.0, 2.0), "increasing"),
        (Weibull(0.4, 2.0), "decreasing"),
        (Lomax(2.0, 1.0), "decreasing"),
        (Pareto(2.0, 1.0), "decreasing"),
        (Hyperexponential((0.5, 0.5), (1.0, 2.0)), "decreasing"),
        (Lognormal(1.0, 0.0), "unknown"),
    ],
    ids=str,
)
def test_lcfs_waiting_is_given_where_the_hazard_does_not_decrease(patience: Law, trend: str) -> None:
    assert theory.hazard_trend(patience) == trend
    low = max(patience.support[0], 0.02)  # from there on, the hazard is compared with the statement
    x = np.linspace(low, min(patience.support[1] * 0.95, 6.0), 50)
    slope = np.diff(patience.pdf(x) / patience.tail(x))
    if trend == "constant":
        assert slope == pytest.approx(0.0, abs=1e-12)
    elif trend != "unknown":
        assert np.all(slope > 0.0) == (trend == "increasing")
        assert np.all(slope < 0.0) == (trend == "decreasing")
    limit = theory.lcfs_limit(1.25, patience)
    assert limit.throughput == pytest.approx(0.8)
    if trend in ("constant", "increasing"):
        assert limit.mean_waiting == pytest.approx(0.2 * patience.mean, rel=1e-12)
        assert limit.reason == ""
    else:
        assert limit.mean_waiting is None
        assert trend in limit.reason


@pytest.mark.parametrize("load", [1.001, 1.4, 3.0, 100.0])
@pytest.mark.parametrize(
    "sizes", [Exponential(1.0), Weibull(0.5, 2.0), Weibull(3.0, 1.0), Pareto(1.5, 1.0)], ids=lambda law: law.name
)
def test_patience_at_which_fcfs_and_srpt_wait_equally_long(sizes: Law, load: float) -> None:
    shape = theory.patience_crossing(load, sizes)
    assert 0.1 < shape < 1.0
    for factor, better in ((0.99, "fcfs"), (1.0, "both"), (1.01, "srpt")):
        patience = law({"law": "weibull", "shape": factor * shape, "mean": 3.0})
        fcfs, srpt = theory.fcfs_limit(load, patience), theory.srpt_limit(load, sizes, patience)
        assert fcfs.mean_waiting is not None
        assert srpt.mean_waiting is not None
        if better == "both":
            assert fcfs.mean_waiting == pytest.approx(srpt.mean_waiting, rel=1e-9)
        else:
            assert (fcfs.mean_waiting < srpt.mean_waiting) == (better == "fcfs")


@pytest.mark.parametrize("load", [1.05, 1.4, 10.0])
@pytest.mark.parametrize("patience", [Weibull(0.4, 2.0), Lomax(3.0, 1.0)], ids=lambda law: law.name)
def test_sizes_at_which_fcfs_and_srpt_wait_equally_long(patience: Law, load: float) -> None:
    shape = theory.service_crossing(load, patience)
    assert shape is not None
    fcfs = theory.fcfs_limit(load, patience).mean_waiting
    assert fcfs is not None
    waits = [
        theory.srpt_limit(load, law({"law": "weibull", "shape": factor * shape, "mean": 1.0}), patience).mean_waiting
        for factor in (0.99, 1.0, 1.01)
    ]
    assert waits[0] is not None
    assert waits[2] is not None
    assert waits[0] < fcfs < waits[2]
    assert waits[1] == pytest.approx(fcfs, rel=1e-9)


def test_crossings_of_patience_and_of_sizes_are_points_of_one_curve() -> None:
    for shape in (0.5, 1.0, 2.5):
        patience = theory.patience_crossing(1.4, law({"law": "weibull", "shape": shape, "mean": 1.0}))
        found = theory.service_crossing(1.4, law({"law": "weibull", "shape": patience, "mean": 1.0}))
        assert found == pytest.approx(shape, rel=1e-8)


def test_srpt_waits_less_for_all_sizes_where_the_hazard_does_not_decrease() -> None:
    """[I], section 4.1."""
    for patience in (Exponential(2.0), Weibull(2.0, 1.0), Deterministic(1.0)):
        assert theory.service_crossing(1.4, patience) is None


def test_crossings_are_where_the_figures_of_the_paper_have_them_at_load_1_4() -> None:
    """[I]: FCFS has the smaller E[W] below 0.6 in figure 1, above a shape of at most 0.5 in figure 3."""
    assert 0.55 < theory.patience_crossing(1.4, Exponential(1.0)) < 0.6
    crossing = theory.service_crossing(1.4, Weibull(0.4, 1.0))
    assert crossing is not None
    assert 0.4 < crossing < 0.5


@pytest.mark.parametrize("load", [1.2, 2.0])
def test_erlang_a_of_many_servers_tends_to_the_limit(load: float) -> None:
    """Exponential sizes and patience: the error shrinks at least like 1/√n."""
    limit = theory.fcfs_limit(load, Exponential(2.0))
    assert limit.mean_waiting is not None
    for servers in (100, 1_000, 10_000):
        exact = theory.erlang_a(load * servers, 1.0, servers, 0.5)
        assert exact.mean_waiting == pytest.approx(limit.mean_waiting, abs=1.0 / math.sqrt(servers))
        assert exact.abandonment == pytest.approx(limit.abandonment, abs=1.0 / math.sqrt(servers))


@pytest.mark.parametrize("sizes", [Exponential(1.0), Pareto(1.5, 1.0 / 3.0)])
def test_class_1_of_the_loss_system_has_offered_load_n(sizes: Law) -> None:
    servers, load = 40, 1.3
    tau = theory.srpt_threshold(load, sizes)
    rate = load * servers / sizes.mean * float(sizes.cdf(tau))
    mean = float(sizes.truncated_mean(tau)) / float(sizes.cdf(tau))
    assert theory.loss_priority_class1_loss(servers) == pytest.approx(theory.erlang_b(servers, rate * mean), rel=1e-9)


def test_class_1_loss_vanishes_like_the_square_root() -> None:
    """B(n, n)·√(πn/2) → 1, by Stirling's formula and the central limit theorem."""
    for servers in (100, 10_000):
        scaled = theory.loss_priority_class1_loss(servers) * math.sqrt(math.pi * servers / 2.0)
        assert scaled == pytest.approx(1.0, abs=1.0 / math.sqrt(servers))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: theory.srpt_threshold(1.0, Exponential(1.0)),
            r"srpt_threshold: load must be above 1 \(overload\)",
        ),
        (lambda: theory.srpt_threshold(1 + 1e-12, Pareto(1.01, 1.0)), "load must be farther above 1"),
        (lambda: theory.srpt_threshold(1.2, Deterministic(1.0)), "sizes must be a law without atoms"),
        (lambda: theory.srpt_threshold(1.2, Pareto(1.0, 1.0)), "sizes must be a law .* of finite mean"),
        (lambda: theory.fcfs_limit(0.9, Exponential(1.0)), "load must be above 1 .* got 0.9"),
        (lambda: theory.lcfs_limit(math.inf, Exponential(1.0)), "load must be a finite number > 0, got inf"),
        (lambda: theory.patience_crossing(1.0, Exponential(1.0)), "load must be above 1"),
        (lambda: theory.service_crossing(1.0, Weibull(0.4, 1.0)), "load must be above 1"),
        (lambda: theory.service_crossing(1.4, Lomax(1.0, 1.0)), "patience must be a law of finite mean"),
        (lambda: theory.loss_priority_class1_loss(0), "servers must be a whole number"),
    ],
)
def test_bad_input_names_the_argument(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
