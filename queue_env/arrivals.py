"""Arrival processes: where the gaps between successive jobs come from.

A process is described by a JSON-able mapping that gives its shape, and by a rate that sets its time unit, so
that the same shape can be run at any load. All gaps are drawn by NumPy in whole arrays; no process loops over
jobs in Python.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from queue_env.distributions import Law, law
from queue_env.distributions.checks import positive, refuse

__all__ = ["ArrivalProcess", "Batch", "MarkovModulated", "Poisson", "Renewal", "arrival_process"]

FloatArray: TypeAlias = NDArray[np.float64]
_DrawBatches: TypeAlias = Callable[[np.random.Generator, int], NDArray[np.int64]]

# Sojourns of the chain drawn at a time: bounds the memory when phases change much faster than jobs arrive.
_MAX_SOJOURNS = 65_536


class ArrivalProcess(ABC):
    """A source of gaps between arrivals; `rate` is the exact long-run number of arrivals per unit of time."""

    rate: float

    @abstractmethod
    def gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw the next `count` gaps, float64 of shape (count,), each finite and >= 0."""

    def state(self) -> dict[str, Any]:
        """The memory of the process beside the generator's own, JSON-able; empty where there is none."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()` of the same process.

        Raises:
            ValueError: the state is not one of this process.
        """
        _check_keys("state", state, ())


class Poisson(ArrivalProcess):
    """Poisson arrivals: independent exponential gaps of mean 1/rate.

    The gaps do not depend on how many are asked for at a time.
    """

    def __init__(self, rate: float) -> None:
        self.rate = positive("arrivals", "rate", rate)

    def gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw the next `count` gaps, float64 of shape (count,)."""
        gaps = rng.standard_exponential(count)
        gaps *= 1 / self.rate
        return gaps


class Renewal(ArrivalProcess):
    """Independent gaps of any law of finite mean, which is rescaled to the rate.

    The first gap has the law of all others, as if a job had arrived at time 0. The gaps do not depend on how
    many are asked for at a time if this is so for the law.

    Raises:
        ValueError: the mean of the law is infinite.
    """

    def __init__(self, rate: float, gap: Law) -> None:
        self.rate = positive("arrivals", "rate", rate)
        self.gap = gap.with_mean(1 / self.rate)

    def gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw the next `count` gaps, float64 of shape (count,)."""
        return self.gap.sample(rng, count)


