"""The laws of sizes and patience, each against its twin in scipy.stats, quadrature, and its own draws."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from queue_env.distributions import (
    LAWS,
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
    law,
)

# Every statistical test below raises a false alarm with probability 1e-6 (about 250 of them: 3e-4 in all).
FALSE_ALARM = 1e-6
DRAWS = 100_000
NODES, WEIGHTS = special.roots_legendre(24)


class PhaseMixture:
    """The hyperexponential law built from scipy.stats.expon."""

    def __init__(self, probabilities: list[float], means: list[float]) -> None:
        self.parts = [(p, stats.expon(scale=m)) for p, m in zip(probabilities, means, strict=True)]

    def __getattr__(self, name: str) -> Any:
        return lambda *x: sum(p * getattr(part, name)(*x) for p, part in self.parts)

    def var(self) -> float:
        return float(sum(p * part.moment(2) for p, part in self.parts) - self.mean() ** 2)

    def logsf(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(np.logaddexp.reduce([math.log(p) + part.logsf(x) for p, part in self.parts]))


class Case(NamedTuple):
    law: Law
    twin: Any


CASES = {
    "pareto": Case(Pareto(1.5, 1 / 3), stats.pareto(1.5, scale=1 / 3)),
    "pareto, alpha 2": Case(Pareto(2.0, 1.0), stats.pareto(2.0)),
    "pareto, no mean": Case(Pareto(0.98, 0.1), stats.pareto(0.98, scale=0.1)),
    "lomax": Case(Lomax(1.5, 0.5), stats.lomax(1.5, scale=0.5)),
    "lomax, alpha 2": Case(Lomax(2.0, 1.0), stats.lomax(2.0)),
    "lomax, alpha 3.7": Case(Lomax(3.7, 2.7), stats.lomax(3.7, scale=2.7)),
    "bounded-pareto": Case(BoundedPareto(1.5, 0.3, 3e4), stats.truncpareto(1.5, 1e5, scale=0.3)),
    "bounded-pareto, alpha 1": Case(BoundedPareto(1.0, 2.0, 20.0), stats.truncpareto(1.0, 10.0, scale=2.0)),
    "weibull, heavy": Case(Weibull(0.4, 0.3), stats.weibull_min(0.4, scale=0.3)),
    "weibull, light": Case(Weibull(3.0, 1.2), stats.weibull_min(3.0, scale=1.2)),
    "lognormal": Case(Lognormal(2.0, -2.0), stats.lognorm(2.0, scale=math.exp(-2))),
    "lognormal, narrow": Case(Lognormal(0.2, 0.0), stats.lognorm(0.2)),
    "exponential": Case(Exponential(2.5), stats.expon(scale=2.5)),
    "hyperexponential": Case(
        Hyperexponential((0.2, 0.3, 0.5), (1.0, 2.0, 30.0)), PhaseMixture([0.2, 0.3, 0.5], [1, 2, 30])
    ),
    "hyperexponential, rare phase": Case(
        Hyperexponential((0.999, 0.001), (0.5, 500.0)), PhaseMixture([0.999, 0.001], [0.5, 500])
    ),
    "uniform": Case(Uniform(0.0, 2.0), stats.uniform(0, 2)),
    "uniform, away from 0": Case(Uniform(1.0, 1.5), stats.uniform(1, 0.5)),
}
ATOMIC = {"deterministic": Deterministic(2.5), "empirical": Empirical((3.0, 1.0, 1.0, 8.0))}


def cases_where(wanted: Callable[[Law], bool]) -> pytest.MarkDecorator:
    chosen = {name: case for name, case in CASES.items() if wanted(case.law)}
    return pytest.mark.parametrize("case", chosen.values(), ids=chosen.keys())


each_case = cases_where(lambda size: True)
each_law = pytest.mark.parametrize(
    "size", [*(case.law for case in CASES.values()), *ATOMIC.values()], ids=[*CASES, *ATOMIC]
)


def bulk(size: Law) -> np.ndarray:
    """Points from 1e-9 at the lower end to 1e-9 at the upper end."""
    q = np.array([1e-9, 1e-6, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9])
    return np.concatenate([size.quantile(q), size.tail_quantile(q[:4])])


def far(size: Law) -> np.ndarray:
    """Points far in the tail, for a law without upper end; near the upper end otherwise."""
    unbounded = math.isinf(size.support[1])
    return size.tail_quantile([1e-30, 1e-100] if unbounded else [1e-5, 1e-8])


def log_quadrature(function: Callable[[np.ndarray], np.ndarray], low: float, high: float, pieces: int = 4) -> float:
    """Integral over [low, high] by Gauss-Legendre quadrature in log(x), so many pieces for a factor e."""
    edges = np.linspace(math.log(low), math.log(high), 2 + int(pieces * math.log(high / low)))
    half = np.diff(edges)[:, None] / 2
    x = np.exp(edges[:-1, None] + half * (NODES + 1))
    return float(np.sum(half * WEIGHTS * x * function(x)))


def close(expected: float, rel: float) -> Any:
    """Relative tolerance only: the absolute one that pytest adds would pass any two numbers below 1e-12."""
    return pytest.approx(expected, rel=rel, abs=0)


def is_uniform(values: np.ndarray) -> bool:
    return bool(stats.kstest(values, "uniform", method="asymp").pvalue > FALSE_ALARM)


# ---- against the twins ----


@each_case
def test_mean_and_variance(case: Case) -> None:
    assert case.law.mean == close(case.twin.mean(), rel=1e-12)
    assert case.law.variance == close(case.twin.var(), rel=1e-9)


@each_case
def test_density_and_probabilities(case: Case) -> None:
    x = bulk(case.law)
    np.testing.assert_allclose(case.law.pdf(x), case.twin.pdf(x), rtol=1e-10)
    np.testing.assert_allclose(case.law.cdf(x), case.twin.cdf(x), rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(case.law.tail(x), case.twin.sf(x), rtol=1e-10, atol=1e-15)


@cases_where(lambda size: math.isinf(size.support[1]))
def test_far_log_tail(case: Case) -> None:
    x = case.law.tail_quantile([1e-20, 1e-100, 1e-300])
    np.testing.assert_allclose(case.law.log_tail(x), case.twin.logsf(x), rtol=1e-12)


# ---- both ends ----


@each_case
def test_tail_quantile_inverts_tail(case: Case) -> None:
    low, high = case.law.support
    q = np.array([1e-300, 1e-200, 1e-40, 1e-16, 1e-6, 0.01, 0.5, 0.9])
    if math.isinf(high):
        np.testing.assert_allclose(case.law.tail(case.law.tail_quantile(q)), q, rtol=1e-11)
        np.testing.assert_allclose(case.law.log_tail(case.law.tail_quantile(q)), np.log(q), rtol=1e-12)
    else:  # x near high has no digits for q: ask for x instead
        x = high - (high - low) * np.array([1e-12, 1e-8, 1e-3, 0.5, 0.9])
        np.testing.assert_allclose(case.law.tail_quantile(case.law.tail(x)), x, rtol=1e-14)
    assert case.law.tail_quantile(0.0) == high
    assert case.law.tail_quantile(1.0) == close(low, rel=1e-14)


@each_case
def test_quantile_inverts_cdf(case: Case) -> None:
    low, high = case.law.support
    q = np.array([1e-5, 0.01, 0.5, 0.9])
    np.testing.assert_allclose(case.law.cdf(case.law.quantile(q)), q, rtol=1e-9)
    if low == 0:
        tiny = np.array([1e-100, 1e-30, 1e-12])
        np.testing.assert_allclose(case.law.cdf(case.law.quantile(tiny)), tiny, rtol=1e-12)
    assert case.law.quantile(0.0) == close(low, rel=1e-14)
    assert case.law.quantile(1.0) == high


@each_case
def test_small_probabilities_keep_their_digits(case: Case) -> None:
    """Near the lower end the cdf is the integral of the density, and the log-tail is minus the cdf."""
    low, _ = case.law.support
    if low == 0:
        x = float(case.law.quantile(1e-12))
        expected = log_quadrature(case.law.pdf, x * 1e-60, x)
    else:
        x = low + 1001 * float(np.spacing(low))
        expected = float(case.law.pdf(low)) * (x - low)
    assert case.law.cdf(x) == close(expected, rel=1e-11)
    assert case.law.log_tail(x) == close(-expected, rel=1e-11)


@each_case
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_truncated_moments(case: Case, order: int) -> None:
    low, _ = case.law.support
    for x in map(float, np.concatenate([bulk(case.law)[1:], far(case.law)])):
        start = low or min(x, float(case.law.quantile(0.5))) * 1e-40
        expected = log_quadrature(lambda t: t**order * case.twin.pdf(t), start, x)
        # Near low > 0 the distance x - low itself has few digits.
        tolerance = 1e-11 if low == 0 else 1e-11 + 1e-15 * x / (x - low)
        assert case.law.truncated_moment(x, order) == close(expected, rel=tolerance), x


@each_case
def test_truncated_mean_ends(case: Case) -> None:
    size = case.law
    low, high = size.support
    np.testing.assert_array_equal(size.truncated_mean([low, low / 2, -1.0]), 0.0)
    assert size.truncated_mean(high) == close(size.mean, rel=1e-13)
    assert size.truncated_moment(high, 2) == close(size.variance + size.mean**2, rel=1e-12)


@each_case
def test_residual_tail(case: Case) -> None:
    size = case.law
    if math.isinf(size.mean):
        with pytest.raises(ValueError, match="finite mean"):
            size.residual_tail(1.0)
        return
    for x in map(float, np.concatenate([bulk(size), far(size)])):
        end = min(size.support[1], x * 1e35)
        tolerance = 1e-10 + 1e-15 * x / (end - x)
        assert size.residual_tail(x) == close(
            log_quadrature(case.twin.sf, x, end, pieces=64) / size.mean, rel=tolerance
        ), x
    low = size.support[0]
    np.testing.assert_allclose(size.residual_tail([-1.0, 0.0, low]), [1, 1, 1 - low / size.mean], rtol=1e-14)


def assert_mean_splits(size: Law, x: float) -> None:
    """E[min(S, x)] is E[S; S <= x] + x P[S > x], and E[S] minus the mean of what lies above x."""
    capped = float(size.truncated_mean(x) + x * size.tail(x))
    assert capped + size.mean * float(size.residual_tail(x)) == close(size.mean, rel=1e-11)


probability = st.floats(1e-12, 1 - 1e-12)


@settings(deadline=None, max_examples=150)
@given(alpha=st.floats(1.02, 12), ratio=st.floats(1.01, 1e9), q=probability)
def test_power_laws_of_any_parameters(alpha: float, ratio: float, q: float) -> None:
    for size in (Pareto(alpha, 2.0), Lomax(alpha, 2.0), BoundedPareto(alpha, 2.0, 2.0 * ratio)):
        assert_mean_splits(size, float(size.tail_quantile(q)))


@settings(deadline=None, max_examples=150)
@given(shape=st.floats(0.1, 8), scv=st.floats(1, 1e4), q=probability)
def test_light_laws_of_any_parameters(shape: float, scv: float, q: float) -> None:
    for size in (Weibull(shape, 2.0), Lognormal(shape, 0.5), Hyperexponential.balanced(2.0, scv)):
        x = float(size.tail_quantile(q))
        assert size.tail(x) == close(q, rel=1e-11)
        assert_mean_splits(size, x)


# ---- draws ----


@each_case
def test_sample(case: Case) -> None:
    draws = case.law.sample(np.random.default_rng(1), DRAWS)
    low, high = case.law.support
    assert draws.shape == (DRAWS,)
    assert draws.dtype == np.float64
    assert low <= draws.min() <= draws.max() <= high
    assert is_uniform(case.twin.cdf(draws))
    np.testing.assert_array_equal(draws, case.law.sample(np.random.default_rng(1), DRAWS))


@cases_where(lambda size: math.isfinite(size.variance))
def test_sample_mean(case: Case) -> None:
    size = case.law
    draws = size.sample(np.random.default_rng(2), 4 * DRAWS)
    margin = special.ndtri(1 - FALSE_ALARM / 2) * math.sqrt(size.variance / len(draws))
    assert abs(draws.mean() - size.mean) <= margin


@each_case
def test_sample_below(case: Case) -> None:
    size, rng = case.law, np.random.default_rng(3)
    for x in [*size.quantile([1e-7, 0.5, 0.999]), math.inf]:
        draws = size.sample_below(rng, x, DRAWS)
        assert draws.max() <= x
        assert is_uniform(size.cdf(draws) / size.cdf(x))
    bounds = size.quantile(rng.uniform(0.01, 1, DRAWS))
    draws = size.sample_below(rng, bounds, DRAWS)
    assert np.all(draws <= bounds)
    assert is_uniform(size.cdf(draws) / size.cdf(bounds))


@each_case
def test_sample_above(case: Case) -> None:
    size, rng = case.law, np.random.default_rng(4)
    unbounded = math.isinf(size.support[1])
    for x in [0.0, *size.tail_quantile([0.9, 0.5, 1e-30, 1e-250] if unbounded else [0.9, 0.5, 1e-7])]:
        draws = size.sample_above(rng, x, DRAWS)
        assert draws.min() >= max(x, size.support[0])
        assert is_uniform(np.exp(size.log_tail(draws) - size.log_tail(x)))
    bounds = size.tail_quantile(rng.uniform(0.01, 1, DRAWS))
    draws = size.sample_above(rng, bounds, DRAWS)
    assert np.all(draws >= bounds)
    assert is_uniform(size.tail(draws) / size.tail(bounds))


@cases_where(lambda size: bool(-2e4 < size.log_tail(1e4 * size.mean) < -800))
def test_sample_above_where_the_tail_underflows(case: Case) -> None:
    x = 1e4 * case.law.mean
    assert case.law.tail(x) == 0
    draws = case.law.sample_above(np.random.default_rng(5), x, DRAWS)
    assert is_uniform(np.exp(case.law.log_tail(draws) - case.law.log_tail(x)))


@each_law
def test_conditioning_on_nothing_is_refused(size: Law) -> None:
    low, high = size.support
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=f"{size.name}: x must be .* to sample below it, got"):
        size.sample_below(rng, low * (1 - 1e-9), 3)
    with pytest.raises(ValueError, match=f"{size.name}: x must be < .* to sample above it, got"):
        size.sample_above(rng, [low / 2, low / 2, high], 3)
    with pytest.raises(ValueError, match=r"one number or an array of shape \(3,\)"):
        size.sample_above(rng, [low / 2, low / 2], 3)


# ---- laws with atoms ----


def test_deterministic() -> None:
    size = Deterministic(2.5)
    assert (size.mean, size.variance, size.support, size.has_atoms) == (2.5, 0, (2.5, 2.5), True)
    x = np.array([-1, 2.4, 2.5, 3])
    np.testing.assert_array_equal(size.cdf(x), [0, 0, 1, 1])
    np.testing.assert_array_equal(size.tail(x), [1, 1, 0, 0])
    np.testing.assert_array_equal(size.log_tail(x), [0, 0, -np.inf, -np.inf])
    np.testing.assert_array_equal(size.truncated_moment(x, 2), [0, 0, 6.25, 6.25])
    np.testing.assert_allclose(size.residual_tail(x), [1, 0.04, 0, 0], rtol=1e-14)
    np.testing.assert_array_equal(size.tail_quantile([0, 0.3, 0.99]), 2.5)
    np.testing.assert_array_equal(size.sample_above(np.random.default_rng(0), [1, 2, 2.4], 3), 2.5)


def test_empirical_by_hand() -> None:
    size = Empirical((3.0, 1.0, 1.0, 8.0))
    assert (size.mean, size.variance, size.support) == (3.25, 8.1875, (1.0, 8.0))
    x = np.array([0.5, 1, 2.9, 3, 7, 8, np.inf])
    np.testing.assert_array_equal(size.cdf(x), np.array([0, 2, 2, 3, 3, 4, 4]) / 4)
    np.testing.assert_array_equal(size.tail(x), np.array([4, 2, 2, 1, 1, 0, 0]) / 4)
    np.testing.assert_allclose(size.truncated_mean(x), np.array([0, 2, 2, 5, 5, 13, 13]) / 4)
    np.testing.assert_allclose(size.residual_tail(x), np.array([11, 9, 5.2, 5, 1, 0, 0]) / 13, atol=1e-15)
    np.testing.assert_array_equal(size.quantile([0, 0.5, 0.51, 0.75, 0.76, 1]), [1, 1, 3, 3, 8, 8])
    np.testing.assert_array_equal(size.tail_quantile([1, 0.5, 0.49, 0.25, 0.24, 0]), [1, 1, 3, 3, 8, 8])


def test_empirical_quantiles_have_no_rounding_at_the_steps() -> None:
    values = np.sort(np.random.default_rng(5).exponential(size=997))
    size = Empirical(tuple(values))
    np.testing.assert_array_equal(size.quantile(size.cdf(values)), values)
    np.testing.assert_array_equal(size.tail_quantile(size.tail(values)), values)
    q = np.linspace(0.001, 0.999, 100)
    np.testing.assert_array_equal(size.quantile(q), np.quantile(values, q, method="inverted_cdf"))


def test_empirical_draws() -> None:
    size, rng = ATOMIC["empirical"], np.random.default_rng(6)
    for draws, expected in [
        (size.sample(rng, DRAWS), [1 / 2, 1 / 4, 1 / 4]),
        (size.sample_below(rng, 3.0, DRAWS), [2 / 3, 1 / 3, 0]),
        (size.sample_above(rng, 1.0, DRAWS), [0, 1 / 2, 1 / 2]),
    ]:
        counts = np.array([np.sum(draws == value) for value in (1, 3, 8)])
        seen = np.array(expected) > 0
        assert counts[~seen].sum() == 0
        assert stats.chisquare(counts[seen], DRAWS * np.array(expected)[seen]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("size", ATOMIC.values(), ids=ATOMIC.keys())
def test_atoms_have_no_density(size: Law) -> None:
    with pytest.raises(ValueError, match=f"{size.name}: pdf needs a law without atoms"):
        size.pdf(1.0)


# ---- the interface ----


@each_law
def test_shapes_and_points_outside_the_support(size: Law) -> None:
    low, high = size.support
    assert isinstance(size.tail(1.0), float)
    assert isinstance(size.truncated_mean(1.0), float)
    assert isinstance(size.tail_quantile(0.1), float)
    assert size.log_tail(np.ones((2, 3))).shape == size.truncated_mean(np.ones((2, 3))).shape == (2, 3)
    outside = [-np.inf, -1.0, low * (1 - 1e-9), high * (1 + 1e-9), np.inf]
    np.testing.assert_array_equal(size.cdf(outside), [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(size.tail(outside), [1, 1, 1, 0, 0])
    if not size.has_atoms:
        assert isinstance(size.pdf(1.0), float)
        np.testing.assert_array_equal(size.pdf([-np.inf, -1.0, np.inf]), 0)


@each_law
def test_spec_round_trip(size: Law) -> None:
    again = law(json.loads(json.dumps(size.spec())))
    assert again == size
    assert hash(again) == hash(size)
    assert again != size.scaled(2)
    assert law(size) is size


@each_law
def test_scaled(size: Law) -> None:
    triple = size.scaled(3)
    x = size.tail_quantile([0.9, 0.5, 0.1])
    np.testing.assert_allclose(triple.mean, 3 * size.mean)
    np.testing.assert_allclose(triple.variance, 9 * size.variance)
    np.testing.assert_allclose(triple.tail_quantile([0.9, 0.5, 0.1]), 3 * x)
    if math.isfinite(size.mean):
        assert size.with_mean(7).mean == close(7, rel=1e-14)


MEAN_FORMS: list[tuple[dict[str, Any], Law]] = [
    ({"law": "pareto", "alpha": 1.5, "mean": 1}, Pareto(1.5, 1 / 3)),
    ({"law": "lomax", "alpha": 3, "mean": 1}, Lomax(3, 2)),
    ({"law": "bounded-pareto", "alpha": 2, "low": 1, "high": 4, "mean": 3.2}, BoundedPareto(2, 2, 8)),
    ({"law": "weibull", "shape": 0.5, "mean": 4}, Weibull(0.5, 2)),
    ({"law": "lognormal", "sigma": 2, "mean": 1}, Lognormal(2, -2)),
    ({"law": "exponential", "mean": 2}, Exponential(2)),
    ({"law": "hyperexponential", "mean": 1, "scv": 1}, Hyperexponential((0.5, 0.5), (1, 1))),
    ({"law": "empirical", "values": [1, 3], "mean": 4}, Empirical((2, 6))),
]


@pytest.mark.parametrize(("spec", "expected"), MEAN_FORMS, ids=[spec["law"] for spec, _ in MEAN_FORMS])
def test_mean_in_place_of_a_scale(spec: dict[str, Any], expected: Law) -> None:
    assert type(law(spec)) is type(expected)
    x = expected.tail_quantile([0.9, 0.4, 0.01])
    np.testing.assert_allclose(law(spec).tail_quantile([0.9, 0.4, 0.01]), x, rtol=1e-13)


@pytest.mark.parametrize("scv", [1.0, 4.0, 1e8])
def test_balanced_means(scv: float) -> None:
    size = Hyperexponential.balanced(3.0, scv)
    assert size.mean == close(3, rel=1e-14)
    assert size.variance == close(9 * scv, rel=1e-12)
    first, second = (p * m for p, m in zip(size.probabilities, size.means, strict=True))
    assert first == close(second, rel=1e-14)


REFUSALS: list[tuple[Any, str]] = [
    (3, "spec must be a mapping such as {'law': 'exponential', 'mean': 1}, got 3"),
    ({"alpha": 2}, "spec must be a mapping such as {'law': 'exponential', 'mean': 1}, got {'alpha': 2}"),
    ({"law": "paretto"}, f"law must be one of {', '.join(LAWS)}, got 'paretto' (did you mean 'pareto'?)"),
    ({"law": ["pareto"]}, f"law must be one of {', '.join(LAWS)}, got ['pareto'] (did you mean 'pareto'?)"),
    (
        {"law": "pareto", "alhpa": 2, "mean": 1},
        "pareto takes (alpha, minimum) or (alpha, mean): unknown parameter 'alhpa' (value 2) (did you mean 'alpha'?)",
    ),
    (
        {"law": "weibull", "mean": 1},
        "weibull takes (shape, scale) or (shape, mean): missing parameter 'shape'",
    ),
    (
        {"law": "lomax", "alpha": 2, "scale": 1, "mean": 1},
        "lomax takes (alpha, scale) or (alpha, mean): the parameters 'alpha', 'scale', 'mean' do not go together",
    ),
    (
        {"law": "pareto", "alpha": 0.9, "mean": 1},
        "pareto: mean=1.0 cannot be set: the mean of Pareto(alpha=0.9, minimum=1.0) is infinite",
    ),
    ({"law": "pareto", "alpha": -1, "mean": 1}, "pareto: alpha must be a finite number > 0, got -1"),
    ({"law": "exponential", "mean": math.inf}, "exponential: mean must be a finite number > 0, got inf"),
    ({"law": "exponential", "mean": "1"}, "exponential: mean must be a finite number > 0, got '1'"),
    ({"law": "deterministic", "value": True}, "deterministic: value must be a finite number > 0, got True"),
    ({"law": "lognormal", "sigma": 1, "mu": math.nan}, "lognormal: mu must be a finite number, got nan"),
    ({"law": "uniform", "low": -1, "high": 1}, "uniform: low must be a finite number >= 0, got -1"),
    ({"law": "uniform", "low": 1, "high": 1}, "uniform: high must be > low=1.0, got 1.0"),
    (
        {"law": "bounded-pareto", "alpha": 2, "low": 3, "high": 2},
        "bounded-pareto: high must be > low=3.0, got 2.0",
    ),
    (
        {"law": "bounded-pareto", "alpha": 20, "low": 1, "high": 1e20},
        "bounded-pareto: high must be such that (high/low)^alpha < 1e299 (beyond that use pareto), got 1e+20",
    ),
    (
        {"law": "hyperexponential", "probabilities": [0.5, 0.4], "means": [1, 2]},
        "hyperexponential: probabilities must be numbers > 0 with sum 1, got (0.5, 0.4)",
    ),
    (
        {"law": "hyperexponential", "probabilities": [0.5, 0.5], "means": [1]},
        "hyperexponential: means must be as many as the 2 probabilities, got (1.0,)",
    ),
    ({"law": "hyperexponential", "mean": 1, "scv": 0.5}, "hyperexponential: scv must be >= 1, got 0.5"),
    (
        {"law": "empirical", "values": []},
        "empirical: values must be a non-empty list of finite numbers > 0, got []",
    ),
    (
        {"law": "empirical", "values": 3},
        "empirical: values must be a non-empty list of finite numbers > 0, got 3",
    ),
    ({"law": "empirical", "values": [1, 0]}, "empirical: values[1] must be a finite number > 0, got 0"),
]


@pytest.mark.parametrize(("spec", "message"), REFUSALS, ids=[message[:40] for _, message in REFUSALS])
def test_refusals(spec: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        law(spec)
    assert str(error.value) == message


def test_bad_arguments_of_methods() -> None:
    size = Exponential(1)
    with pytest.raises(ValueError, match=r"exponential: q must be in \[0, 1\], got 1.5"):
        size.tail_quantile(1.5)
    with pytest.raises(ValueError, match=r"exponential: order must be an integer >= 0, got 0.5"):
        size.truncated_moment(1.0, 0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"exponential: factor must be a finite number > 0, got 0"):
        size.scaled(0)


def test_scipy_stats_is_not_loaded() -> None:
    code = "import sys, queue_env.distributions; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
