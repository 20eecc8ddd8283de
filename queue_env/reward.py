"""What a job costs as it ages: the terms of a reward, and the cost whose mean over jobs is the tail score.

The tail cost of a job that leaves at age T is

    w(T) = 1/ln(t1/t0) · ∫_{t0}^{min(T, t1)} dt / (t·F̄(ct)),

so its mean over jobs is 1/ln(t1/t0) · ∫_{t0}^{t1} P[T>t]/F̄(ct) dt/t: the tail of response time over the lower bound
F̄(ct) on it, averaged over the orders of magnitude from t0 to t1.

Source of the bound: Z. Li, M. Harchol-Balter, A. Scheller-Wolf, "DynaSPLIT: strong tail-optimal scheduling for the
M/G/n with heavy-tailed job sizes", equation 6.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from queue_env.arrivals import suggestion
from queue_env.distributions import Law
from queue_env.distributions.checks import nonnegative, positive, refuse
from queue_env.kernel import env_layout
from queue_env.scenarios import Scenario
from queue_env.tail import check_times
from queue_env.theory.quadrature import size_ladder

__all__ = ["CostTable", "TailCost", "Term", "default_reward", "job_costs", "parse_reward", "tail_cost"]

FloatArray: TypeAlias = NDArray[np.float64]


MOST_EXPONENT, MOST_WEIGHT = 100.0, 1e100  # beyond these, costs soon leave the range of doubles


class _Kind(NamedTuple):
    """A kind of term: the kernel's code, how it is written, and the check of its number if it takes one."""

    code: int
    written: str
    check: Callable[[str, str, object], float] | None = None


def _exponent(owner: str, argument: str, value: object) -> float:
    exponent = positive(owner, argument, value)
    if exponent > MOST_EXPONENT:
        refuse(owner, argument, f"at most {MOST_EXPONENT:g}", exponent)
    return exponent


def _weight(name: str, value: object) -> float:
    weight = nonnegative("reward", f"weight of {name}", value)
    if weight > MOST_WEIGHT:
        refuse("reward", f"weight of {name}", f"at most {MOST_WEIGHT:g}", weight)
    return weight


_KINDS = {
    "tail": _Kind(env_layout.COST_TAIL, "tail"),
    "mean": _Kind(env_layout.COST_MEAN, "mean"),
    "slowdown": _Kind(env_layout.COST_SLOWDOWN, "slowdown"),
    "moment": _Kind(env_layout.COST_MOMENT, "moment(p)", _exponent),
    "exceed": _Kind(env_layout.COST_EXCEED, "exceed(t)", nonnegative),
    "wait": _Kind(env_layout.COST_WAIT, "wait"),
    "abandon": _Kind(env_layout.COST_ABANDON, "abandon"),
}

SMALLEST_TAIL = 1e-9  # times where F̄(ct) is below this are out of reach, and would only cost digits
_NODES, _WEIGHTS = special.roots_legendre(16)
_BLOCK = 1 << 15  # intervals integrated at once, to save memory
_SHIFT = 52 - env_layout.COST_BITS  # a double's bits, shifted, are the number of its bin
_SLIVER = 2.0**-8  # a smaller part of a bin is too short for the digits of a cubic, and a straight line will do
_INSIDE = 4 * np.finfo(np.float64).eps  # relative step off a point where the tail may jump


class Term(NamedTuple):
    """One term of a reward.

    Attributes:
        name: as written in a reward: "tail", "moment(2)".
        kind: one of the kernel's COST codes.
        weight: factor of the cost, >= 0.
        number: p of "moment(p)", t of "exceed(t)" [time units of the workload]; 0 for the others.
    """

    name: str
    kind: int
    weight: float
    number: float


class CostTable(NamedTuple):
    """A function of the age as cubics, one for each bin; 2^COST_BITS bins an octave, numbered by the bits of a double.

    Attributes:
        first: number of the first bin: the bits of its lower edge, shifted.
        low, high: the function does not change below and above these ages.
        coefficients: shape (bins, 4), C-contiguous: of 1, u, u², u³, where u in [0, 1) is the place within the bin.
    """

    first: int
    low: float
    high: float
    coefficients: FloatArray


