"""What every law of sizes, patience or gaps offers, and the inversion that the continuous laws share."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from queue_env.distributions.checks import positive, refuse

FloatArray = NDArray[np.float64]
SMALLEST_UNIFORM = 2.0**-54  # half the step of Generator.random


def open_uniform(rng: Generator, count: int) -> FloatArray:
    """Uniform numbers that are never 0 (nor 1), shape (count,)."""
    uniform = rng.random(count)
    return np.maximum(uniform, SMALLEST_UNIFORM, out=uniform)


def log_tail_from(cdf: FloatArray, log_tail: FloatArray) -> FloatArray:
    """The log-tail, but from the cdf where that is below a half and so has more digits."""
    return np.where(cdf < 0.5, np.log1p(-np.minimum(cdf, 0.5)), log_tail)


def _plain(values: FloatArray) -> FloatArray:
    """The values, with an array of no dimension turned into a NumPy float."""
    return np.asarray(values)[()]


class Law(ABC):
    """The law of a positive random variable S: a size (units of work), a patience or a gap (units of time).

    Laws are immutable, compare by value, and are vectorised: a method of x returns an array of the shape
    of x, or a NumPy float for a scalar x. Any real x is accepted, in and out of the support. Probabilities
    keep their digits at both ends: no 1-F is formed where F is near 1.

    The methods here check, move x into the support, and call the formula of the same name with an underscore.

    Attributes:
        name: Name of the law in its spec.
        has_atoms: Whether single values have positive probability.
    """

    name: ClassVar[str]
    has_atoms: ClassVar[bool]
    _scale_fields: ClassVar[tuple[str, ...]]

    @classmethod
    def forms(cls) -> Mapping[tuple[str, ...], Callable[..., Law]]:
        """The accepted sets of parameters, each with what builds the law from them."""
        return {cls._field_names(): cls}

    @classmethod
    def _field_names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    def _check(self, **rules: Callable[[str, str, object], object]) -> None:
        """Replace each named field by its checked value."""
        for field, rule in rules.items():
            object.__setattr__(self, field, rule(self.name, field, getattr(self, field)))

    def spec(self) -> dict[str, Any]:
        """The law by name and numbers, ready for JSON: `law(self.spec()) == self`."""
        values = {field: getattr(self, field) for field in self._field_names()}
        return {"law": self.name} | {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def scaled(self, factor: float) -> Self:
        """The law of factor*S, for a factor > 0."""
        factor = positive(self.name, "factor", factor)
        scales = {field: getattr(self, field) * factor for field in self._scale_fields}
        return replace(self, **scales)  # type: ignore[type-var]

    def with_mean(self, mean: float) -> Self:
        """This law rescaled to the given mean; ValueError where the mean is infinite."""
        mean = positive(self.name, "mean", mean)
        if not math.isfinite(self.mean):
            raise ValueError(f"{self.name}: mean={mean!r} cannot be set: the mean of {self} is infinite")
        return self.scaled(mean / self.mean)

    @property
    @abstractmethod
    def mean(self) -> float:
        """E[S]; inf where infinite."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Var[S]; inf where infinite, or where the mean is."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The smallest closed interval (low, high) that holds S; high may be inf."""

    @abstractmethod
    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density at x; ValueError for a law with atoms."""

    def cdf(self, x: ArrayLike) -> FloatArray:
        """P[S <= x], accurate relatively for small probabilities too."""
        with np.errstate(divide="ignore", over="ignore"):
            return _plain(self._cdf(self._within(x)))

    def tail(self, x: ArrayLike) -> FloatArray:
        """P[S > x], accurate relatively down to the smallest double."""
        with np.errstate(divide="ignore", over="ignore"):
            return _plain(self._tail(self._within(x)))

    def log_tail(self, x: ArrayLike) -> FloatArray:
        """The natural logarithm of P[S > x], also where the tail underflows; -inf where the tail is zero."""
        with np.errstate(divide="ignore", over="ignore"):
            return _plain(self._log_tail(self._within(x)))

    @abstractmethod
    def quantile(self, q: ArrayLike) -> FloatArray:
        """The smallest x with P[S <= x] >= q, for q in [0, 1]."""

    @abstractmethod
    def tail_quantile(self, q: ArrayLike) -> FloatArray:
        """The smallest x with P[S > x] <= q, for q in [0, 1]; accurate for q down to 1e-300."""

    def truncated_moment(self, x: ArrayLike, order: int = 1) -> FloatArray:
        """E[S^order 1{S <= x}], for an integer order >= 0; inf at x = inf where the moment is infinite."""
        if isinstance(order, bool) or not hasattr(order, "__index__") or operator.index(order) < 0:
            refuse(self.name, "order", "an integer >= 0", order)
        with np.errstate(divide="ignore", over="ignore"):
            return _plain(self._truncated_moment(self._within(x), operator.index(order)))

    def truncated_mean(self, x: ArrayLike) -> FloatArray:
        """E[S 1{S <= x}] (not divided by P[S <= x])."""
        return self.truncated_moment(x, 1)

    def residual_tail(self, x: ArrayLike) -> FloatArray:
        """P[residual of S > x] = int_x^inf P[S > t] dt / E[S]; ValueError where the mean is infinite.

        Source: Harchol-Balter, Performance Modeling and Design of Computer Systems (2013), chapter 23.
        """
        if not math.isfinite(self.mean):
            raise ValueError(f"residual_tail needs a law of finite mean, got {self}")
        points = np.maximum(np.asarray(x, dtype=np.float64), 0.0)
        low = self.support[0]
        with np.errstate(divide="ignore", over="ignore"):
            beyond = self._residual_tail(self._within(points))
        return _plain(np.where(points < low, (self.mean - np.minimum(points, low)) / self.mean, beyond))

    @abstractmethod
    def sample(self, rng: Generator, count: int) -> FloatArray:
        """Independent draws of S, shape (count,)."""

    def sample_below(self, rng: Generator, x: ArrayLike, count: int) -> FloatArray:
        """Independent draws of S given S <= x, shape (count,).

        Args:
            rng: Source of randomness.
            x: One bound, or one for each draw, shape (count,).
            count: Number of draws.

        Raises:
            ValueError: If P[S <= x] is zero for some x, or if x has another shape.
        """
        bounds, low = self._bounds(x, count), self.support[0]
        if not np.all(bounds >= low if self.has_atoms else bounds > low):
            refuse(self.name, "x", f"{'>=' if self.has_atoms else '>'} {low} to sample below it", x)
        return self._sample_below(rng, bounds, count)

    def sample_above(self, rng: Generator, x: ArrayLike, count: int) -> FloatArray:
        """Independent draws of S given S > x, shape (count,), exact however small P[S > x] is.

        Args:
            rng: Source of randomness.
            x: One bound, or one for each draw, shape (count,).
            count: Number of draws.

        Raises:
            ValueError: If P[S > x] is zero for some x, or if x has another shape.
        """
        bounds, high = self._bounds(x, count), self.support[1]
        if not np.all(bounds < high):
            refuse(self.name, "x", f"< {high} to sample above it", x)
        return self._sample_above(rng, bounds, count)

    def _bounds(self, x: ArrayLike, count: int) -> FloatArray:
        bounds = np.asarray(x, dtype=np.float64)
        if bounds.shape not in ((), (count,)):
            refuse(self.name, "x", f"one number or an array of shape ({count},)", x)
        return bounds

    def _probabilities(self, q: ArrayLike) -> FloatArray:
        array = np.asarray(q, dtype=np.float64)
        if not np.all((array >= 0) & (array <= 1)):
            refuse(self.name, "q", "in [0, 1]", q)
        return array

    @abstractmethod
    def _within(self, x: ArrayLike) -> FloatArray:
        """The points x as an array, moved into the range where the formulas hold."""

    @abstractmethod
    def _cdf(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _tail(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _log_tail(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _truncated_moment(self, x: FloatArray, order: int) -> FloatArray: ...

    @abstractmethod
    def _residual_tail(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _sample_below(self, rng: Generator, bounds: FloatArray, count: int) -> FloatArray: ...

    @abstractmethod
    def _sample_above(self, rng: Generator, bounds: FloatArray, count: int) -> FloatArray: ...


class ContinuousLaw(Law):
    """A law with a density, sampled by inversion of its cumulative hazard H(x) = -log P[S > x].

    H(S) is a standard exponential, and given S > x so is H(S) - H(x): no probability underflows. A subclass
    gives formulas on its support: `_density`, `_log_tail`, `_from_hazard` (inverse of H), and two integrals.

    Source: Devroye, Non-Uniform Random Variate Generation (1986), sections II.2 and VI.2.
    """

    has_atoms = False

    @abstractmethod
    def _density(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _from_hazard(self, hazard: FloatArray) -> FloatArray:
        """The point x of the support with -log P[S > x] = hazard."""

    def _within(self, x: ArrayLike) -> FloatArray:
        low, high = self.support
        return np.clip(np.asarray(x, dtype=np.float64), low, high)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return -np.expm1(self._log_tail(x))

    def _tail(self, x: FloatArray) -> FloatArray:
        return np.exp(self._log_tail(x))

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density at x: zero outside the support, inf at an endpoint where the density is unbounded."""
        points = np.asarray(x, dtype=np.float64)
        low, high = self.support
        outside = (points < low) | (points > high) | np.isinf(points)
        with np.errstate(divide="ignore", over="ignore"):
            density = self._density(np.where(outside, low, points))
        return _plain(np.where(outside, 0.0, density))

    def quantile(self, q: ArrayLike) -> FloatArray:
        """The x with P[S <= x] = q, for q in [0, 1]."""
        with np.errstate(divide="ignore", over="ignore"):
            return _plain(self._from_hazard(-np.log1p(-self._probabilities(q))))

    def tail_quantile(self, q: ArrayLike) -> FloatArray:
        """The x with P[S > x] = q, for q in [0, 1]; accurate for q down to 1e-300."""
        with np.errstate(divide="ignore", over="ignore"):
            return _plain(self._from_hazard(-np.log(self._probabilities(q))))

    def sample(self, rng: Generator, count: int) -> FloatArray:
        """Independent draws of S, shape (count,)."""
        return self._from_hazard(rng.standard_exponential(count))

    def _sample_below(self, rng: Generator, bounds: FloatArray, count: int) -> FloatArray:
        probability = open_uniform(rng, count)
        probability *= self.cdf(bounds)
        draws = self._from_hazard(-np.log1p(-probability))
        return np.minimum(draws, bounds, out=draws)

    def _sample_above(self, rng: Generator, bounds: FloatArray, count: int) -> FloatArray:
        hazard = rng.standard_exponential(count)
        hazard -= self.log_tail(bounds)
        draws = self._from_hazard(hazard)
        return np.maximum(draws, bounds, out=draws)
