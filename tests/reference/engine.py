"""The simulator: ask the policy for rates, find the next event, move every job to it, apply it, and again."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .policies import POLICIES
from .state import LOST, ONE, PRESENT, SERVED, ZERO, Allocation, Conditioning, Job, Rule, System

__all__ = ["Allocation", "Job", "Result", "Rule", "System", "simulate"]


class Kind(IntEnum):
    """What can happen, in the order in which simultaneous events are processed."""

    COMPLETION = 0
    ABANDONMENT = 1
    ARRIVAL = 2
    HOLD = 3  # nothing but a new allocation


class Event(NamedTuple):
    """Compares by time, then kind, then job number: the total order of SPEC section 1."""

    time: Fraction
    kind: Kind
    number: int


CLOCK_SPEED: dict[str, Callable[[Fraction], Fraction]] = {
    "queue": lambda rate: ONE if rate == 0 else ZERO,
    "fractional": lambda rate: max(ZERO, 1 - rate),
    "sojourn": lambda rate: ONE,
}


@dataclass(frozen=True)
class Result:
    """One entry per job, in job order.

    start_times: when it first got some service (None: never); a rate that lasts no time is none.
    departure_times: None while present. waiting_times: total time with rate 0. attained: service received.
    outcomes: 0 served, 1 abandoned or lost, 2 not departed at the horizon (perhaps not even arrived).
    """

    start_times: tuple[Fraction | None, ...]
    departure_times: tuple[Fraction | None, ...]
    waiting_times: tuple[Fraction, ...]
    attained: tuple[Fraction, ...]
    outcomes: tuple[int, ...]
    conditioning: Conditioning

    @property
    def margin(self) -> float:
        """The smaller of the two margins of `Conditioning`."""
        return min(self.conditioning.event_margin, self.conditioning.priority_margin)

    def well_conditioned(self, margin: float = 1e-12) -> bool:
        """Whether a float64 simulator can be expected to take the same decisions."""
        decided = self.conditioning.exact or not self.conditioning.ties
        return decided and self.margin > margin

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The entries as arrays of shape (n_jobs,): float64 with NaN for None, and int64 outcomes."""
        names = ("start_times", "departure_times", "waiting_times", "attained")
        arrays: dict[str, NDArray[Any]] = {}
        for name in names:
            arrays[name] = np.array([math.nan if x is None else float(x) for x in getattr(self, name)])
        arrays["outcomes"] = np.array(self.outcomes, dtype=np.int64)
        return arrays


def simulate(
    arrival_times: Sequence[float | Fraction],
    sizes: Sequence[float | Fraction],
    policy: str | Rule,
    servers: int,
    *,
    patience: Sequence[float | Fraction] | None = None,
    clock: str = "queue",
    delta: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    horizon: float | Fraction | None = None,
) -> Result:
    """Run the workload under the policy, exactly.

    `policy` is a `Rule`, or a name of `POLICIES`: built from `delta` (the spare capacity) and `parameters`.
    Events at the horizon itself are processed. Without a horizon the run ends when nothing more can happen.
    """
    patience = [math.inf] * len(sizes) if patience is None else patience
    columns = zip(arrival_times, sizes, patience, strict=True)
    jobs = [Job(number, Fraction(a), Fraction(s), _patience(p)) for number, (a, s, p) in enumerate(columns)]
    assert all(job.size > 0 for job in jobs)
    assert all(one.arrival_time <= other.arrival_time for one, other in itertools.pairwise(jobs))
    rule = POLICIES[policy](delta, **(parameters or {})) if isinstance(policy, str) else policy
    system = System(servers)
    _run(system, jobs, rule, CLOCK_SPEED[clock], None if horizon is None else Fraction(horizon))
    return Result(
        tuple(job.start_time for job in jobs),
        tuple(job.departure_time for job in jobs),
        tuple(job.waited for job in jobs),
        tuple(job.attained for job in jobs),
        tuple(job.outcome for job in jobs),
        system.conditioning,
    )


def _patience(value: float | Fraction) -> Fraction | None:
    assert value >= 0
    return None if value == math.inf else Fraction(value)


