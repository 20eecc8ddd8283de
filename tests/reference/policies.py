"""Every policy of SPEC section 2, as a function from the present jobs to their rates.

A name in `POLICIES` stands for a function of the spare capacity `delta` and the policy's own parameters that
returns a `Rule`. The rates depend on the present jobs alone, but for two things that are remembered: who is
in service (whose rate was positive until now, for the policies that do not preempt) and who is the anchor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from .state import ONE, Allocation, Job, Rule, System

Priority = Callable[[Job], tuple[Fraction, int]]
"""Smaller comes first; the job number decides ties."""


def latest_arrival(job: Job) -> tuple[Fraction, int]:
    return -job.arrival_time, job.number


def smallest_size(job: Job) -> tuple[Fraction, int]:
    return job.size, job.number


def smallest_remaining(job: Job) -> tuple[Fraction, int]:
    return job.remaining, job.number


def largest_size(job: Job) -> tuple[Fraction, int]:
    return -job.size, job.number


def at_full_rate(jobs: Iterable[Job]) -> Allocation:
    return Allocation({job.number: ONE for job in jobs})


def judge(system: System, one: Job, other: Job) -> None:
    """Note how close the remaining sizes of two jobs were, whose order has just decided something."""
    if one.attained == 0 and other.attained == 0:
        return
    system.conditioning.ties += one.remaining == other.remaining
    system.conditioning.saw_priorities(one.remaining, other.remaining, max(one.size, other.size, system.now))


def srpt_order(system: System, jobs: Iterable[Job], *cuts: int) -> list[Job]:
    """The jobs by remaining size. What happens to a job changes after each of the `cuts` first ones."""
    order = sorted(jobs, key=smallest_remaining)
    for cut in cuts:
        if 0 < cut < len(order):
            judge(system, order[cut - 1], order[cut])
    return order


def fcfs(system: System) -> Allocation:
    # Who is in service arrived before all who are not, so the n earliest are those in service and the next.
    return at_full_rate(system.jobs[: system.servers])


def preemptive(priority: Priority) -> Rule:
    return lambda system: at_full_rate(sorted(system.jobs, key=priority)[: system.servers])


def non_preemptive(priority: Priority) -> Rule:
    def rule(system: System) -> Allocation:
        in_service = [job for job in system.jobs if job.rate > 0]
        waiting = sorted((job for job in system.jobs if job.rate == 0), key=priority)
        return at_full_rate(in_service + waiting[: system.servers - len(in_service)])

    return rule


def srpt(system: System) -> Allocation:
    return at_full_rate(srpt_order(system, system.jobs, system.servers)[: system.servers])


def processor_sharing(system: System) -> Allocation:
    if not system.jobs:
        return Allocation({})
    rate = min(ONE, Fraction(system.servers, len(system.jobs)))
    return Allocation({job.number: rate for job in system.jobs})


def least_attained(system: System) -> Allocation:
    """Level by level, least attained first: the jobs of a level share what is left, up to rate 1 each.

    The hold ends when a level catches up with the next one above it.
    """
    rates: dict[int, Fraction] = {}
    hold: Fraction | None = None
    capacity = Fraction(system.servers)
    below: tuple[Fraction, Fraction] | None = None  # attained service and rate of the level below
    for attained in sorted({job.attained for job in system.jobs}):
        level = [job for job in system.jobs if job.attained == attained]
        rate = min(ONE, capacity / len(level))
        capacity -= rate * len(level)
        rates |= {job.number: rate for job in level}
        if below is not None and below[1] > rate:
            catch_up = (attained - below[0]) / (below[1] - rate)
            hold = catch_up if hold is None else min(hold, catch_up)
        below = (attained, rate)
    return Allocation(rates, hold)


def split(system: System) -> Allocation:
    if not system.jobs:
        return Allocation({})
    largest = min(system.jobs, key=largest_size)
    others = srpt_order(system, (job for job in system.jobs if job is not largest), system.servers - 1)
    return at_full_rate([largest, *others[: system.servers - 1]])


def thresh_split(d: float) -> Rule:
    def rule(system: System) -> Allocation:
        large = [job for job in system.jobs if job.size > d]
        small = srpt_order(system, (job for job in system.jobs if job.size <= d), system.servers - 1)
        return at_full_rate(large[:1] + small[: system.servers - 1])

    return rule


class AnchorRole:
    """Who has the role: it is kept until departure, and the largest original size present takes it then.

    A job that arrives to an empty system is the largest present, as the policy is asked after every event.
    """

    def __init__(self) -> None:
        self.holder: Job | None = None

    def __call__(self, system: System) -> Job:
        if self.holder not in system.jobs:
            self.holder = min(system.jobs, key=largest_size)
            # Of two jobs that complete at one time, the first handed the role to the second.
            system.conditioning.ties += self.holder.remaining == 0
        assert self.holder is not None
        return self.holder


def with_anchor_rate(system: System, anchor: Job, rate: Fraction, hold: Fraction | None = None) -> Allocation:
    """The anchor at `rate`, the n-1 other jobs of smallest remaining size at 1, the n-th at 1 - rate."""
    servers = system.servers
    others = srpt_order(system, (job for job in system.jobs if job is not anchor), *anchor_cuts(servers, rate))
    rates = {job.number: ONE for job in others[: servers - 1]}
    return Allocation(rates | {anchor.number: rate, others[servers - 1].number: 1 - rate}, hold)


def anchor_cuts(servers: int, rate: Fraction) -> list[int]:
    """After how many of the other jobs the rate changes (1, then 1 - rate for the n-th, then 0)."""
    if rate == 0:
        return [servers]
    return [servers - 1] if rate == 1 else [servers - 1, servers]


def dynasplit(delta: float | None, margin: Callable[[float], float] | None) -> Rule:
    assert delta is not None
    assert delta > 0
    role = AnchorRole()

    def default_margin(size: float) -> float:
        return delta / (2 + math.log1p(size))

    def rule(system: System) -> Allocation:
        if not system.jobs:
            return Allocation({})
        anchor = role(system)
        if len(system.jobs) <= system.servers:
            return at_full_rate(system.jobs)
        reserve = (margin or default_margin)(float(anchor.size))
        assert 0 < reserve <= delta / 2
        return with_anchor_rate(system, anchor, Fraction(min(1.0, delta - reserve)))

    return rule


def backlog_split(b: float, kappa: float) -> Rule:
    role = AnchorRole()

    def rule(system: System) -> Allocation:
        if not system.jobs:
            return Allocation({})
        anchor = role(system)
        if len(system.jobs) <= system.servers:
            return at_full_rate(system.jobs)
        backlog = sum(job.remaining for job in system.jobs) - anchor.remaining
        threshold = Fraction(b * float(anchor.size) ** kappa)
        system.conditioning.saw_priorities(backlog, threshold, max(backlog, threshold, system.now))
        if backlog > threshold:  # the n others that are served bring it down
            hold = (backlog - threshold) / system.servers
            return with_anchor_rate(system, anchor, Fraction(0), hold)
        # At the threshold itself it would be below at once.
        return with_anchor_rate(system, anchor, ONE)

    return rule


def super_server(system: System) -> Allocation:
    order = srpt_order(system, system.jobs, 1)
    return Allocation({job.number: Fraction(system.servers) for job in order[:1]}, fast_server=True)


def loss_priority(tau: float) -> Rule:
    def rule(system: System) -> Allocation:
        in_service = [job for job in system.jobs if job.rate > 0]
        lost: list[Job] = []
        for arrived in (job for job in system.jobs if job.rate == 0):
            second_class = [job for job in in_service if job.size > tau]
            if len(in_service) < system.servers:
                in_service.append(arrived)
            elif arrived.size <= tau and second_class:
                longest = longest_remaining(system, second_class)
                in_service.remove(longest)
                in_service.append(arrived)
                lost.append(longest)
            else:
                lost.append(arrived)
        return Allocation(at_full_rate(in_service).rates, lost=tuple(job.number for job in lost))

    return rule


def two_class(tau: float) -> Rule:
    def rule(system: System) -> Allocation:
        first = [job for job in system.jobs if job.size <= tau]
        first.sort(key=lambda job: (job.rate == 0, job.number))
        second = [job for job in system.jobs if job.size > tau]
        room = max(system.servers - len(first), 0)
        in_service = srpt_order(system, (job for job in second if job.rate > 0), room)
        waiting = [job for job in second if job.rate == 0]
        return at_full_rate((first + in_service + waiting)[: system.servers])

    return rule


def longest_remaining(system: System, jobs: Sequence[Job]) -> Job:
    """Of several, the one that arrived last."""
    order = srpt_order(system, jobs, len(jobs) - 1)
    return order[-1]


def plain(rule: Rule) -> Callable[..., Rule]:
    """For a policy that needs neither the spare capacity nor a parameter."""
    return lambda delta: rule


POLICIES: dict[str, Callable[..., Rule]] = {
    "fcfs": plain(fcfs),
    "lcfs": plain(non_preemptive(latest_arrival)),
    "plcfs": plain(preemptive(latest_arrival)),
    "srpt": plain(srpt),
    "psjf": plain(preemptive(smallest_size)),
    "sjf": plain(non_preemptive(smallest_size)),
    "ps": plain(processor_sharing),
    "las": plain(least_attained),
    "split": plain(split),
    "thresh-split": lambda delta, d: thresh_split(d),
    "dynasplit": lambda delta, margin=None: dynasplit(delta, margin),
    "backlog-split": lambda delta, b, kappa: backlog_split(b, kappa),
    "super-server": plain(super_server),
    "loss-priority": lambda delta, tau: loss_priority(tau),
    "two-class": lambda delta, tau: two_class(tau),
}
