"""What there is to show of a queue at one instant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.distributions.checks import refuse

__all__ = ["FloatArray", "IntArray", "Picture"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

_PER_JOB = ("sizes", "remaining", "ages", "rates")
_CURVES = ("response_times", "bound_times", "bound_tail")


@dataclass(frozen=True, eq=False)
class Picture:
    """A queue at one instant, and the response times of its episode so far.

    Arrays over the jobs present have shape (N,) and are in arrival order; times are in the time units of the
    workload. Arrays are converted, not copied where they have their type already.

    Attributes:
        title: the scenario's name.
        time: the time now.
        servers: number of servers n >= 1.
        sizes: original sizes.
        remaining: remaining sizes.
        ages: times since arrival.
        rates: the rates of service right now.
        numbers: the job numbers.
        anchor: the anchor's place in these arrays, -1 if there is none.
        tail_range: (t0, t1), the range of response times over which the tail is scored.
        response_times: shape (served,), of the jobs served in this episode.
        bound_times: shape (m,), times of the lower bound of the tail; empty where there is no bound.
        bound_tail: shape (m,), the lower bound of P[T > t] at these times; it holds for large t.
        reward: the sum of the rewards of this episode.

    Raises:
        ValueError: names the attribute, its value and what is allowed.
    """

    title: str
    time: float
    servers: int
    sizes: FloatArray
    remaining: FloatArray
    ages: FloatArray
    rates: FloatArray
    numbers: IntArray
    anchor: int
    tail_range: tuple[float, float]
    response_times: FloatArray
    bound_times: FloatArray
    bound_tail: FloatArray
    reward: float

    def __post_init__(self) -> None:
        for name in (*_PER_JOB, *_CURVES):
            self._set_floats(name)
        object.__setattr__(self, "numbers", np.asarray(self.numbers, dtype=np.int64))
        for name in ("remaining", "ages", "rates", "numbers"):
            self._check_length(name, self.sizes)
        self._check_length("bound_tail", self.bound_times)
        if self.servers < 1:
            refuse("picture", "servers", ">= 1", self.servers)
        if not -1 <= self.anchor < self.number:
            refuse("picture", "anchor", f"-1 or the place of one of {self.number} jobs", self.anchor)
        if not 0 < self.tail_range[0] < self.tail_range[1] < math.inf:
            refuse("picture", "tail_range", "two finite times 0 < t0 < t1", self.tail_range)

    @property
    def number(self) -> int:
        """Jobs present, N."""
        return len(self.sizes)

    @property
    def in_service(self) -> IntArray:
        """Places of the jobs with a positive rate, in arrival order."""
        return np.flatnonzero(self.rates > 0)

    @property
    def waiting(self) -> IntArray:
        """Places of the jobs at rate 0, in arrival order."""
        return np.flatnonzero(self.rates <= 0)

    @property
    def in_use(self) -> float:
        """Capacity in use: the sum of the rates, in servers."""
        return math.fsum(self.rates)

    @property
    def served(self) -> int:
        """Jobs served in this episode."""
        return len(self.response_times)

    @property
    def mean_response(self) -> float:
        """Mean response time so far; NaN where no job has been served."""
        return float(np.mean(self.response_times)) if self.served else math.nan

    @property
    def p99_response(self) -> float:
        """The smallest response time seen that at least 99 % do not exceed; NaN where no job has been served."""
        if not self.served:
            return math.nan
        place = (99 * self.served + 99) // 100 - 1
        return float(np.partition(self.response_times, place)[place])

    def first(self, places: IntArray, most: int) -> list[int]:
        """The first of these places, at most so many; the anchor takes the last one if it would be left out."""
        shown: list[int] = places[:most].tolist()
        if shown and self.anchor in places and self.anchor not in shown:
            shown[-1] = self.anchor
        return shown

    def _set_floats(self, name: str) -> None:
        values = np.asarray(getattr(self, name), dtype=np.float64)
        if values.ndim != 1 or not np.all((values >= 0) & (values < math.inf)):
            refuse("picture", name, "a one-dimensional array of finite numbers >= 0", getattr(self, name))
        object.__setattr__(self, name, values)

    def _check_length(self, name: str, like: FloatArray) -> None:
        values = getattr(self, name)
        if values.shape != like.shape:
            refuse("picture", f"shape of {name}", str(like.shape), values.shape)
