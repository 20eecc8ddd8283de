"""Mixtures of exponential laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.random import Generator
from scipy import special

from queue_env.distributions.base import ContinuousLaw, FloatArray, Law, log_tail_from, open_uniform
from queue_env.distributions.checks import finite, positive, positives, refuse


@dataclass(frozen=True)
class Hyperexponential(ContinuousLaw):
    """Hyperexponential law: P[S > x] = sum_i probabilities[i] * exp(-x/means[i]) for x >= 0.

    Instead, a mean and a squared coefficient of variation (scv >= 1) give the law of two phases with balanced
    means, p_1 m_1 = p_2 m_2.

    Attributes:
        probabilities: Probability of each phase, > 0, sum 1.
        means: Mean of each phase, > 0, in units of S.

    Source: Tijms, A First Course in Stochastic Models (2003), appendix B (hyperexponential, balanced means).
    """

    probabilities: tuple[float, ...]
    means: tuple[float, ...]
    name = "hyperexponential"

    def __post_init__(self) -> None:
        self._check(probabilities=positives, means=positives)
        if abs(math.fsum(self.probabilities) - 1) > 1e-12:
            refuse(self.name, "probabilities", "numbers > 0 with sum 1", self.probabilities)
        if len(self.means) != len(self.probabilities):
            refuse(self.name, "means", f"as many as the {len(self.probabilities)} probabilities", self.means)

    @classmethod
    def forms(cls) -> Mapping[tuple[str, ...], Callable[..., Law]]:
        """The phases, or the mean and the squared coefficient of variation of two balanced phases."""
        return {("probabilities", "means"): cls, ("mean", "scv"): cls.balanced}

    @classmethod
    def balanced(cls, mean: float, scv: float) -> Self:
        """Two phases with balanced means.

        Args:
            mean: E[S], > 0.
            scv: Var[S]/E[S]^2, >= 1.
        """
        mean, scv = positive(cls.name, "mean", mean), finite(cls.name, "scv", scv)
        if scv < 1:
            refuse(cls.name, "scv", ">= 1", scv)
        rare = 1 / ((scv + 1) * (1 + math.sqrt((scv - 1) / (scv + 1))))
        return cls((1 - rare, rare), (mean / (2 * (1 - rare)), mean / (2 * rare)))

    def scaled(self, factor: float) -> Self:
        """The law of factor*S, for a factor > 0."""
        factor = positive(self.name, "factor", factor)
        return type(self)(self.probabilities, tuple(mean * factor for mean in self.means))

    @property
    def mean(self) -> float:
        """E[S]."""
        return math.fsum(p * m for p, m in zip(self.probabilities, self.means, strict=True))

    @property
    def variance(self) -> float:
        """Var[S]."""
        return math.fsum(
            [2 * p * m**2 for p, m in zip(self.probabilities, self.means, strict=True)] + [-(self.mean**2)]
        )

    @property
    def support(self) -> tuple[float, float]:
        """(0, inf)."""
        return 0.0, math.inf

    def _phases(self, x: FloatArray) -> FloatArray:
        """-x/means[i] for each x and phase, shape (*x.shape, phases)."""
        return np.asarray(np.divide.outer(-x, self.means))

    def _weights(self, x: FloatArray) -> FloatArray:
        """Probability of each phase given S > x, shape (*x.shape, phases)."""
        return np.asarray(special.softmax(np.log(self.probabilities) + self._phases(x), axis=-1))

    def _density(self, x: FloatArray) -> FloatArray:
        return np.exp(self._phases(x)) @ (np.array(self.probabilities) / self.means)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return np.asarray(-np.expm1(self._phases(x)) @ self.probabilities)

    def _log_tail(self, x: FloatArray) -> FloatArray:
        far = np.logaddexp.reduce(np.log(self.probabilities) + self._phases(x), axis=-1)
        return log_tail_from(self._cdf(x), far)

    def _from_hazard(self, hazard: FloatArray) -> FloatArray:
        """Newton's method from the left: -log P[S > x] is concave, so the steps never overshoot.

        It starts at the largest of the lower bounds that the first hazard rate and each phase alone give.
        """
        target = np.where(np.isinf(hazard), 0.0, hazard)
        rates = 1 / np.array(self.means)
        x = target / np.dot(self.probabilities, rates)
        for p, m in zip(self.probabilities, self.means, strict=True):
            x = np.maximum(x, m * (target + math.log(p)))
        for _ in range(100):
            step = (target + self._log_tail(x)) / (self._weights(x) @ rates)
            x = np.maximum(x + step, 0.0)
            if np.all(step <= 1e-12 * x):  # the error is its square
                break
        return np.where(np.isinf(hazard), np.inf, x)

    def sample(self, rng: Generator, count: int) -> FloatArray:
        """Independent draws of S, shape (count,)."""
        return self._choose(rng, np.array(self.probabilities), count) * rng.standard_exponential(count)

    def _sample_above(self, rng: Generator, bounds: FloatArray, count: int) -> FloatArray:
        """The bound plus an exponential of a phase drawn given S > bound."""
        above = np.maximum(bounds, 0.0)
        return above + self._choose(rng, self._weights(above), count) * rng.standard_exponential(count)

    def _sample_below(self, rng: Generator, bounds: FloatArray, count: int) -> FloatArray:
        """An exponential of a phase drawn given S <= bound, conditioned on being below the bound too."""
        weights = -np.expm1(self._phases(bounds)) * np.array(self.probabilities)
        means = self._choose(rng, weights / weights.sum(axis=-1, keepdims=True), count)
        uniform = open_uniform(rng, count)
        draws = -means * np.log1p(uniform * np.expm1(-bounds / means))
        return np.minimum(draws, bounds, out=draws)

    def _choose(self, rng: Generator, weights: FloatArray, count: int) -> FloatArray:
        """The mean of a phase drawn with the given probabilities, shape (phases,) or (count, phases)."""
        uniform = rng.random(count)
        below = np.cumsum(weights, axis=-1)
        means = np.full(count, self.means[0])
        for phase, mean in enumerate(self.means[1:]):
            means[uniform >= below[..., phase]] = mean
        return means

    def _truncated_moment(self, x: FloatArray, order: int) -> FloatArray:
        weights = math.factorial(order) * np.array(self.means) ** order * np.array(self.probabilities)
        return np.asarray(special.gammainc(order + 1, -self._phases(x)) @ weights)

    def _residual_tail(self, x: FloatArray) -> FloatArray:
        weights = np.array(self.probabilities) * self.means / self.mean
        return np.exp(self._phases(x)) @ weights
