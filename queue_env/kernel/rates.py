"""Allocations handed in: a user's function sets the rate of every job after every event. O(jobs present) an event."""

import numpy as np

from queue_env.kernel import events
from queue_env.kernel.compile import jit, jit_entry
from queue_env.kernel.layout import (
    ABANDONED,
    ABANDONMENT,
    ARRIVAL,
    BAD_RULE,
    COMPLETION,
    SERVED,
    SWITCH,
    Floats,
    Memory,
    Record,
)

SIZES, LEFT, AGES, RATES = 0, 1, 2, 3  # rows of the scratch table, jobs in arrival order
TOLERANCE = 1e-9  # by which the sum of rates may exceed the number of servers
MOST_STALLED = 100  # holds, beyond one for each job, that may be too short for the clock to move


@jit
def progress(m: Memory, s: Record, event: int) -> None:
    """Bring every job's remaining size up to now; all that finish together have nothing left."""
    for i in range(s["number"]):
        job = m.jobs[m.order[i]]
        together = event == COMPLETION and job["key"] > 0.0 and job["remaining"] / job["key"] == s["shortest"]
        left = max(job["remaining"] - job["key"] * s["elapsed"], 0.0)
        job["remaining"] = 0.0 if together else left


@jit
def show(m: Memory, s: Record) -> None:
    """Fill the table that the user's function reads."""
    for i in range(s["number"]):
        job = m.jobs[m.order[i]]
        m.scratch[SIZES, i] = job["size"]
        m.scratch[LEFT, i] = job["remaining"]
        m.scratch[AGES, i] = s["now"] - job["arrival"]
        m.scratch[RATES, i] = 0.0


@jit
def change_rate(m: Memory, s: Record, slot: int, rate: float) -> None:
    """Give a job its rate, kept in ``key``, and keep the books of its waiting and patience."""
    job = m.jobs[slot]
    if job["key"] == 0.0 and rate > 0.0:
        events.leave_queue(m, s, slot)
    elif job["key"] > 0.0 and rate == 0.0:
        events.enter_queue(m, s, slot)
    events.set_clock(m, s, slot, rate)
    job["key"] = rate


@jit
def take_up(m: Memory, s: Record) -> bool:
    """Check the rates that the user's function has set and give them to the jobs; returns whether they are allowed."""
    total = 0.0
    for i in range(s["number"]):
        rate = m.scratch[RATES, i]
        if not 0.0 <= rate <= 1.0:
            return False
        total += rate
        change_rate(m, s, m.order[i], rate)
    s["busy"] = total
    return bool(total <= s["servers"] * (1.0 + TOLERANCE))


@jit
def finish_time(m: Memory, s: Record) -> float:
    """Return when the next job finishes, or infinity."""
    shortest = np.inf
    for i in range(s["number"]):
        job = m.jobs[m.order[i]]
        if job["remaining"] == 0.0:
            # It finished together with the last one, and goes whatever its rate is now.
            shortest = 0.0
        elif job["key"] > 0.0:
            shortest = min(shortest, job["remaining"] / job["key"])
    s["shortest"] = shortest
    events.keep_digits(m, s, shortest, events.STARTING)
    return float(s["now"] + shortest)


@jit
def first_finished(m: Memory) -> int:
    """Return which job, in arrival order, has nothing left."""
    i = 0
    while m.jobs[m.order[i]]["remaining"] > 0.0:
        i += 1
    return i


@jit
def leave(m: Memory, s: Record, index: int, outcome: int) -> None:
    """Let a job go and close the gap in the order."""
    slot = m.order[index]
    job = m.jobs[slot]
    if job["key"] == 0.0:
        job["waited"] += s["now"] - job["since"]
    events.depart(m, s, slot, outcome, 0.0 if outcome == SERVED else job["remaining"])
    for i in range(index, s["number"]):
        m.order[i] = m.order[i + 1]


@jit
def index_in_order(m: Memory, slot: int) -> int:
    """Return a job's place in arrival order."""
    i = 0
    while m.order[i] != slot:
        i += 1
    return i


def _run_rates(m: Memory, arrivals: Floats, sizes: Floats, patience: Floats, user: object) -> int:
    """Run a user's allocation over a chunk of arrivals; returns a status."""
    s = m.system[0]
    events.begin_chunk(m, s)
    while True:
        finish = finish_time(m, s)
        event = events.next_event(s, arrivals, finish, events.first_deadline(m, s), s["switch_time"])
        progress(m, s, event)
        if event < COMPLETION:
            return event
        s["stalled"] = s["stalled"] + 1 if event == SWITCH and s["elapsed"] == 0.0 else 0
        if event == COMPLETION:
            leave(m, s, first_finished(m), SERVED)
        elif event == ABANDONMENT:
            leave(m, s, index_in_order(m, m.deadlines[0]["slot"]), ABANDONED)
        elif event == ARRIVAL:
            slot = events.admit(m, s, sizes, patience)
            m.jobs[slot]["key"] = 0.0
            m.order[s["number"] - 1] = slot
        s["switch_time"] = np.inf
        s["busy"] = 0.0
        number = s["number"]
        if number > 0:
            show(m, s)
            sizes_, left, ages, rates = (m.scratch[SIZES], m.scratch[LEFT], m.scratch[AGES], m.scratch[RATES])
            hold = user(sizes_[:number], left[:number], ages[:number], s["servers"], m.parameters, rates[:number])  # type: ignore[operator]
            if not take_up(m, s) or not hold > 0.0 or s["stalled"] > number + MOST_STALLED:
                return BAD_RULE
            s["switch_time"] = s["now"] + hold


run_rates = jit_entry(_run_rates)