def parse_reward(spec: str | Mapping[str, float]) -> tuple[Term, ...]:
    """Read a reward: minus the sum of the costs of its terms, each with its weight.

    Args:
        spec: the name of a term, or a mapping from such names to weights, 0 to 1e100. What a job of age a costs:
            "mean": a. "slowdown": a over its size. "moment(p)", 0 < p <= 100: a^p. "exceed(t)", t >= 0: 1 if a > t.
            "tail": w(a), see `tail_cost`. "wait": its time at rate 0. "abandon": 1 if it abandons.
            An abandoned job has cost what its age then costs.

    Returns:
        The terms in the order given, by their canonical names ("moment(2.0)" is "moment(2)").

    Raises:
        ValueError: a term is unknown or comes twice, a number or weight is out of range, or there are no terms or
            more than 8.
    """
    weights: Mapping[Any, Any] = {spec: 1.0} if isinstance(spec, str) else spec
    if not isinstance(weights, Mapping) or not 1 <= len(weights) <= env_layout.MOST_TERMS:
        refuse("reward", "spec", f"a term or a mapping from 1 to {env_layout.MOST_TERMS} terms to weights", spec)
    terms: dict[str, Term] = {}
    for written, weight in weights.items():
        term = _read_term(written, weight)
        if term.name in terms:
            refuse("reward", "terms", f"different, but {term.name!r} comes twice", list(weights))
        terms[term.name] = term
    return tuple(terms.values())


def default_reward(scenario: Scenario, tail_range: tuple[float, float]) -> str:
    """The term that is the reward where none is asked for.

    "tail" where F̄(ct) >= 1e-9 up to the end of the range [mean service times]. Where it is less, as for light tails,
    a few rare jobs would cost 1e7 each and the others next to nothing, so there it is "mean"; in overload, "wait".
    """
    if not scenario.c > 0:
        return "wait"
    seen = float(scenario.sizes.tail(scenario.c * tail_range[1] * scenario.sizes.mean))
    return "tail" if seen >= SMALLEST_TAIL else "mean"


def _read_term(written: object, weight: object) -> Term:
    match = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", str(written))
    name, argument = match.groups() if match else (str(written), None)
    kind = _KINDS.get(name)
    if kind is None or (kind.check is None) != (argument is None):
        hint = suggestion(name, _KINDS) if kind is None else ""
        refuse("reward", "term", f"one of {', '.join(kind.written for kind in _KINDS.values())}{hint}", written)
    number = 0.0
    if kind.check is not None:
        value: object = argument
        with suppress(ValueError):
            value = float(argument or "")
        number = kind.check("reward", f"number in {kind.written}", value)
        name = f"{name}({_shortest(number)})"
    return Term(name, kind.code, _weight(name, weight), number)


