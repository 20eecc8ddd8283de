"""What a policy sees (the present jobs) and what it answers (their rates), in exact rational numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

ZERO = Fraction(0)
ONE = Fraction(1)

SERVED, LOST, PRESENT = 0, 1, 2


@dataclass
class Job:
    """One job. `rate` is what the last allocation gave it; the four totals are up to the present instant."""

    number: int
    arrival_time: Fraction
    size: Fraction
    patience: Fraction | None  # None: it never leaves unserved
    rate: Fraction = ZERO
    attained: Fraction = ZERO
    waited: Fraction = ZERO  # time with rate 0
    clock: Fraction = ZERO  # the patience clock
    start_time: Fraction | None = None
    departure_time: Fraction | None = None
    outcome: int = PRESENT

    @property
    def remaining(self) -> Fraction:
        return self.size - self.attained


@dataclass
class Conditioning:
    """How close the run came to another decision.

    A float64 simulator makes errors of some 1e-16 per event, relative to the clock and to the sizes. It can
    be expected to decide as the exact run did if every decision was taken by far more than that:

    - `event_margin`: over all events, the smallest (t' - t) / t', with t the time of the event and t' the
      next later time at which something else would have happened (completion, abandonment, arrival or end
      of a hold, at the rates of that moment).
    - `priority_margin`: over all allocations, the smallest |a - b| / max(a's size, b's size, clock), where a
      and b are the remaining sizes of the last job that got a rate and of the first that did not. Pairs that
      have never been served are left out: their remaining sizes are their sizes, which doubles hold exactly.
      The backlog against the threshold of backlog-split counts as such a pair. Original sizes and arrival
      times are compared without error, and a small error in a level of las has a small effect.
    - `ties`: how many decisions were taken between exactly equal numbers where doubles may see a difference.
      Left out are arrivals at one time and equal sizes, which doubles see as well, and completions at one
      time, whose order has no effect.
    - `exact`: every time, rate, remaining size and patience clock of the run is a double, so that a float64
      simulator sees the ties too.
    """

    event_margin: float = math.inf
    priority_margin: float = math.inf
    ties: int = 0
    exact: bool = True

    def saw_events(self, first: Fraction, later: Fraction) -> None:
        self.event_margin = min(self.event_margin, float((later - first) / later))

    def saw_priorities(self, one: Fraction, other: Fraction, scale: Fraction) -> None:
        if one != other:
            self.priority_margin = min(self.priority_margin, float(abs(one - other) / scale))

    def saw_number(self, number: Fraction) -> None:
        self.exact = self.exact and float(number) == number


@dataclass
class System:
    """The queue at one instant: `jobs` are the present ones in order of arrival (of job number)."""

    servers: int
    now: Fraction = ZERO
    jobs: list[Job] = field(default_factory=list)
    conditioning: Conditioning = field(default_factory=Conditioning)


@dataclass(frozen=True)
class Allocation:
    """The rates until the next event, or for the time `hold`, if that ends earlier.

    `rates` maps job numbers to rates; a job that is not named gets 0. The jobs named in `lost` leave unserved
    at once. `fast_server` says that there is one server of speed n, instead of n of speed one.
    """

    rates: Mapping[int, Fraction]
    hold: Fraction | None = None
    lost: tuple[int, ...] = ()
    fast_server: bool = False


Rule = Callable[[System], Allocation]
"""A policy. It is asked again after every single event and may remember what it likes between the calls."""
