"""Index policies: the n jobs best by an index are served at rate one.

A job's index may fall while it is served and stands while it waits, so an arrival is the only moment of preemption.
"""

import numpy as np

from queue_env.kernel import events, heaps, service
from queue_env.kernel.compile import jit, jit_apart, jit_entry
from queue_env.kernel.layout import (
    ABANDONED,
    ABANDONMENT,
    ARRIVAL,
    COMPLETION,
    EARLIEST,
    IN_QUEUE,
    IN_SERVICE,
    LATEST,
    LOSS,
    REMAINING,
    SERVED,
    SIZE,
    USER_DYNAMIC,
    Floats,
    Memory,
    Record,
)


@jit
def index_of(m: Memory, s: Record, slot: int, remaining: float, user: object) -> float:
    """Return a job's index: smaller goes first."""
    order = s["order"]
    job = m.jobs[slot]
    if order == REMAINING:
        return remaining
    if order == SIZE:
        return float(job["size"])
    if order == EARLIEST:
        return float(job["epoch"])
    if order == LATEST:
        return -float(job["epoch"])
    if order == LOSS:
        return 1.0 if job["size"] > m.parameters[0] else 0.0
    if user is not None:
        index: float = user(job["size"], remaining, float(job["number"]), m.parameters)  # type: ignore[operator]
        if np.isnan(index):
            s["invalid"] = 1
        return index
    return 0.0


@jit
def begin(m: Memory, s: Record, slot: int) -> None:
    """Put a job into service."""
    job = m.jobs[slot]
    duration = job["remaining"] / s["speed"]
    events.leave_queue(m, s, slot)
    events.set_clock(m, s, slot, 1.0)
    job["where"] = IN_SERVICE
    service.add(m, s, s["now"] + duration, slot)
    s["busy"] += s["speed"]


@jit
def end(m: Memory, s: Record, slot: int) -> None:
    """Take a job out of service, with what remains of it."""
    job = m.jobs[slot]
    job["remaining"] = service.remaining_of(m, s, slot)
    service.drop(m, s, slot)
    s["busy"] -= s["speed"]
    events.enter_queue(m, s, slot)


@jit
def wait(m: Memory, s: Record, slot: int, user: object) -> None:
    """Put a job into the queue."""
    job = m.jobs[slot]
    events.set_clock(m, s, slot, 0.0)
    job["where"] = IN_QUEUE
    job["key"] = index_of(m, s, slot, job["remaining"], user)
    heaps.push(m.waiting, m.waiting_place, s["waiting"], job["key"], job["number"], slot)
    s["waiting"] += 1


@jit
def refill(m: Memory, s: Record) -> None:
    """Give a free server to the best waiting job."""
    if s["waiting"] > 0 and s["in_service"] < s["capacity"]:
        slot = m.waiting[0]["slot"]
        events.keep_digits(m, s, m.jobs[slot]["remaining"] / s["speed"], events.STARTING)
        heaps.remove(m.waiting, m.waiting_place, s["waiting"], slot)
        s["waiting"] -= 1
        begin(m, s, slot)


@jit_apart
def refresh_indices(m: Memory, s: Record, user: object) -> None:
    """Recompute the user's index of every job in service."""
    for i in range(s["in_service"]):
        entry = m.service[i]
        remaining = (entry["key"] - s["now"]) * s["speed"]
        m.jobs[entry["slot"]]["key"] = index_of(m, s, entry["slot"], remaining, user)


@jit
def whom_to_preempt(m: Memory, s: Record, slot: int, user: object) -> int:
    """Return the job in service that yields to the arriving one, or -1. An equal one keeps its server."""
    job = m.jobs[slot]
    order = s["order"]
    if not s["preemptive"]:
        return -1
    if order == USER_DYNAMIC:
        refresh_indices(m, s, user)
        worst = service.worst_by_key(m, s)
    else:
        worst = service.worst_slot(m, s)
    if worst < 0:
        return -1
    if order == REMAINING:
        better = s["now"] + job["size"] / s["speed"] < service.finish_of(m, s, worst)
    else:
        better = job["key"] < m.jobs[worst]["key"]
    return worst if better else -1


@jit
def arrive(m: Memory, s: Record, slot: int, user: object) -> None:
    """Serve the arriving job, in place of another if need be, or let it wait, or lose it."""
    job = m.jobs[slot]
    job["key"] = index_of(m, s, slot, job["size"], user)
    if s["in_service"] < s["capacity"]:
        begin(m, s, slot)
        return
    loser = whom_to_preempt(m, s, slot, user)
    if loser >= 0:
        end(m, s, loser)
        begin(m, s, slot)
    else:
        loser = slot
    if s["lossy"]:
        events.abandon_from_queue(m, s, loser)
    else:
        wait(m, s, loser, user)


@jit
def abandon(m: Memory, s: Record, slot: int) -> None:
    """Let a job go whose patience has run out."""
    job = m.jobs[slot]
    if job["where"] == IN_SERVICE:
        end(m, s, slot)
        events.depart(m, s, slot, ABANDONED, job["remaining"])
        refill(m, s)
        return
    heaps.remove(m.waiting, m.waiting_place, s["waiting"], slot)
    s["waiting"] -= 1
    events.abandon_from_queue(m, s, slot)


@jit
def complete(m: Memory, s: Record) -> None:
    """Let the next job go that finishes."""
    slot = service.first_slot(m, s)
    service.drop(m, s, slot)
    s["busy"] -= s["speed"]
    events.depart(m, s, slot, SERVED, 0.0)
    refill(m, s)


def _run_index(m: Memory, arrivals: Floats, sizes: Floats, patience: Floats, user: object) -> int:
    """Run an index policy over a chunk of arrivals; returns a status."""
    s = m.system[0]
    events.begin_chunk(m, s)
    while True:
        finish = service.first_finish(m, s)
        event = events.next_event(s, arrivals, finish, events.first_deadline(m, s), np.inf)
        if event == COMPLETION:
            complete(m, s)
        elif event == ABANDONMENT:
            abandon(m, s, m.deadlines[0]["slot"])
        elif event == ARRIVAL:
            arrive(m, s, events.admit(m, s, sizes, patience), user)
        else:
            return event


run_index = jit_entry(_run_index)
