"""Smooth laws with all moments finite: exponential, Weibull, lognormal, uniform."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from scipy import special

from queue_env.distributions.base import ContinuousLaw, FloatArray, Law, log_tail_from, open_uniform
from queue_env.distributions.checks import finite, nonnegative, positive, refuse

_SQRT_TWO_PI = math.sqrt(2 * math.pi)


def _exp(exponent: float) -> float:
    """The exponential, inf where it is larger than any double."""
    return math.exp(exponent) if exponent < 709 else math.inf


@dataclass(frozen=True)
class Exponential(ContinuousLaw):
    """Exponential law: P[S > x] = exp(-x/mean) for x >= 0.

    Attributes:
        scale: The mean, > 0, in units of S; it is called "mean" in the spec.
    """

    scale: float
    name = "exponential"
    _scale_fields = ("scale",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive(self.name, "mean", self.scale))

    @classmethod
    def forms(cls) -> Mapping[tuple[str, ...], Callable[..., Law]]:
        """The mean."""
        return {("mean",): lambda mean: cls(mean)}

    def spec(self) -> dict[str, Any]:
        """The law by name and mean."""
        return {"law": self.name, "mean": self.scale}

    @property
    def mean(self) -> float:
        """E[S]."""
        return self.scale

    @property
    def variance(self) -> float:
        """Var[S] = mean^2."""
        return self.scale**2

    @property
    def support(self) -> tuple[float, float]:
        """(0, inf)."""
        return 0.0, math.inf

    def _density(self, x: FloatArray) -> FloatArray:
        return np.exp(-x / self.scale) / self.scale

    def _log_tail(self, x: FloatArray) -> FloatArray:
        return -x / self.scale

    def _from_hazard(self, hazard: FloatArray) -> FloatArray:
        return self.scale * hazard

    def _truncated_moment(self, x: FloatArray, order: int) -> FloatArray:
        moment = self.scale**order * math.factorial(order)
        return moment * special.gammainc(order + 1, x / self.scale)

    def _residual_tail(self, x: FloatArray) -> FloatArray:
        return np.exp(-x / self.scale)


@dataclass(frozen=True)
class Weibull(ContinuousLaw):
    """Weibull law: P[S > x] = exp(-(x/scale)^shape) for x >= 0.

    Heavier than exponential for shape < 1 (decreasing hazard rate), lighter for shape > 1.

    Attributes:
        shape: Exponent, > 0.
        scale: Scale, > 0, in units of S; or give the mean, scale*Gamma(1 + 1/shape).

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, chapter 21.
    """

    shape: float
    scale: float
    name = "weibull"
    _scale_fields = ("scale",)

    def __post_init__(self) -> None:
        self._check(shape=positive, scale=positive)

    @classmethod
    def forms(cls) -> Mapping[tuple[str, ...], Callable[..., Law]]:
        """Either the scale or the mean."""
        return {
            ("shape", "scale"): cls,
            ("shape", "mean"): lambda shape, mean: cls(shape, 1.0).with_mean(mean),
        }

    @property
    def mean(self) -> float:
        """E[S] = scale*Gamma(1 + 1/shape)."""
        return self.scale * float(special.gamma(1 + 1 / self.shape))

    @property
    def variance(self) -> float:
        """Var[S]."""
        log_ratio = special.gammaln(1 + 2 / self.shape) - 2 * special.gammaln(1 + 1 / self.shape)
        return self.mean * self.mean * float(special.expm1(log_ratio))

    @property
    def support(self) -> tuple[float, float]:
        """(0, inf)."""
        return 0.0, math.inf

    def _hazard(self, x: FloatArray) -> FloatArray:
        return (x / self.scale) ** self.shape

    def _density(self, x: FloatArray) -> FloatArray:
        hazard = np.minimum(self._hazard(x), 1e3)  # exp(-1000) is zero
        return self.shape / self.scale * hazard ** (1 - 1 / self.shape) * np.exp(-hazard)

    def _log_tail(self, x: FloatArray) -> FloatArray:
        return -self._hazard(x)

    def _from_hazard(self, hazard: FloatArray) -> FloatArray:
        return self.scale * hazard ** (1 / self.shape)

    def _truncated_moment(self, x: FloatArray, order: int) -> FloatArray:
        a = 1 + order / self.shape
        # In logarithms, because for a small shape Gamma(a) overflows where the product does not.
        log_moment = special.gammaln(a) + np.log(special.gammainc(a, self._hazard(x)))
        return self.scale**order * np.exp(log_moment)

    def _residual_tail(self, x: FloatArray) -> FloatArray:
        return np.asarray(special.gammaincc(1 / self.shape, self._hazard(x)))


@dataclass(frozen=True)
class Lognormal(ContinuousLaw):
    """Lognormal law: log S is normal with mean mu and standard deviation sigma.

    Attributes:
        sigma: Standard deviation of log S, > 0.
        mu: Mean of log S, with S in its units; or give the mean of S, exp(mu + sigma^2/2).

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, chapter 14.
    """

    sigma: float
    mu: float
    name = "lognormal"

    def __post_init__(self) -> None:
        self._check(sigma=positive, mu=finite)

    @classmethod
    def forms(cls) -> Mapping[tuple[str, ...], Callable[..., Law]]:
        """Either mu or the mean."""
        return {("sigma", "mu"): cls, ("sigma", "mean"): lambda sigma, mean: cls(sigma, 0.0).with_mean(mean)}

    def scaled(self, factor: float) -> Self:
        """The law of factor*S, for a factor > 0."""
        return type(self)(self.sigma, self.mu + math.log(positive(self.name, "factor", factor)))

    @property
    def mean(self) -> float:
        """E[S] = exp(mu + sigma^2/2)."""
        return _exp(self.mu + self.sigma**2 / 2)

    @property
    def variance(self) -> float:
        """Var[S] = (exp(sigma^2) - 1) * mean^2."""
        return self.mean * self.mean * float(special.expm1(self.sigma**2))

    @property
    def support(self) -> tuple[float, float]:
        """(0, inf)."""
        return 0.0, math.inf

    def _score(self, x: FloatArray) -> FloatArray:
        return (np.log(x) - self.mu) / self.sigma

    def _density(self, x: FloatArray) -> FloatArray:
        # The normal exponent minus log x, with the square completed: no inf - inf at 0.
        exponent = (self.sigma**2 - (self._score(x) + self.sigma) ** 2) / 2 - self.mu
        return np.exp(exponent) / (self.sigma * _SQRT_TWO_PI)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return special.ndtr(self._score(x))

    def _tail(self, x: FloatArray) -> FloatArray:
        return special.ndtr(-self._score(x))

    def _log_tail(self, x: FloatArray) -> FloatArray:
        return special.log_ndtr(-self._score(x))

    def _from_hazard(self, hazard: FloatArray) -> FloatArray:
        return np.exp(self.mu - self.sigma * special.ndtri_exp(-hazard))

    def sample(self, rng: Generator, count: int) -> FloatArray:
        """Independent draws of S, shape (count,)."""
        draws = rng.standard_normal(count)
        draws *= self.sigma
        draws += self.mu
        return np.exp(draws, out=draws)

    def _truncated_moment(self, x: FloatArray, order: int) -> FloatArray:
        shift = order * self.sigma
        return np.exp(order * self.mu + shift**2 / 2 + special.log_ndtr(self._score(x) - shift))

    def _residual_tail(self, x: FloatArray) -> FloatArray:
        """E[(S-x)+]/E[S], as in the Black-Scholes formula; far out as a difference of Mills ratios."""
        score = self._score(x)
        near_score = np.minimum(score, self.sigma)
        log_share = self.sigma * near_score - self.sigma**2 / 2 + special.log_ndtr(-near_score)
        near = special.ndtr(self.sigma - near_score) - np.exp(log_share)
        excess = np.maximum(score - self.sigma, 0.0)
        mills = special.erfcx(excess / math.sqrt(2)) - special.erfcx((excess + self.sigma) / math.sqrt(2))
        far = 0.5 * np.exp(-(excess**2) / 2) * mills
        return np.where(score < self.sigma, near, far)


@dataclass(frozen=True)
class Uniform(ContinuousLaw):
    """Uniform law on [low, high].

    Attributes:
        low: Smallest value, >= 0, in units of S.
        high: Largest value, > low.
    """

    low: float
    high: float
    name = "uniform"
    _scale_fields = ("low", "high")

    def __post_init__(self) -> None:
        self._check(low=nonnegative, high=positive)
        if self.high <= self.low:
            refuse(self.name, "high", f"> low={self.low}", self.high)

    @property
    def mean(self) -> float:
        """E[S] = (low + high)/2."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> float:
        """Var[S] = (high - low)^2/12."""
        return self._width**2 / 12

    @property
    def support(self) -> tuple[float, float]:
        """(low, high)."""
        return self.low, self.high

    @property
    def _width(self) -> float:
        return self.high - self.low

    def _density(self, x: FloatArray) -> FloatArray:
        return np.full_like(x, 1 / self._width)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return (x - self.low) / self._width

    def _tail(self, x: FloatArray) -> FloatArray:
        return (self.high - x) / self._width

    def _log_tail(self, x: FloatArray) -> FloatArray:
        return log_tail_from(self._cdf(x), np.log(self._tail(x)))

    def _from_hazard(self, hazard: FloatArray) -> FloatArray:
        return np.minimum(self.low - self._width * np.expm1(-hazard), self.high)

    def sample(self, rng: Generator, count: int) -> FloatArray:
        """Independent draws of S, shape (count,)."""
        return np.minimum(self.low + self._width * open_uniform(rng, count), self.high)

    def _truncated_moment(self, x: FloatArray, order: int) -> FloatArray:
        """(x^(order+1) - low^(order+1)) / ((order+1)(high-low)), with (x - low) divided out."""
        powers = sum(x**j * self.low ** (order - j) for j in range(order + 1))
        return (x - self.low) * powers / ((order + 1) * self._width)

    def _residual_tail(self, x: FloatArray) -> FloatArray:
        return (self.high - x) ** 2 / (2 * self._width * self.mean)
