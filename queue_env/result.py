"""What a run found: one `Result` for each policy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from queue_env.by_size import SizeClasses, size_classes
from queue_env.distributions.checks import refuse
from queue_env.kernel.layout import BINS, SIZE_BINS, STATS
from queue_env.quantities import QUANTITIES, check_spare, estimate
from queue_env.tail import (
    Interval,
    check_times,
    counts_above,
    quantile_from_counts,
    quotient,
    tail_estimate,
    tail_from_counts,
)

if TYPE_CHECKING:
    from queue_env.distributions import Law

__all__ = ["QUANTILES", "Result"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999)
"""The quantiles in reports."""

_PLAIN = (
    *("policy", "servers", "spare", "load", "seed", "jobs", "simulated", "streams", "seconds", "interrupted"),
    *("scenario", "served", "abandoned", "present", "note"),
)
_MAXIMA = ("max_response", "max_slowdown", "little_law_gap")
_PER_SYSTEM = ("window", "number_area", "busy_area", "served_in_window", "little_gaps")


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
        size_counts: sizes of served and of abandoned jobs, int64, shape (rows, 2, SIZE_BINS).
        window: length of the time over which averages are taken, shape (systems,), as the next four.
        number_area: time integral of the number in system over the window.
        busy_area: time integral of the total service rate over the window.
        served_in_window: jobs served in the window.
        little_gaps: |∫N dt - total time in system| / ∫N dt of all jobs of each system: rounding only.
        note: what a reader must know, such as that there is no steady state; empty if nothing.
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
    size_counts: IntArray = field(repr=False)
    window: FloatArray = field(repr=False)
    number_area: FloatArray = field(repr=False)
    busy_area: FloatArray = field(repr=False)
    served_in_window: FloatArray = field(repr=False)
    little_gaps: FloatArray = field(repr=False)
    note: str = ""
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
        if self.size_counts.shape != (self.stats.size, 2, SIZE_BINS):
            refuse("result", "shape of size_counts", f"{(self.stats.size, 2, SIZE_BINS)}", self.size_counts.shape)
        if not np.array_equal(self.size_counts.sum(axis=2).T, [self.stats["served"], self.stats["abandoned"]]):
            refuse("result", "row sums of size_counts", "the numbers of served and of abandoned jobs", self.size_counts)
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

    def tail_bound(self, t: ArrayLike) -> FloatArray:
        """F̄(ct) with c = min(1, δ), shape of t: no policy has a smaller P[T > t], asymptotically.

        ValueError where the spare capacity δ is not positive, or as in `tail`.

        Source: Li, Harchol-Balter and Scheller-Wolf, DynaSPLIT, section 2.2, (6).
        """
        check_spare(self.spare)
        return self.sizes.tail(min(1.0, self.spare) * check_times(t))

    def normalised_tail(self, t: ArrayLike) -> FloatArray:
        """R(t) = P[T > t]/F̄(ct), shape of t: `tail` over `tail_bound`.

        NaN where both are 0; ValueError as in `tail_bound`.
        """
        return quotient(self.tail(t), self.tail_bound(t))[()]

    def normalised_tail_interval(self, t: ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends (low, high) of intervals for R(t), each of the shape of t; as `tail_interval`."""
        return tail_estimate(self.response_counts, t).divided_by(self.tail_bound(t)).ends(level)

    def quantile(self, q: ArrayLike) -> FloatArray:
        """The smallest t with P[T <= t] >= q, shape of q, off by at most 1/128 of it; q = 1 is the largest T.

        NaN where no job was served; ValueError where q is NaN or outside [0, 1].
        """
        return np.minimum(quantile_from_counts(self._responses, q), self.max_response)[()]

    def slowdown_quantile(self, q: ArrayLike) -> FloatArray:
        """The same as `quantile`, of slowdown."""
        slowdowns = self.slowdown_counts.sum(axis=0)
        return np.minimum(quantile_from_counts(slowdowns, q), self.max_slowdown)[()]

    def by_size(self, classes: int | ArrayLike = 10, level: float = 0.95) -> SizeClasses:
        """P[served | size], in classes of sizes: so many of about as many jobs each, or of the given ends.

        Of counted jobs that have left. Classes are made of whole bins, 16 an octave; ValueError as in `size_classes`.
        """
        return size_classes(self.size_counts, classes, level)

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
    def capacity(self) -> FloatArray:
        """What all servers together could have done in the window, in units of work, shape (systems,)."""
        return self.window * self.servers

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
        return float(estimate(self, quantity).value)

    def interval(self, quantity: str, level: float = 0.95) -> Interval:
        """The quantity of a name, as in `value`, with its confidence interval over rows; see `Result`.

        Raises:
            ValueError: there is no such quantity, or its number or the level is out of range.
        """
        found = estimate(self, quantity)
        low, high = found.ends(level)
        return Interval(float(found.value), float(low), float(high), level)

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
        of such with "q", and "normalised_tail" with "t" and "events", the number of jobs with T > t. Where jobs
        abandoned, "served_by_size" is a list of such by tenths of the jobs, with "from", "to" and "jobs".
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
        return out | {"served_by_size": self.by_size(level=level).to_list() if self.abandoned else []}

    # ---- how it is done -----------------------------------------------------------------------------------

    @cached_property
    def _responses(self) -> IntArray:
        """The pooled histogram of response times, shape (BINS,)."""
        pooled: IntArray = self.response_counts.sum(axis=0)
        return pooled

    def _count(self, name: str) -> int:
        return int(self.stats[name].sum())

    def _largest(self, name: str) -> float:
        return float(self.stats[name].max()) if self.served else math.nan

    def _decades(self) -> list[float]:
        if not (self.spare > 0 and self.max_response > self.sizes.mean):
            return []
        count = math.ceil(math.log10(self.max_response / self.sizes.mean))
        return [self.sizes.mean * 10**k for k in range(count)]


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None