def _run(
    system: System,
    jobs: Sequence[Job],
    rule: Rule,
    clock_speed: Callable[[Fraction], Fraction],
    horizon: Fraction | None,
) -> None:
    to_come = list(jobs)
    while True:
        hold = _allocate(system, rule)
        event = _next_event(system, to_come, clock_speed, hold)
        if event is None or (horizon is not None and event.time > horizon):
            break
        _advance(system, event.time, clock_speed)
        if event.kind is Kind.COMPLETION:
            assert jobs[event.number].remaining == 0
            _depart(system, jobs[event.number], SERVED)
        elif event.kind is Kind.ABANDONMENT:
            assert jobs[event.number].clock == jobs[event.number].patience
            _depart(system, jobs[event.number], LOST)
        elif event.kind is Kind.ARRIVAL:
            system.jobs.append(to_come.pop(0))
    if horizon is not None:
        _advance(system, horizon, clock_speed)


def _allocate(system: System, rule: Rule) -> Fraction | None:
    """Give every present job its rate, send away those that are lost, and return when the hold ends."""
    allocation = rule(system)
    for job in list(system.jobs):
        if job.number in allocation.lost:
            _depart(system, job, LOST)
    top_speed = system.servers if allocation.fast_server else 1
    for job in system.jobs:
        job.rate = Fraction(allocation.rates.get(job.number, 0))
        system.conditioning.saw_number(job.rate)
        assert 0 <= job.rate <= top_speed
    assert set(allocation.rates) <= {job.number for job in system.jobs}
    assert sum(job.rate for job in system.jobs) <= system.servers
    assert allocation.hold is None or allocation.hold > 0
    return None if allocation.hold is None else system.now + allocation.hold


def _next_event(
    system: System,
    to_come: Sequence[Job],
    clock_speed: Callable[[Fraction], Fraction],
    hold: Fraction | None,
) -> Event | None:
    events = []
    for job in system.jobs:
        if job.remaining == 0:
            # Two jobs completed at this instant and the other came first: nothing can keep this one.
            events.append(Event(system.now, Kind.COMPLETION, job.number))
        elif job.rate > 0:
            events.append(Event(system.now + job.remaining / job.rate, Kind.COMPLETION, job.number))
        # A clock that stands cannot reach the patience: a job that is given a server at the very instant
        # at which its patience would have run out is served.
        speed = clock_speed(job.rate)
        if job.patience is not None and speed > 0:
            left = (job.patience - job.clock) / speed
            events.append(Event(system.now + left, Kind.ABANDONMENT, job.number))
    if to_come:
        events.append(Event(to_come[0].arrival_time, Kind.ARRIVAL, to_come[0].number))
    if hold is not None:
        events.append(Event(hold, Kind.HOLD, -1))
    if not events:
        return None
    _judge_events(system, events)
    return min(events)


def _judge_events(system: System, events: Sequence[Event]) -> None:
    first = min(events).time
    together = [event.kind for event in events if event.time == first]
    if len(together) > 1 and (Kind.ABANDONMENT in together or Kind.ARRIVAL in together):
        # Events at the present instant take no sum to find: doubles agree, if they agreed on getting there.
        system.conditioning.ties += first > system.now
    later = [event.time for event in events if event.time > first]
    if later:
        system.conditioning.saw_events(first, min(later))


def _advance(system: System, time: Fraction, clock_speed: Callable[[Fraction], Fraction]) -> None:
    """Move the clock to `time` at the present rates."""
    duration = time - system.now
    assert duration >= 0
    for job in system.jobs:
        if job.rate == 0:
            job.waited += duration
        elif job.start_time is None and duration > 0:
            job.start_time = system.now
        job.attained += job.rate * duration
        job.clock += clock_speed(job.rate) * duration
        assert job.attained <= job.size
        assert job.patience is None or job.clock <= job.patience
        system.conditioning.saw_number(job.remaining)
        system.conditioning.saw_number(job.clock)
    system.now = time
    system.conditioning.saw_number(time)


def _depart(system: System, job: Job, outcome: int) -> None:
    assert job.outcome == PRESENT
    job.departure_time = system.now
    job.outcome = outcome
    job.rate = ZERO
    system.jobs.remove(job)
