"""What a run found: one `Result` for each policy, and a `Comparison` of several on the same jobs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from queue_env.arrivals import suggestion
from queue_env.distributions.checks import refuse
from queue_env.kernel.layout import BINS, STATS
from queue_env.tail import (
    Estimate,
    Interval,
    check_times,
    counts_above,
    jackknife,
    quantile_from_counts,
    quotient,
    tail_estimate,
    tail_from_counts,
)

if TYPE_CHECKING:
    from queue_env.distributions import Law

__all__ = ["PARAMETRIC_QUANTITIES", "QUANTILES", "QUANTITIES", "Comparison", "Result"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999)
"""The quantiles in reports."""


class _Ratio(NamedTuple):
    """A quantity that is a sum over rows or systems divided by another, and the largest value it can have."""

    over: str
    under: tuple[str, ...]
    most: float = math.inf


_PLAIN = (
    *("policy", "servers", "spare", "load", "seed", "jobs", "simulated", "streams", "seconds", "interrupted"),
    *("scenario", "served", "abandoned", "present"),
)
_MAXIMA = ("max_response", "max_slowdown", "little_law_gap")
_PER_SYSTEM = ("window", "number_area", "busy_area", "served_in_window", "little_gaps", "_capacity")
_LEFT = ("served", "abandoned")
_RATIOS: Mapping[str, _Ratio] = {
    "mean_response": _Ratio("response_sum", ("served",)),
    "mean_slowdown": _Ratio("slowdown_sum", ("served",)),
    "mean_waiting": _Ratio("waiting_sum", _LEFT),
    "waited_fraction": _Ratio("waited", _LEFT, most=1.0),
    "abandonment": _Ratio("abandoned", (*_LEFT, "present"), most=1.0),
    "throughput": _Ratio("served_in_window", ("window",)),
    "mean_number": _Ratio("number_area", ("window",)),
    "utilisation": _Ratio("busy_area", ("_capacity",), most=1.0),
}

QUANTITIES = (*_RATIOS, "std_response")
"""Quantities of a result that have an interval, by name; each is a property too."""

PARAMETRIC_QUANTITIES = ("quantile", "slowdown_quantile", "tail", "normalised_tail")
"""Quantities that take a number after a colon: "quantile:0.99", "tail:10"; each is a method too."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """What one policy did on one scenario or workload.

    T is the response time of *served* jobs, so `tail(t)` is P[T > t | served]; slowdown is T over size, of
    served jobs too. Waiting times are of served and abandoned jobs alike. Counted jobs that are still in the
    system at the end have no T: `present` says how many they are. Their T would be large, so trust means and
    tails only where `present` is small beside the number of events seen.

    A row of the statistics is a replication: an independent stream, or a batch of consecutive jobs of one
    workload. Intervals are Student's over the rows (time averages: over the systems) around the pooled value,
    by the jackknife. They need at least two rows and have NaN ends without; ten or more are better. They
    are too short where T has infinite variance (of the mean), where batches are so short that they depend on
    each other, and where fewer than about 20 independent events lie beyond t or the quantile.

    Attributes:
        policy: label, such as "thresh-split:d=1.5".
        scenario: the scenario as plain data, or None for a workload.
        servers: number of servers n.
        spare: spare capacity δ = n(1-ρ), in servers; not positive in overload.
        load: ρ, work that arrives per server and unit of time.
        seed: seed of the streams, or None for a workload.
        jobs: number of jobs counted.
        simulated: number of jobs simulated, with those before and after the counted ones.
        streams: number of independent streams.
        seconds: time the run took.
        interrupted: whether the run was stopped before its end.
        sizes: law of the sizes; of a workload, the empirical one.
        stats: `STATS`, shape (rows,).
        response_counts, slowdown_counts: histograms of served jobs, int64, shape (rows, BINS).
        window: length of the time over which averages are taken, shape (systems,), as the next four.
        number_area: time integral of the number in system over the window.
        busy_area: time integral of the total service rate over the window.
        served_in_window: jobs served in the window.
        little_gaps: |∫N dt - total time in system| / ∫N dt of all jobs of each system: rounding only.
        records: arrays by name, one entry a job, or None where none were asked for.

    Raises:
        ValueError: the arrays do not fit each other.
    """

    policy: str
    scenario: Mapping[str, Any] | None
    servers: int
    spare: float
    load: float
    seed: int | None
    jobs: int
    simulated: int
    streams: int
    seconds: float
    interrupted: bool
    sizes: Law = field(repr=False)
    stats: NDArray[np.void] = field(repr=False)
    response_counts: IntArray = field(repr=False)
    slowdown_counts: IntArray = field(repr=False)
    window: FloatArray = field(repr=False)
    number_area: FloatArray = field(repr=False)
    busy_area: FloatArray = field(repr=False)
    served_in_window: FloatArray = field(repr=False)
    little_gaps: FloatArray = field(repr=False)
    records: Mapping[str, NDArray[Any]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.stats.dtype != STATS or self.stats.ndim != 1 or self.stats.size == 0:
            refuse("result", "stats", "one-dimensional records of STATS, at least one", self.stats)
        for name in ("response_counts", "slowdown_counts"):
            counts = getattr(self, name)
            if counts.shape != (self.stats.size, BINS):
                refuse("result", f"shape of {name}", f"{(self.stats.size, BINS)}", counts.shape)
            if not np.array_equal(counts.sum(axis=1), self.stats["served"]):
                refuse("result", f"row sums of {name}", "the numbers of served jobs", counts.sum(axis=1))
        if self.window.ndim != 1 or self.window.size == 0:
            refuse("result", "window", "one-dimensional and not empty", self.window)
        for name in _PER_SYSTEM:
            if getattr(self, name).shape != self.window.shape:
                refuse("result", f"shape of {name}", f"{self.window.shape}", getattr(self, name).shape)

    # ---- tails and quantiles ------------------------------------------------------------------------------

    def tail(self, t: ArrayLike) -> FloatArray:
        """P[T > t] of served jobs, shape of t; the error is less than what lies in one bin, 1/128 of t wide.

        NaN where no job was served; ValueError where t is NaN or negative.
        """
        return tail_from_counts(self._responses, t)[()]

    def tail_interval(self, t: ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends (low, high) of intervals for P[T > t], each of the shape of t; see `Result`.

        NaN where no job had T > t, and too short where few had: look at `events`. ValueError as in `tail`, or
        where the level is not in (0, 1).
        """
        return tail_estimate(self.response_counts, t).ends(level)

    def events(self, t: ArrayLike) -> FloatArray:
        """Number of served jobs with T > t, shape of t, linear inside a bin; ValueError as in `tail`."""
        return counts_above(self._responses, t)[()]

    def normalised_tail(self, t: ArrayLike) -> FloatArray:
        """R(t) = P[T > t]/F̄(ct) with c = min(1, δ), shape of t; 1 is the asymptotic lower bound.

        NaN where both are 0; ValueError where the spare capacity δ is not positive, or as in `tail`.

        Source: Li, Harchol-Balter and Scheller-Wolf, DynaSPLIT, section 2.2, (6).
        """
        return quotient(self.tail(t), self._size_tail(t))[()]

    def normalised_tail_interval(self, t: ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends (low, high) of intervals for R(t), each of the shape of t; as `tail_interval`."""
        return tail_estimate(self.response_counts, t).divided_by(self._size_tail(t)).ends(level)

    def quantile(self, q: ArrayLike) -> FloatArray:
        """The smallest t with P[T <= t] >= q, shape of q, off by at most 1/128 of it; q = 1 is the largest T.

        NaN where no job was served; ValueError where q is NaN or outside [0, 1].
        """
        return np.minimum(quantile_from_counts(self._responses, q), self.max_response)[()]

    def slowdown_quantile(self, q: ArrayLike) -> FloatArray:
        """The same as `quantile`, of slowdown."""
        slowdowns = self.slowdown_counts.sum(axis=0)
        return np.minimum(quantile_from_counts(slowdowns, q), self.max_slowdown)[()]

    # ---- single numbers -----------------------------------------------------------------------------------

    @property
    def mean_response(self) -> float:
        """E[T] of served jobs."""
        return self.value("mean_response")

    @property
    def std_response(self) -> float:
        """Standard deviation of T of served jobs."""
        return self.value("std_response")

    @property
    def max_response(self) -> float:
        """Largest T of a served job; NaN where there is none."""
        return self._largest("response_max")

    @property
    def mean_slowdown(self) -> float:
        """Mean of T over size, of served jobs."""
        return self.value("mean_slowdown")

    @property
    def max_slowdown(self) -> float:
        """Largest slowdown of a served job; NaN where there is none."""
        return self._largest("slowdown_max")

    @property
    def mean_waiting(self) -> float:
        """Mean time without service, of served and abandoned jobs."""
        return self.value("mean_waiting")

    @property
    def waited_fraction(self) -> float:
        """Share of jobs that waited at all, of those that were served or abandoned."""
        return self.value("waited_fraction")

    @property
    def abandonment(self) -> float:
        """Share of counted jobs that left unserved, those still present at the end included in the whole."""
        return self.value("abandonment")

    @property
    def throughput(self) -> float:
        """Served jobs per unit of time, in the window."""
        return self.value("throughput")

    @property
    def mean_number(self) -> float:
        """Time average of the number of jobs in system, in the window."""
        return self.value("mean_number")

    @property
    def utilisation(self) -> float:
        """Time average of the share of the capacity that is in use, in the window."""
        return self.value("utilisation")

    @property
    def served(self) -> int:
        """Number of counted jobs that were served."""
        return self._count("served")

    @property
    def abandoned(self) -> int:
        """Number of counted jobs that left unserved."""
        return self._count("abandoned")

    @property
    def present(self) -> int:
        """Number of counted jobs still in the system at the end: in no mean, tail or quantile."""
        return self._count("present")

    @property
    def little_law_gap(self) -> float:
        """The largest of `little_gaps`: what Little's law is missed by, a check of the simulator itself."""
        return float(self.little_gaps.max())

    def value(self, quantity: str) -> float:
        """The quantity of a name among `QUANTITIES`, or one such as "quantile:0.99" or "tail:10".

        Raises:
            ValueError: there is no such quantity, or its number is out of range.
        """
        return float(self._estimate(quantity).value)

    def interval(self, quantity: str, level: float = 0.95) -> Interval:
        """The quantity of a name, as in `value`, with its confidence interval over rows; see `Result`.

        Raises:
            ValueError: there is no such quantity, or its number or the level is out of range.
        """
        estimate = self._estimate(quantity)
        low, high = estimate.ends(level)
        return Interval(float(estimate.value), float(low), float(high), level)

    # ---- reports ------------------------------------------------------------------------------------------

    def summary(self, level: float = 0.95) -> dict[str, Interval]:
        """All `QUANTITIES`, the `QUANTILES` and the normalised tail, by names that `interval` takes.

        The tail is given at the decades 1, 10, ... of mean sizes up to the largest T; not in overload.
        """
        names = [*QUANTITIES]
        names += [f"{kind}:{q}" for kind in ("quantile", "slowdown_quantile") for q in QUANTILES]
        names += [f"normalised_tail:{t:.15g}" for t in self._decades()]
        return {name: self.interval(name, level) for name in names}

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """The result without its arrays, fit for JSON: what is NaN or infinite is None.

        Each quantity of `summary` is {"value", "low", "high"}; "quantile" and "slowdown_quantile" are lists
        of such with "q", and "normalised_tail" with "t" and "events", the number of jobs with T > t.
        """
        out: dict[str, Any] = {name: getattr(self, name) for name in _PLAIN}
        out |= {name: _finite(getattr(self, name)) for name in _MAXIMA}
        out |= {"level": level, "quantile": [], "slowdown_quantile": [], "normalised_tail": []}
        for name, found in self.summary(level).items():
            kind, _, argument = name.partition(":")
            entry = {end: _finite(getattr(found, end)) for end in ("value", "low", "high")}
            if not argument:
                out[kind] = entry
            elif kind == "normalised_tail":
                t = float(argument)
                out[kind].append({"t": t, **entry, "events": float(self.events(t))})
            else:
                out[kind].append({"q": float(argument), **entry})
        return out

    # ---- how it is done -----------------------------------------------------------------------------------

    @cached_property
    def _responses(self) -> IntArray:
        """The pooled histogram of response times, shape (BINS,)."""
        pooled: IntArray = self.response_counts.sum(axis=0)
        return pooled

    @property
    def _capacity(self) -> FloatArray:
        return self.window * self.servers

    def _count(self, name: str) -> int:
        return int(self.stats[name].sum())

    def _largest(self, name: str) -> float:
        return float(self.stats[name].max()) if self.served else math.nan

    def _size_tail(self, t: ArrayLike) -> FloatArray:
        if not self.spare > 0:
            refuse("normalised_tail", "spare", "> 0: there is no bound on the tail in overload", self.spare)
        return self.sizes.tail(min(1.0, self.spare) * check_times(t))

    def _decades(self) -> list[float]:
        if not (self.spare > 0 and self.max_response > self.sizes.mean):
            return []
        count = math.ceil(math.log10(self.max_response / self.sizes.mean))
        return [self.sizes.mean * 10**k for k in range(count)]

    def _estimate(self, quantity: str) -> Estimate:
        if quantity in _RATIOS:
            over, under, most = _RATIOS[quantity]
            sums = self._columns(over, *under)
            return jackknife(sums, lambda sums: quotient(sums[..., 0], sums[..., 1:].sum(axis=-1)), most)
        if quantity == "std_response":
            sums = self._columns("response_square_sum", "response_sum", "served")
            return jackknife(sums, _standard_deviation)
        kind, number = _parsed(quantity)
        if kind == "tail":
            return tail_estimate(self.response_counts, number)
        if kind == "normalised_tail":
            return tail_estimate(self.response_counts, number).divided_by(self._size_tail(number))
        return self._quantile_estimate(kind, number)

    def _columns(self, *names: str) -> NDArray[Any]:
        columns = [getattr(self, name) if name in _PER_SYSTEM else self.stats[name] for name in names]
        return np.stack(columns, axis=-1)

    def _quantile_estimate(self, kind: str, q: float) -> Estimate:
        if not 0 < q < 1:
            refuse("result", f"number after {kind}", "between 0 and 1, both excluded", q)
        responses = kind == "quantile"
        counts = self.response_counts if responses else self.slowdown_counts
        largest = self.max_response if responses else self.max_slowdown
        return jackknife(counts, lambda sums: np.minimum(quantile_from_counts(sums, q), largest))


class Comparison(Mapping[str, Result]):
    """Results of several policies on the same jobs, by label and in order.

    Args:
        results: at least one, with labels that differ and equally many rows and systems.

    Raises:
        ValueError: the results do not fit each other.
    """

    def __init__(self, results: Iterable[Result]) -> None:
        listed = list(results)
        self._results = {result.policy: result for result in listed}
        if not listed or len(self._results) < len(listed):
            refuse("comparison", "policies", "at least one, and all different", [r.policy for r in listed])
        for name in ("stats", "window"):
            lengths = [len(getattr(result, name)) for result in listed]
            if len(set(lengths)) > 1:
                refuse("comparison", f"lengths of {name}", "the same for all policies", lengths)

    def __getitem__(self, label: str) -> Result:
        return self._results[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        return f"Comparison of {', '.join(self)}"

    def difference(self, a: str, b: str, quantity: str = "mean_response", level: float = 0.95) -> Interval:
        """The quantity of policy a less that of b, with an interval over paired rows.

        Both met the same jobs, so what is left between rows is mostly what the policies did: the interval is
        much shorter than two separate ones.

        Args:
            a: label of a policy.
            b: label of another.
            quantity: a name as in `Result.value`.
            level: confidence level in (0, 1).

        Raises:
            ValueError: there is no such policy or quantity, or a number is out of range.
        """
        for label in (a, b):
            if label not in self:
                refuse("comparison", "policy", f"one of {', '.join(self)}{suggestion(label, self)}", label)
        estimate = self[a]._estimate(quantity).minus(self[b]._estimate(quantity))
        value, half = float(estimate.value), float(estimate.half_width(level))
        return Interval(value, value - half, value + half, level)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """`Result.to_dict` of every policy, by label."""
        return {label: result.to_dict(level) for label, result in self.items()}


def _standard_deviation(sums: NDArray[Any]) -> FloatArray:
    square, mean = (quotient(sums[..., k], sums[..., 2]) for k in (0, 1))
    return np.sqrt(np.maximum(square - mean**2, 0.0))


def _parsed(quantity: str) -> tuple[str, float]:
    """Split the name of a parametric quantity; ValueError unless it is one, with a number."""
    kind, _, argument = quantity.partition(":")
    with suppress(ValueError):
        if kind in PARAMETRIC_QUANTITIES:
            return kind, float(argument)
    names = (*QUANTITIES, *(f"{name}:NUMBER" for name in PARAMETRIC_QUANTITIES))
    refuse("result", "quantity", f"one of {', '.join(names)}{suggestion(kind, names)}", quantity)


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None