def _shortest(number: float) -> str:
    """A number as short as it can be written without loss."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def job_costs(
    terms: Sequence[Term],
    *,
    ages: ArrayLike,
    sizes: ArrayLike,
    waiting: ArrayLike,
    abandoned: ArrayLike,
    tail: TailCost | None = None,
) -> FloatArray:
    """What each job has cost, from its record alone: an environment has to arrive at the same sums step by step.

    Args:
        terms: as `parse_reward` returns them; their weights do not count here.
        ages: shape (jobs,), >= 0: departure minus arrival, or the present age of a job that is still there.
        sizes: shape (jobs,), original sizes, > 0.
        waiting: shape (jobs,), time at rate 0.
        abandoned: shape (jobs,), whether the job has left unserved.
        tail: the tail cost, needed where there is a term "tail".

    Returns:
        Shape (terms, jobs).

    Raises:
        ValueError: the shapes differ, an age is negative or NaN, or the tail cost is missing.
    """
    age = np.asarray(ages, np.float64)
    if not np.all(age >= 0):
        refuse("job_costs", "ages", ">= 0", ages)
    given = {"sizes": sizes, "waiting": waiting, "abandoned": abandoned}
    columns = {name: np.asarray(values, np.float64) for name, values in given.items()}
    for name, column in columns.items():
        if age.ndim != 1 or column.shape != age.shape:
            refuse("job_costs", f"shape of {name}", f"(jobs,), that of ages, {age.shape}", column.shape)
    ready = {
        env_layout.COST_MEAN: age,
        env_layout.COST_SLOWDOWN: age / columns["sizes"],
        env_layout.COST_WAIT: columns["waiting"],
        env_layout.COST_ABANDON: columns["abandoned"],
    }
    costs = np.empty((len(terms), age.size))
    for row, term in zip(costs, terms, strict=True):
        row[:] = ready[term.kind] if term.kind in ready else _cost_of_age(term, age, tail)
    return costs


def _cost_of_age(term: Term, age: FloatArray, tail: TailCost | None) -> FloatArray:
    if term.kind == env_layout.COST_MOMENT:
        return np.asarray(age**term.number)
    if term.kind == env_layout.COST_EXCEED:
        return np.asarray(age > term.number, np.float64)
    if tail is None:
        refuse("job_costs", "tail", "a TailCost where there is a term 'tail'", tail)
    return tail.of(age)


def tail_cost(scenario: Scenario, tail_range: Sequence[float] = (1.0, 1e4)) -> TailCost:
    """The tail cost of a scenario.

    Args:
        scenario: the model, of load below 1.
        tail_range: times from t0 to t1 over which the score averages [mean service times]. The upper end comes down
            to where F̄(ct) = 1e-9, if that is earlier: light tails have no more to see.

    Raises:
        ValueError: there is no bound to compare with (overload), or the range is not allowed, or nothing is left of it.
    """
    if not scenario.c > 0:
        refuse("tail_cost", "load of the scenario", "< 1: there is no bound on the tail in overload", scenario.load)
    if isinstance(tail_range, str) or not isinstance(tail_range, Sequence) or len(tail_range) != 2:
        refuse("tail_cost", "tail_range", "two numbers, from and to, in mean service times", tail_range)
    low, high = (positive("tail_cost", f"tail_range[{k}]", end) for k, end in enumerate(tail_range))
    if low >= high:
        refuse("tail_cost", "tail_range[1]", f"> tail_range[0] = {low!r}", high)
    sizes = scenario.sizes
    # A few digits short of it, so that c times the end is not rounded up to an atom, where the tail may be zero.
    last = float(sizes.tail_quantile(SMALLEST_TAIL)) / scenario.c * (1 - _INSIDE)
    t0, t1 = low * sizes.mean, min(high * sizes.mean, last)
    if t0 >= t1:
        bound = (
            f"< {last / sizes.mean:.6g} mean service times, where F̄(ct) comes down to {SMALLEST_TAIL:g} "
            "(give a smaller tail_range[0], or another reward such as 'mean')"
        )
        refuse("tail_cost", "tail_range[0]", bound, low)
    return TailCost(t0, t1, scenario.c, sizes)


@dataclass(frozen=True)
class TailCost:
    """The cost w of a job by its age at departure; `tail_cost` builds it for a scenario.

    Attributes:
        t0: ages up to this cost nothing [time units].
        t1: ages beyond this cost no more [time units].
        c: of the lower bound F̄(ct).
        sizes: law of the sizes, with F̄(ct) >= 1e-9 for all t < t1.
    """

    t0: float
    t1: float
    c: float
    sizes: Law

    def density(self, t: ArrayLike) -> FloatArray:
        """What a job of age t costs per unit of time, w'(t); 0 outside [t0, t1), shape of t.

        Raises:
            ValueError: t is NaN or negative.
        """
        times = check_times(t)
        inside = (times >= self.t0) & (times < self.t1)
        return np.where(inside, self._slope(np.where(inside, times, self.t0)), 0.0)[()]

    def of(self, t: ArrayLike) -> FloatArray:
        """The cost w(t) of a job that leaves at age t, shape of t.

        Accurate to 1e-9 of it, as far as rounding allows: where F̄(ct) falls to zero at a finite t near t1, the last
        digit of t itself can cost a few times as much.

        Raises:
            ValueError: t is NaN or negative.
        """
        times = np.clip(check_times(t), self.t0, self.t1)
        nodes, values = self._panels
        place = np.searchsorted(nodes, times.ravel(), side="right") - 1
        costs = values[place] + self._integrals(nodes[place], times.ravel())
        return np.reshape(costs, times.shape)[()]

    def table(self) -> CostTable:
        """The same function for the kernel, which evaluates it at each event.

        Each cubic has the exact values of w, and its derivatives, at both ends of its bin, so no error builds up with
        the age. Between them it is off by about 1e-10 of w for tails like a power of t, and by up to x⁴/384 of it where
        F̄(ct) falls by a factor e^x within the bin (exponential sizes: 3e-5 at the very end of the range). In a bin
        where F̄(ct) has a kink, a jump or too steep a fall, the derivatives are shrunk as far as needed for w to
        increase, so that it lies between its values at the ends of the bin.
        """
        first, last = (_bin(t) for t in (self.t0, self.t1))
        edges = _edges(np.arange(first, last + 2))
        left, right = np.maximum(edges[:-1], self.t0), np.minimum(edges[1:], self.t1)
        width = edges[1:] - edges[:-1]
        span = (right - left) / width
        value = self.of(left)
        cubic = _hermite(
            value,
            self.of(right) - value,
            self._slope(left * (1 + _INSIDE)) * (right - left),
            self._slope(right * (1 - _INSIDE)) * (right - left),
            straight=span < _SLIVER,
        )
        return CostTable(first, self.t0, self.t1, _stretched(cubic, (left - edges[:-1]) / width, span))

    def _slope(self, t: FloatArray) -> FloatArray:
        """1/(ln(t1/t0)·t·F̄(ct)), wherever t lies."""
        tail = np.maximum(self.sizes.tail(self.c * t), SMALLEST_TAIL)  # rounding may lead beyond the support
        return np.asarray(1 / (math.log(self.t1 / self.t0) * t * tail))

    @cached_property
    def _panels(self) -> tuple[FloatArray, FloatArray]:
        """Times between which the integrand is smooth and changes by a factor of ten at most, and w at each."""
        bins = _edges(np.arange(_bin(self.t0), _bin(self.t1) + 2))
        inner = np.concatenate([bins, size_ladder(self.sizes) / self.c])
        nodes = np.unique(np.concatenate([[self.t0, self.t1], np.clip(inner, self.t0, self.t1)]))
        return nodes, np.concatenate([[0.0], np.cumsum(self._integrals(nodes[:-1], nodes[1:]))])

    def _integrals(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """The integrals of w' over intervals that lie within panels, shape (m,)."""
        integrals, half = np.empty_like(left), (right - left) / 2
        for i in range(0, left.size, _BLOCK):
            part = slice(i, i + _BLOCK)
            points = left[part, None] + half[part, None] * (1 + _NODES)
            integrals[part] = half[part] * (self._slope(points) @ _WEIGHTS)
        return integrals


