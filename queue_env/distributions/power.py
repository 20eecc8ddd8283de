"""Laws whose tail is a power of x: Pareto, Lomax, and the Pareto law cut off at a largest value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy import special

from queue_env.distributions.base import ContinuousLaw, FloatArray, Law, log_tail_from, open_uniform
from queue_env.distributions.checks import positive, refuse

_NODES, _WEIGHTS = special.roots_legendre(24)


def _exponential_integral(rate: float, length: FloatArray) -> FloatArray:
    """int_0^length exp(rate*u) du, without cancellation."""
    return length if rate == 0 else np.expm1(rate * length) / rate


def _short_integral(integrand: Callable[[FloatArray], FloatArray], length: FloatArray) -> FloatArray:
    """int_0^length of a smooth integrand by Gauss-Legendre quadrature, exact for short lengths."""
    half = np.asarray(length / 2)
    values = integrand(np.multiply.outer(half, _NODES + 1))
    return half * (values @ _WEIGHTS)


@dataclass(frozen=True)
class Pareto(ContinuousLaw):
    """Pareto law: P[S > x] = (minimum/x)^alpha for x >= minimum.

    The mean is infinite for alpha <= 1 and the variance for alpha <= 2.

    Attributes:
        alpha: Tail index, > 0.
        minimum: Smallest value, > 0, in units of S; or give the mean, for alpha > 1.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, chapter 20 (first kind).
    """

    alpha: float
    minimum: float
    name = "pareto"
    _scale_fields = ("minimum",)

    def __post_init__(self) -> None:
        self._check(alpha=positive, minimum=positive)

    @classmethod
    def forms(cls) -> Mapping[tuple[str, ...], Callable[..., Law]]:
        """Either the minimum or the mean."""
        return {
            ("alpha", "minimum"): cls,
            ("alpha", "mean"): lambda alpha, mean: cls(alpha, 1.0).with_mean(mean),
        }

    @property
    def mean(self) -> float:
        """E[S] = minimum*alpha/(alpha-1); inf for alpha <= 1."""
        return self.minimum * self.alpha / (self.alpha - 1) if self.alpha > 1 else math.inf

    @property
    def variance(self) -> float:
        """Var[S]; inf for alpha <= 2."""
        a = self.alpha
        return self.minimum**2 * a / ((a - 1) ** 2 * (a - 2)) if a > 2 else math.inf

    @property
    def support(self) -> tuple[float, float]:
        """(minimum, inf)."""
        return self.minimum, math.inf

    def _log_ratio(self, x: FloatArray) -> FloatArray:
        """log(x/minimum), accurate near the minimum."""
        return np.log1p((x - self.minimum) / self.minimum)

    def _density(self, x: FloatArray) -> FloatArray:
        return self.alpha / x * self._tail(x)

    def _log_tail(self, x: FloatArray) -> FloatArray:
        return -self.alpha * self._log_ratio(x)

    def _from_hazard(self, hazard: FloatArray) -> FloatArray:
        return self.minimum * np.exp(hazard / self.alpha)

    def sample(self, rng: Generator, count: int) -> FloatArray:
        """Independent draws of S, shape (count,)."""
        draws = rng.standard_exponential(count)
        draws /= self.alpha
        np.exp(draws, out=draws)
        draws *= self.minimum
        return draws

    def _truncated_moment(self, x: FloatArray, order: int) -> FloatArray:
        integral = _exponential_integral(order - self.alpha, self._log_ratio(x))
        return self.alpha * self.minimum**order * integral

    def _residual_tail(self, x: FloatArray) -> FloatArray:
        return np.exp((1 - self.alpha) * self._log_ratio(x)) / self.alpha


@dataclass(frozen=True)
class Lomax(ContinuousLaw):
    """Lomax law (Pareto of the second kind, from zero): P[S > x] = (1 + x/scale)^-alpha for x >= 0.

    The mean is infinite for alpha <= 1 and the variance for alpha <= 2.

    Attributes:
        alpha: Tail index, > 0.
        scale: Scale, > 0, in units of S; or give the mean, scale/(alpha-1), for alpha > 1.

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, chapter 20 (second kind).
    """

    alpha: float
    scale: float
    name = "lomax"
    _scale_fields = ("scale",)

    def __post_init__(self) -> None:
        self._check(alpha=positive, scale=positive)

    @classmethod
    def forms(cls) -> Mapping[tuple[str, ...], Callable[..., Law]]:
        """Either the scale or the mean."""
        return {
            ("alpha", "scale"): cls,
            ("alpha", "mean"): lambda alpha, mean: cls(alpha, 1.0).with_mean(mean),
        }

    @property
    def mean(self) -> float:
        """E[S] = scale/(alpha-1); inf for alpha <= 1."""
        return self.scale / (self.alpha - 1) if self.alpha > 1 else math.inf

    @property
    def variance(self) -> float:
        """Var[S]; inf for alpha <= 2."""
        a = self.alpha
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2)) if a > 2 else math.inf

    @property
    def support(self) -> tuple[float, float]:
        """(0, inf)."""
        return 0.0, math.inf

    def _density(self, x: FloatArray) -> FloatArray:
        return self.alpha / (self.scale + x) * self._tail(x)

    def _log_tail(self, x: FloatArray) -> FloatArray:
        return -self.alpha * np.log1p(x / self.scale)

    def _from_hazard(self, hazard: FloatArray) -> FloatArray:
        return self.scale * np.expm1(hazard / self.alpha)

    def _truncated_moment(self, x: FloatArray, order: int) -> FloatArray:
        y = x / self.scale
        unit = self._finite_moment(y, order) if order < self.alpha else self._infinite_moment(y, order)
        return self.alpha * self.scale**order * unit

    def _finite_moment(self, y: FloatArray, order: int) -> FloatArray:
        """int_0^y t^order (1+t)^(-alpha-1) dt where it converges at infinity: an incomplete beta function."""
        a, b = order + 1, self.alpha - order
        near = np.minimum(y, 1.0)
        # Of y/(1+y) and 1/(1+y), use the one that keeps its digits: the other rounds to 1.
        share = np.where(y < 1, special.betainc(a, b, near / (1 + near)), special.betaincc(b, a, 1 / (1 + y)))
        return special.beta(a, b) * share

    def _infinite_moment(self, y: FloatArray, order: int) -> FloatArray:
        """The same integral where it diverges: with t = e^u - 1, quadrature near zero, else term by term."""
        length = np.log1p(y)
        near = _short_integral(
            lambda u: np.expm1(u) ** order * np.exp(-self.alpha * u), np.minimum(length, math.log(8))
        )
        # Past e^60 the leading term alone counts: the others are held there, so inf - inf cannot occur.
        far = _exponential_integral(order - self.alpha, length)
        for j in range(order):
            sign = (-1) ** (order - j)
            lower = _exponential_integral(j - self.alpha, np.minimum(length, 60.0))
            far = far + sign * math.comb(order, j) * lower
        return np.where(y < 7, near, far)

    def _residual_tail(self, x: FloatArray) -> FloatArray:
        return np.exp((1 - self.alpha) * np.log1p(x / self.scale))


@dataclass(frozen=True)
class BoundedPareto(ContinuousLaw):
    """Pareto law cut off at high: P[S > x] = ((low/x)^alpha - r) / (1 - r) on [low, high].

    Here r = (low/high)^alpha is what the Pareto law from low has above high.

    Attributes:
        alpha: Tail index, > 0.
        low: Smallest value, > 0, in units of S.
        high: Largest value, > low. With a mean as well, low and high are rescaled to that mean.

    Source: Harchol-Balter, Performance Modeling and Design of Computer Systems, section 20.6.
    """

    alpha: float
    low: float
    high: float
    name = "bounded-pareto"
    _scale_fields = ("low", "high")

    def __post_init__(self) -> None:
        self._check(alpha=positive, low=positive, high=positive)
        if self.high <= self.low:
            refuse(self.name, "high", f"> low={self.low}", self.high)
        if self._width > 690:
            refuse(self.name, "high", "such that (high/low)^alpha < 1e299 (beyond that use pareto)", self.high)

    @classmethod
    def forms(cls) -> Mapping[tuple[str, ...], Callable[..., Law]]:
        """The range, and possibly a mean to which it is rescaled."""
        return {
            ("alpha", "low", "high"): cls,
            ("alpha", "low", "high", "mean"): lambda mean, **range_: cls(**range_).with_mean(mean),
        }

    @property
    def mean(self) -> float:
        """E[S]."""
        return float(self.truncated_moment(self.high, 1))

    @property
    def variance(self) -> float:
        """Var[S]."""
        return float(self.truncated_moment(self.high, 2)) - self.mean**2

    @property
    def support(self) -> tuple[float, float]:
        """(low, high)."""
        return self.low, self.high

    @property
    def _width(self) -> float:
        """Length of the support in log(x), times alpha."""
        return self.alpha * math.log1p((self.high - self.low) / self.low)

    @property
    def _mass(self) -> float:
        """Probability of [low, high] under the Pareto law from low."""
        return -math.expm1(-self._width)

    def _log_ratio(self, x: FloatArray) -> FloatArray:
        """log(x/low), accurate near low."""
        return np.log1p((x - self.low) / self.low)

    def _log_distance(self, x: FloatArray) -> FloatArray:
        """log(high/x), accurate near high."""
        return np.log1p((self.high - x) / x)

    def _density(self, x: FloatArray) -> FloatArray:
        return self.alpha / x * np.exp(-self.alpha * self._log_ratio(x)) / self._mass

    def _cdf(self, x: FloatArray) -> FloatArray:
        return -np.expm1(-self.alpha * self._log_ratio(x)) / self._mass

    def _tail(self, x: FloatArray) -> FloatArray:
        return np.expm1(self.alpha * self._log_distance(x)) / math.expm1(self._width)

    def _log_tail(self, x: FloatArray) -> FloatArray:
        return log_tail_from(self._cdf(x), np.log(self._tail(x)))

    def _from_hazard(self, hazard: FloatArray) -> FloatArray:
        distance = np.log1p(np.exp(-hazard) * math.expm1(self._width))
        return np.clip(self.high * np.exp(-distance / self.alpha), self.low, self.high)

    def sample(self, rng: Generator, count: int) -> FloatArray:
        """Independent draws of S, shape (count,)."""
        draws = open_uniform(rng, count)
        draws *= -self._mass
        np.log1p(draws, out=draws)
        draws /= -self.alpha
        np.exp(draws, out=draws)
        draws *= self.low
        return np.minimum(draws, self.high, out=draws)

    def _truncated_moment(self, x: FloatArray, order: int) -> FloatArray:
        integral = _exponential_integral(order - self.alpha, self._log_ratio(x))
        return self.alpha * self.low**order * integral / self._mass

    def _residual_tail(self, x: FloatArray) -> FloatArray:
        # With t = high*e^-u the tail at t is (e^(alpha u) - 1) / (e^width - 1).
        length = self._log_distance(x)
        integral = _exponential_integral(self.alpha - 1, length) + np.expm1(-length)
        return self.high / self.mean / math.expm1(self._width) * integral