class MarkovModulated(ArrivalProcess):
    """Markov-modulated Poisson arrivals (MMPP): the phase of a Markov chain sets the arrival rate.

    Started in a phase of the stationary law, so counts are stationary in time. Between two calls only the
    phase is kept: what is left of its sojourn is exponential again and is drawn anew. So the *law* of the
    gaps, but not each gap, is the same however many are asked for at a time (`Stream` asks for blocks of
    fixed lengths).

    Source: W. Fischer, K. Meier-Hellstern, "The Markov-modulated Poisson process (MMPP) cookbook",
    Performance Evaluation 18 (1993).

    Args:
        rate: arrivals per unit of time in the long run.
        rates: arrival rate in each phase, shape (phases,), up to the common factor that `rate` fixes.
        generator: transition rates of the phases, shape (phases, phases), on the time scale of `rates`; rows
            sum to 0.

    Raises:
        ValueError: a rate is negative or all are 0, a row of the generator is not one, or a phase cannot be
            reached from another.
    """

    def __init__(self, rate: float, rates: ArrayLike, generator: ArrayLike) -> None:
        self.rate = positive("arrivals", "rate", rate)
        shape = _check_rates(rates)
        transitions = _check_generator(generator, shape.size)
        self.stationary = _stationary_law(transitions)
        factor = self.rate / float(self.stationary @ shape)
        self.rates: FloatArray = shape * factor
        self.generator: FloatArray = transitions * factor
        self._sojourn_means = -1 / np.diagonal(self.generator)
        jumps = np.cumsum(np.maximum(self.generator, 0), axis=1)
        # Row i: upper ends, in [0, 1], of the intervals of a uniform number that lead from i to each phase.
        self._jump_ends = jumps / jumps[:, -1:]
        self._sojourns_per_job = float(self.stationary @ (1 / self._sojourn_means)) / self.rate
        self._phase: int | None = None

    def gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw the next `count` gaps, float64 of shape (count,).

        A Poisson process of rate one runs in the time that passes at speed rates[phase]; its points are then
        mapped back to true time, sojourn by sojourn. Rounding is that of a clock that starts at 0.
        """
        due = np.cumsum(rng.standard_exponential(count))  # in units of expected arrivals
        times = np.empty(count)
        clock = expected = 0.0
        done = 0
        while done < count:
            phases, sojourns = self._sojourns(rng, count - done)
            ends = clock + np.cumsum(sojourns)
            expected_ends = expected + np.cumsum(sojourns * self.rates[phases])
            covered = int(np.searchsorted(due, expected_ends[-1], side="right"))
            where = np.searchsorted(expected_ends, due[done:covered])
            # Reckoned back from the end of the sojourn, never before its start: times cannot decrease.
            back = (expected_ends[where] - due[done:covered]) / self.rates[phases[where]]
            starts = np.concatenate(([clock], ends[:-1]))
            times[done:covered] = np.maximum(ends[where] - back, starts[where])
            if covered == count:
                self._phase = int(phases[where[-1]])
            clock, expected, done = float(ends[-1]), float(expected_ends[-1]), covered
        return np.diff(times, prepend=0.0)

    def state(self) -> dict[str, Any]:
        """The present phase, or None if nothing has been drawn yet."""
        return {"phase": self._phase}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()` of the same process."""
        _check_keys("state", state, ("phase",))
        phase = state["phase"]
        if phase is not None and phase not in range(self.rates.size):
            refuse("state", "phase", f"None or one of 0 to {self.rates.size - 1}", phase)
        self._phase = phase

    def _sojourns(self, rng: np.random.Generator, jobs: int) -> tuple[NDArray[np.intp], FloatArray]:
        """Successive phases, from the present one on, and their sojourn times; about enough for so many jobs.

        Leaves the phase that follows the last of them as the present one.
        """
        count = min(int(1.1 * jobs * self._sojourns_per_job) + 16, _MAX_SOJOURNS)
        if self._phase is None:
            self._phase = int(np.searchsorted(np.cumsum(self.stationary)[:-1], rng.random(), side="right"))
        uniforms = rng.random(count)
        # Row k: where the k-th jump leads from each phase. Only the walk through the rows is a loop.
        leads = np.stack([np.searchsorted(ends, uniforms, side="right") for ends in self._jump_ends], axis=1)
        walk = accumulate(leads.tolist(), lambda phase, row: row[phase], initial=self._phase)
        phases = np.fromiter(walk, np.intp, count + 1)
        self._phase = int(phases[-1])
        return phases[:-1], rng.standard_exponential(count) * self._sojourn_means[phases[:-1]]


class Batch(ArrivalProcess):
    """Batch arrivals: every epoch of another process brings a batch of jobs at the same instant.

    The first job of a batch has the gap between epochs, the others have gap 0. Batches that a call draws and
    does not use are dropped, so only the law of the gaps is the same however many are asked for at a time.

    Args:
        epochs: arrival process of the batches.
        batch: {"law": "geometric", "mean": m} on 1, 2, ... or {"law": "fixed", "count": k}.
    """

    def __init__(self, epochs: ArrivalProcess, batch: Mapping[str, Any]) -> None:
        self.epochs = epochs
        self._mean_batch, self._draw_batches = _batch_law(batch)
        self.rate = epochs.rate * self._mean_batch
        self._left = 0

    def gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw the next `count` gaps, float64 of shape (count,)."""
        gaps = np.zeros(count)
        starts = self._batch_starts(rng, count)
        gaps[starts] = self.epochs.gaps(rng, starts.size)
        return gaps

    def state(self) -> dict[str, Any]:
        """The number of jobs of the present batch still to come, and the state of the epochs."""
        return {"left": self._left, "epochs": self.epochs.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()` of the same process."""
        _check_keys("state", state, ("left", "epochs"))
        left = state["left"]
        if not isinstance(left, int) or left < 0:
            refuse("state", "left", "an integer >= 0", left)
        self.epochs.restore(state["epochs"])
        self._left = left

    def _batch_starts(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Indices, among the next `count` jobs, of those that open a batch; keeps the last one's rest."""
        opened: list[NDArray[np.int64]] = []
        end = self._left  # index of the job that opens the next batch
        while end < count:
            ends = end + np.cumsum(self._draw_batches(rng, int((count - end) / self._mean_batch) + 1))
            starts = np.concatenate(([end], ends[:-1]))
            used = int(np.searchsorted(starts, count))
            opened.append(starts[:used])
            end = int(ends[used - 1])
        self._left = end - count
        return np.concatenate(opened) if opened else np.empty(0, np.int64)


def arrival_process(spec: Mapping[str, Any], rate: float) -> ArrivalProcess:
    """Build the arrival process of a mapping, at a rate.

    Args:
        spec: {"process": "poisson"}, {"process": "renewal", "law": {...}},
            {"process": "mmpp", "rates": [...], "generator": [[...]]}, or
            {"process": "batch", "batch": {...}, "epochs": {process mapping}} (see `Batch`).
        rate: arrivals of jobs per unit of time; everything in the mapping is rescaled to it.

    Raises:
        ValueError: an unknown process, a missing or unknown key, or a value that the process refuses.
    """
    if not isinstance(spec, Mapping):
        refuse("arrivals", "process", 'a mapping such as {"process": "poisson"}', spec)
    name = spec.get("process")
    if name not in _BUILDERS:
        refuse("arrivals", "process", f"one of {', '.join(_BUILDERS)}{suggestion(name, _BUILDERS)}", name)
    keys, build = _BUILDERS[name]
    _check_keys(name, spec, ("process", *keys))
    return build(spec, rate)


def suggestion(name: object, known: Iterable[str]) -> str:
    """The part of an error message that offers the known names close to an unknown one; may be empty."""
    close = difflib.get_close_matches(str(name), list(known))
    return f" (perhaps {' or '.join(close)})" if close else ""


def _batch(spec: Mapping[str, Any], rate: float) -> Batch:
    mean, _ = _batch_law(spec["batch"])
    return Batch(arrival_process(spec["epochs"], rate / mean), spec["batch"])


def _markov_modulated(spec: Mapping[str, Any], rate: float) -> MarkovModulated:
    return MarkovModulated(rate, spec["rates"], spec["generator"])


_BUILDERS: dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any], float], ArrivalProcess]]] = {
    "poisson": ((), lambda _, rate: Poisson(rate)),
    "renewal": (("law",), lambda spec, rate: Renewal(rate, law(spec["law"]))),
    "mmpp": (("rates", "generator"), _markov_modulated),
    "batch": (("batch", "epochs"), _batch),
}


