"""Laws of finitely many values: one value, or the values of a sample."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from queue_env.distributions.base import FloatArray, Law
from queue_env.distributions.checks import positive, positives


class AtomicLaw(Law):
    """A law of finitely many equally likely atoms, possibly repeated; a subclass gives `_atoms`, sorted."""

    has_atoms = True

    @property
    @abstractmethod
    def _atoms(self) -> FloatArray: ...

    @property
    def mean(self) -> float:
        """E[S]."""
        return float(np.mean(self._atoms))

    @property
    def variance(self) -> float:
        """Var[S], of the atoms as a whole population."""
        return float(np.var(self._atoms))

    @property
    def support(self) -> tuple[float, float]:
        """(smallest atom, largest atom)."""
        return float(self._atoms[0]), float(self._atoms[-1])

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Raise ValueError: a law with atoms has no density."""
        raise ValueError(f"{self.name}: pdf needs a law without atoms, got {self.name}")

    def _within(self, x: ArrayLike) -> FloatArray:
        return np.minimum(np.asarray(x, dtype=np.float64), self.support[1])

    def _rank(self, x: FloatArray) -> NDArray[np.intp]:
        """Number of atoms <= x."""
        return np.searchsorted(self._atoms, x, side="right")

    def _cdf(self, x: FloatArray) -> FloatArray:
        return self._rank(x) / len(self._atoms)

    def _tail(self, x: FloatArray) -> FloatArray:
        return (len(self._atoms) - self._rank(x)) / len(self._atoms)

    def _log_tail(self, x: FloatArray) -> FloatArray:
        return np.log(self._tail(x))

    def quantile(self, q: ArrayLike) -> FloatArray:
        """The smallest atom x with P[S <= x] >= q, for q in [0, 1]."""
        count = len(self._atoms)
        return self._atoms[np.searchsorted(np.arange(1, count + 1) / count, self._probabilities(q))]

    def tail_quantile(self, q: ArrayLike) -> FloatArray:
        """The smallest atom x with P[S > x] <= q, for q in [0, 1]."""
        count = len(self._atoms)
        beyond = np.searchsorted(np.arange(count) / count, self._probabilities(q), side="right")
        return self._atoms[count - beyond]

    def sample(self, rng: Generator, count: int) -> FloatArray:
        """Independent draws of S, shape (count,)."""
        return self._atoms[rng.integers(0, len(self._atoms), count)]

    def _sample_below(self, rng: Generator, bounds: FloatArray, count: int) -> FloatArray:
        return self._atoms[rng.integers(0, self._rank(bounds), count)]

    def _sample_above(self, rng: Generator, bounds: FloatArray, count: int) -> FloatArray:
        return self._atoms[rng.integers(self._rank(bounds), len(self._atoms), count)]

    def _truncated_moment(self, x: FloatArray, order: int) -> FloatArray:
        sums = np.concatenate([[0.0], np.cumsum(self._atoms**order)])
        return sums[self._rank(x)] / len(self._atoms)

    def _residual_tail(self, x: FloatArray) -> FloatArray:
        """E[(S - x)+]/E[S]; the sums run from the largest atom down, so that small ones keep their digits."""
        rank = self._rank(x)
        sums = np.concatenate([np.cumsum(self._atoms[::-1])[::-1], [0.0]])
        excess = sums[rank] - (len(self._atoms) - rank) * x
        return np.asarray(excess / sums[0])


@dataclass(frozen=True)
class Deterministic(AtomicLaw):
    """One value: P[S = value] = 1.

    Attributes:
        value: The value, > 0, in units of S.
    """

    value: float
    name = "deterministic"
    _scale_fields = ("value",)

    def __post_init__(self) -> None:
        self._check(value=positive)

    @property
    def _atoms(self) -> FloatArray:
        return np.array([self.value])


@dataclass(frozen=True)
class Empirical(AtomicLaw):
    """The law of a value drawn at random from a sample: P[S <= x] = #{i: values[i] <= x} / #values.

    Attributes:
        values: The sample, numbers > 0 in units of S, kept sorted. With a mean as well, rescaled to it.
    """

    values: tuple[float, ...]
    name = "empirical"

    def __post_init__(self) -> None:
        self._check(values=positives)
        object.__setattr__(self, "values", tuple(sorted(self.values)))

    @classmethod
    def forms(cls) -> Mapping[tuple[str, ...], Callable[..., Law]]:
        """The values, and possibly a mean to which they are rescaled."""
        return {("values",): cls, ("values", "mean"): lambda values, mean: cls(values).with_mean(mean)}

    def scaled(self, factor: float) -> Self:
        """The law of factor*S, for a factor > 0."""
        factor = positive(self.name, "factor", factor)
        return type(self)(tuple((self._atoms * factor).tolist()))

    @cached_property
    def _atoms(self) -> FloatArray:
        return np.array(self.values)
