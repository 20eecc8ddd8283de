"""What the figure of tails shows: a plain run as far as it has seen enough, and the decomposition beyond."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.distributions.checks import positive, refuse
from queue_env.result import Result
from queue_env.scenarios import Scenario
from queue_env.scoring.agent_runs import plain_run
from queue_env.scoring.curve import DEFAULT_LEAST, MOST_JOBS, TailCurve, tail_curve

__all__ = ["JoinedTail", "Points", "half_decades", "joined_tail"]

FloatArray: TypeAlias = NDArray[np.float64]

FEWEST_EVENTS = 1000
"""The plain run is shown as far as at least so many of its jobs were longer in the system."""

RUN_AWAY = 100.0
"""R(t) at the end of the plain run, from which on it is not followed."""

_FIRST = 0.1  # mean service times
_POINTS_PER_DECADE = 24


@dataclass(frozen=True, kw_only=True, eq=False)
class Points:
    """Points of a tail with 95 % intervals, all of shape (points,).

    Attributes:
        t: increasing [mean service times].
        tail: P[T > t].
        value: R(t) = P[T > t]/F̄(ct).
        low, high: ends of the intervals for R(t).
    """

    t: FloatArray
    tail: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray

    def after(self, t: float) -> Points:
        """The points beyond a time."""
        keep = self.t > t
        return Points(**{name: column[keep] for name, column in vars(self).items()})


@dataclass(frozen=True, kw_only=True, eq=False)
class JoinedTail:
    """The tail under one policy, from two sources.

    Attributes:
        policy: label.
        plain: from a plain run, where at least `FEWEST_EVENTS` jobs lie beyond t.
        decomposition: from the largest-job decomposition, at the last half-decade that the plain run has seen and at
            those beyond; no points where it has seen all, or that the tail runs away.
        reached: whether the decomposition's intervals are as narrow as was asked for.
    """

    policy: str
    plain: Points
    decomposition: Points
    reached: bool

    @property
    def beyond(self) -> Points:
        """The decomposition's points where the plain run has not seen enough."""
        return self.decomposition.after(float(self.plain.t[-1]) if len(self.plain.t) else 0.0)


def joined_tail(
    policy: Any,
    model: Scenario,
    *,
    t_max: float = 1e6,
    rel_half_width: float = 0.1,
    plain_jobs: int = 10_000_000,
    seed: int = 0,
    most_jobs: float = MOST_JOBS,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
) -> JoinedTail:
    """Estimate the tail under a policy by a plain run, and by the decomposition where that has not seen enough.

    A tail that has run away, to `RUN_AWAY` times the bound, is not followed: runs of the decomposition are very long
    then, for millions of jobs are present.

    Args:
        policy: as for `tail_curve`.
        model: as for `tail_curve`.
        t_max: the last time [mean service times].
        rel_half_width: of the decomposition's intervals.
        plain_jobs: jobs of the plain run; of an agent 400,000 at most.
        seed: of both.
        most_jobs: jobs that may be simulated for the decomposition.
        threads: to run on; one for each core if not given.
        progress: whether to show bars; only on a terminal, if not given.
        checkpoint: file that keeps what is finished of the decomposition.

    Raises:
        ValueError: an argument is not allowed; or the system is not stable under the policy.
        KeyboardInterrupt: interrupted before there was enough.
    """
    times = half_decades(model, t_max)
    shared: dict[str, Any] = {"seed": seed, "threads": threads, "progress": progress}
    result = plain_run(model, policy, jobs=plain_jobs, **shared)
    if result.interrupted:  # it has seen less, and a checkpoint of the decomposition would be one of other times
        raise KeyboardInterrupt
    plain = _plain_points(result, model, t_max)
    seen = int(np.sum(times <= plain.t[-1])) if len(plain.t) else 0
    if seen == len(times) or (seen and plain.value[-1] >= RUN_AWAY):
        return JoinedTail(policy=result.policy, plain=plain, decomposition=plain.after(np.inf), reached=True)
    times = times[max(seen - 1, 0) :]
    curve = tail_curve(
        policy,
        model,
        times * model.sizes.mean,
        rel_half_width=rel_half_width,
        most_jobs=most_jobs,
        checkpoint=checkpoint,
        **shared,
    )
    return JoinedTail(
        policy=curve.policy, plain=plain, decomposition=_curve_points(curve, times), reached=curve.reached
    )


def half_decades(model: Scenario, t_max: float) -> FloatArray:
    """Half-decades from one to `t_max` [mean service times], as far as F̄(ct) is at least 1e-15.

    Raises:
        ValueError: t_max is not a number of at least 1, or nothing is left.
    """
    if positive("tail figure", "t_max", t_max) < 1:
        refuse("tail figure", "t_max", "at least 1 mean service time", t_max)
    times = 10 ** np.arange(0, np.log10(t_max) + 1e-9, 0.5)
    times = times[model.sizes.tail(model.c * times * model.sizes.mean) >= DEFAULT_LEAST]
    if times.size == 0:
        refuse("tail figure", "sizes of the scenario", f"such that F̄(c) >= {DEFAULT_LEAST:g}", model.sizes.spec())
    return np.asarray(times)


def _plain_points(result: Result, model: Scenario, t_max: float) -> Points:
    first, last = np.log10(_FIRST), np.log10(t_max)
    times = np.logspace(first, last, 1 + int(np.ceil((last - first) * _POINTS_PER_DECADE)))
    times = times[result.events(times * model.sizes.mean) >= FEWEST_EVENTS]
    t = times * model.sizes.mean
    low, high = result.normalised_tail_interval(t)
    return Points(t=times, tail=result.tail(t), value=result.normalised_tail(t), low=low, high=high)


def _curve_points(curve: TailCurve, times: FloatArray) -> Points:
    return Points(t=times, tail=curve.tail, value=curve.normalised_tail, low=curve.low, high=curve.high)