def _batch_law(batch: Mapping[str, Any]) -> tuple[float, _DrawBatches]:
    """Mean of a law of batch sizes, and a function that draws so many of them."""
    if not isinstance(batch, Mapping) or batch.get("law") not in ("geometric", "fixed"):
        allowed = '{"law": "geometric", "mean": m} or {"law": "fixed", "count": k}'
        refuse("arrivals", "batch", allowed, batch)
    if batch["law"] == "geometric":
        _check_keys("batch", batch, ("law", "mean"))
        mean = positive("batch", "mean", batch["mean"])
        if mean < 1:
            refuse("batch", "mean", ">= 1", mean)
        return mean, lambda rng, count: rng.geometric(1 / mean, count)
    _check_keys("batch", batch, ("law", "count"))
    size = batch["count"]
    if not isinstance(size, int) or size < 1:
        refuse("batch", "count", "an integer >= 1", size)
    return float(size), lambda rng, count: np.full(count, size, np.int64)


def _check_keys(owner: str, given: Mapping[str, Any], wanted: tuple[str, ...]) -> None:
    if set(given) != set(wanted):
        refuse(owner, "keys", f"exactly {', '.join(wanted)}", list(given))


def _numbers(name: str, values: ArrayLike) -> FloatArray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        refuse("mmpp", name, "an array of numbers", values)
    if not np.isfinite(array).all():
        refuse("mmpp", name, "finite", values)
    return array


def _check_rates(rates: ArrayLike) -> FloatArray:
    array = _numbers("rates", rates)
    if array.ndim != 1 or array.size < 2 or (array < 0).any() or not array.any():
        refuse("mmpp", "rates", "two or more numbers >= 0, not all 0", rates)
    return array


def _check_generator(generator: ArrayLike, phases: int) -> FloatArray:
    array = _numbers("generator", generator)
    if array.shape != (phases, phases):
        refuse("mmpp", "generator", f"{phases} x {phases}, as there are {phases} rates", generator)
    off_diagonal = array - np.diag(np.diagonal(array))
    if (off_diagonal < 0).any() or (abs(array.sum(axis=1)) > 1e-9 * abs(array).max(axis=1)).any():
        refuse("mmpp", "generator", ">= 0 off the diagonal, with rows that sum to 0", generator)
    if not np.linalg.matrix_power(np.eye(phases) + (off_diagonal > 0), phases).all():
        refuse("mmpp", "generator", "such that every phase can be reached from every other", generator)
    return array


def _stationary_law(generator: FloatArray) -> FloatArray:
    """The probabilities p of the phases, shape (phases,): p generator = 0, sum p = 1."""
    balance = generator.T.copy()
    balance[-1] = 1
    return np.linalg.solve(balance, np.eye(len(generator))[-1])
