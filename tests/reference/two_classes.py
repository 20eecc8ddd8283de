"""The action `threshold` as a rule of the slow simulator: two classes, an order within them, and changing actions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from .policies import at_full_rate
from .state import Allocation, Job, System


@dataclass(frozen=True)
class Held:
    """What an action says.

    Attributes:
        first: whether a job has priority.
        level: attained service that a job with priority must not have, or None where it does not matter.
        within: age up to which the oldest go first, before the older ones, of which the newest do; None without end.
    """

    first: Callable[[Job], bool]
    level: Fraction | None
    within: Fraction | None


NOTHING = Held(lambda job: False, None, None)


class TwoClasses:
    """Those with priority are served before the others, and take their servers; within a class who is in service stays.

    Of those in service without priority the one of longest remaining size yields first, or where sizes are hidden that
    of most attained service.

    Args:
        actions: what is held after the first decision, the second, ...
        interval: time between decisions, the first of which is at time 0; None: after every event.
        known: whether sizes are known.
    """

    def __init__(self, actions: Iterator[Held], interval: float | None, *, known: bool) -> None:
        self.actions, self.interval, self.known = actions, interval, known
        self.held = NOTHING
        self.decide_at = 0.0
        self.population: list[int] = []

    def __call__(self, system: System) -> Allocation:
        numbers = [job.number for job in system.jobs]
        if self.interval is None:
            if numbers != self.population:
                self.held = next(self.actions)
        elif system.now == Fraction(self.decide_at):
            if numbers != self.population:
                system.conditioning.event_margin = 0.0  # others may follow at this instant, and only then the decision
            self.held = next(self.actions)
            self.decide_at += self.interval
        self.population = numbers
        served = self._ranked(system)[: system.servers]
        holds = [Fraction(self.decide_at) - system.now] if self.interval is not None else []
        if self.held.level is not None:
            left = [self.held.level - job.attained for job in served if self.held.first(job)]
            holds += left
            for one in left:
                system.conditioning.saw_number(one)
        return Allocation(at_full_rate(served).rates, min(holds, default=None))

    def _ranked(self, system: System) -> list[Job]:
        ranked: list[Job] = []
        for first in (True, False):
            of_class = [job for job in system.jobs if self.held.first(job) == first]
            in_service = sorted((job for job in of_class if job.rate > 0), key=self._yields_last)
            if not first:
                self._judge(system, in_service, system.servers - len(ranked))
            waiting = sorted((job for job in of_class if job.rate == 0), key=lambda job: self._order(system, job))
            ranked += in_service + waiting
        return ranked

    def _yields_last(self, job: Job) -> tuple[Fraction, int]:
        return (job.remaining if self.known else job.attained), job.number

    def _judge(self, system: System, in_service: list[Job], room: int) -> None:
        """Note how close the decision was on who of those in service yields."""
        if 0 <= room < len(in_service) and room > 0:
            one, other = in_service[room - 1], in_service[room]
            a, b = self._yields_last(one)[0], self._yields_last(other)[0]
            system.conditioning.ties += a == b and (one.attained > 0 or other.attained > 0)
            system.conditioning.saw_priorities(a, b, max(one.size, other.size, system.now))

    def _order(self, system: System, job: Job) -> tuple[int, Fraction, int]:
        age, within = system.now - job.arrival_time, self.held.within
        if within is not None and age > 0 and within > 0:
            system.conditioning.saw_priorities(age, within, max(system.now, within))
            system.conditioning.ties += age == within
        if within is None or age <= within:
            return 0, Fraction(job.number), 0
        return 1, -job.arrival_time, job.number


def held(share: float, order: float, *, mean: float, known: bool) -> Held:
    """The action (share, order) where sizes are exponential."""
    within = None if order <= 0 else Fraction(mean * (1 - order) / order)
    if known:
        return Held(lambda job: share > 0 and -math.expm1(-float(job.size) / mean) <= share, None, within)
    if share >= 1:
        return Held(lambda job: True, None, within)
    level = Fraction(-mean * math.log1p(-share)) if share > 0 else Fraction(0)
    return Held(lambda job: job.attained < level, level, within)
