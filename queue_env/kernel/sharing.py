"""Processor sharing: every job at rate min(1, n/N).

All jobs gain service at one speed, so a job finishes when the service that each has gained since the origin
(``virtual``) reaches its tag: the reading at its arrival plus its size. Patience under the fractional clock works
alike.
"""

import numpy as np

from queue_env.kernel import events, heaps
from queue_env.kernel.compile import jit, jit_entry
from queue_env.kernel.layout import (
    ABANDONED,
    ABANDONMENT,
    ARRIVAL,
    COMPLETION,
    FRACTIONAL_CLOCK,
    SERVED,
    SOJOURN_CLOCK,
    Floats,
    Memory,
    Record,
)


@jit
def progress(s: Record) -> None:
    """Move the readings of gained service and of fractional waiting up to now."""
    s["virtual"] += s["share"] * s["elapsed"]
    s["virtual_clock"] += (1.0 - s["share"]) * s["elapsed"]


@jit
def set_share(s: Record) -> None:
    """Set the rate for the present number of jobs."""
    number, servers = s["number"], s["servers"]
    s["share"] = 1.0 if number <= servers else servers / number
    s["busy"] = float(min(number, servers))


@jit
def finish_time(m: Memory, s: Record) -> float:
    """Return when the next job finishes, or infinity."""
    if s["number"] == 0:
        return np.inf
    duration = max(m.waiting[0]["key"] - s["virtual"], 0.0) / s["share"]
    events.keep_digits(m, s, duration, events.STARTING)
    return float(s["now"] + duration)


@jit
def deadline_time(m: Memory, s: Record) -> float:
    """Return when the next patience runs out, or infinity. Nobody waits at rate zero, so the queue clock stands."""
    if s["clock"] != FRACTIONAL_CLOCK:
        return events.first_deadline(m, s)
    if s["deadlines"] == 0 or s["share"] == 1.0:
        return np.inf
    duration = max(m.deadlines[0]["key"] - s["virtual_clock"], 0.0) / (1.0 - s["share"])
    return float(s["now"] + duration)


@jit
def keep_digits_of_tags(m: Memory, s: Record, sizes: Floats, patience: Floats) -> None:
    """Rebase if the arriving job's size or patience is too small beside the reading to which it is to be added."""
    small = sizes[s["next"]] < s["virtual"] * events.ARRIVING
    if s["clock"] == FRACTIONAL_CLOCK:
        small = small or 0.0 < patience[s["next"]] < s["virtual_clock"] * events.ARRIVING
    if small:
        events.rebase(m, s)


@jit
def arrive(m: Memory, s: Record, slot: int) -> None:
    """Let a job in."""
    job = m.jobs[slot]
    events.leave_queue(m, s, slot)
    heaps.push(m.waiting, m.waiting_place, s["waiting"], s["virtual"] + job["size"], job["number"], slot)
    s["waiting"] += 1
    end = job["patience"] + (s["now"] if s["clock"] == SOJOURN_CLOCK else s["virtual_clock"])
    if (s["clock"] == SOJOURN_CLOCK or s["clock"] == FRACTIONAL_CLOCK) and end < np.inf:
        heaps.push(m.deadlines, m.deadline_place, s["deadlines"], end, job["number"], slot)
        s["deadlines"] += 1


@jit
def leave(m: Memory, s: Record, slot: int, outcome: int) -> None:
    """Let a job go."""
    remaining = m.waiting[m.waiting_place[slot]]["key"] - s["virtual"]
    heaps.remove(m.waiting, m.waiting_place, s["waiting"], slot)
    s["waiting"] -= 1
    events.depart(m, s, slot, outcome, 0.0 if outcome == SERVED else remaining)


@jit
def complete(m: Memory, s: Record) -> None:
    """Let the next job go that finishes, and set the reading to its tag, so that equal tags finish together."""
    s["virtual"] = m.waiting[0]["key"]
    leave(m, s, m.waiting[0]["slot"], SERVED)


@jit_entry
def run_sharing(m: Memory, arrivals: Floats, sizes: Floats, patience: Floats) -> int:
    """Run processor sharing over a chunk of arrivals; returns a status."""
    s = m.system[0]
    events.begin_chunk(m, s)
    while True:
        finish = finish_time(m, s)
        event = events.next_event(s, arrivals, finish, deadline_time(m, s), np.inf)
        progress(s)
        if event < COMPLETION:
            return event
        if event == COMPLETION:
            complete(m, s)
        elif event == ABANDONMENT:
            leave(m, s, m.deadlines[0]["slot"], ABANDONED)
        elif event == ARRIVAL:
            keep_digits_of_tags(m, s, sizes, patience)
            arrive(m, s, events.admit(m, s, sizes, patience))
        set_share(s)