def _bin(t: float) -> int:
    """The number of the bin that holds t > 0."""
    return int(np.float64(t).view(np.int64)) >> _SHIFT


def _edges(bins: NDArray[np.int64]) -> FloatArray:
    """The lower edges of bins."""
    return (bins << _SHIFT).view(np.float64)


def _hermite(
    value: FloatArray, rise: FloatArray, start: FloatArray, end: FloatArray, straight: NDArray[np.bool_]
) -> FloatArray:
    """Coefficients of monotone cubics on [0, 1], shape (4, bins); the derivatives start and end are shrunk if need be.

    Source: Fritsch and Carlson, Monotone piecewise cubic interpolation, SIAM J. Numer. Anal. 17 (1980).
    """
    steepness = np.hypot(start, end)
    factor = np.minimum(1.0, np.divide(3 * rise, steepness, out=np.ones_like(rise), where=steepness > 0))
    start, end = (np.where(straight, rise, factor * slope) for slope in (start, end))
    return np.stack([value, start, 3 * rise - 2 * start - end, start + end - 2 * rise])


def _stretched(cubic: FloatArray, start: FloatArray, span: FloatArray) -> FloatArray:
    """Coefficients in u of cubics in v = (u - start)/span, shape (bins, 4); constant where the span is 0."""
    rate = np.divide(1.0, span, out=np.zeros_like(span), where=span > 0)
    a, b, c, d = (part * rate**k for k, part in enumerate(cubic))
    constant = a - start * (b - start * (c - start * d))
    parts = [constant, b - start * (2 * c - start * 3 * d), c - 3 * start * d, d]
    return np.ascontiguousarray(np.stack(parts, axis=-1))
