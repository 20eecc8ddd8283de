"""Anchor policies: one job, the anchor, has a rate of its own; the others run SRPT on what is left.

Of the other jobs the n-1 of smallest remaining size run at rate one (``service``), the n-th at one minus the anchor's
rate (``partial``), and the rest wait. While no more than n jobs are present all of them run at rate one.
"""

import numpy as np

from queue_env.kernel import events, heaps, service
from queue_env.kernel.compile import jit, jit_apart, jit_entry
from queue_env.kernel.layout import (
    ABANDONED,
    ARRIVAL,
    AS_ANCHOR,
    AS_PARTIAL,
    BACKLOG,
    COMPLETION,
    DYNASPLIT,
    IN_QUEUE,
    IN_SERVICE,
    LOG_MARGIN,
    NETWORK,
    NO_CLOCK,
    POWER_MARGIN,
    SERVED,
    SPLIT,
    SWITCH,
    THRESHOLD,
    USER_RATE,
    Array,
    Floats,
    Ints,
    Memory,
    Record,
)
from queue_env.kernel.network import network_rate

COINCIDENCE = 1e-12  # share of the backlog below which two moments count as one

# ---- jobs at rate one, the partial job, the queue ------------------------------------------------


@jit
def serve(m: Memory, s: Record, slot: int, remaining: float) -> None:
    """Give a job rate one."""
    events.leave_queue(m, s, slot)
    events.set_clock(m, s, slot, 1.0)
    job = m.jobs[slot]
    job["where"] = IN_SERVICE
    job["remaining"] = remaining
    service.add(m, s, s["now"] + remaining, slot)


@jit
def unserve(m: Memory, s: Record, slot: int) -> float:
    """Take rate one from a job and return what remains of it."""
    remaining = service.remaining_of(m, s, slot)
    service.drop(m, s, slot)
    events.enter_queue(m, s, slot)
    return remaining


@jit
def wait(m: Memory, s: Record, slot: int, remaining: float) -> None:
    """Put a job into the queue."""
    job = m.jobs[slot]
    job["remaining"] = remaining
    job["where"] = IN_QUEUE
    events.set_clock(m, s, slot, 0.0)
    heaps.push(m.waiting, m.waiting_place, s["waiting"], remaining, job["number"], slot)
    s["waiting"] += 1


@jit
def unwait(m: Memory, s: Record, slot: int) -> float:
    """Take a job out of the queue and return what remains of it."""
    heaps.remove(m.waiting, m.waiting_place, s["waiting"], slot)
    s["waiting"] -= 1
    remaining: float = m.jobs[slot]["remaining"]
    return remaining


@jit
def settle_partial(s: Record) -> None:
    """Bring the partial job's remaining size up to now."""
    if s["partial_rate"] > 0.0:
        done = s["partial_rate"] * (s["now"] - s["partial_since"])
        s["partial_remaining"] = max(s["partial_remaining"] - done, 0.0)
    s["partial_since"] = s["now"]


@jit
def make_partial(m: Memory, s: Record, slot: int, remaining: float) -> None:
    """Put a queued job into the partial role, at rate zero until the rates are set."""
    m.jobs[slot]["where"] = AS_PARTIAL
    s["partial"] = slot
    s["partial_rate"] = 0.0
    s["partial_remaining"] = remaining
    s["partial_since"] = s["now"]
    s["partial_finish"] = np.inf


@jit
def unmake_partial(m: Memory, s: Record) -> float:
    """Take the partial role from its job and return what remains of it."""
    settle_partial(s)
    if s["partial_rate"] > 0.0:
        events.enter_queue(m, s, s["partial"])
    s["partial"] = -1
    s["partial_rate"] = 0.0
    s["partial_finish"] = np.inf
    remaining: float = s["partial_remaining"]
    return remaining


@jit
def insert(m: Memory, s: Record, slot: int, remaining: float) -> None:
    """Find a queued job its place among those that are not the anchor."""
    s["backlog"] += remaining
    if s["in_service"] < s["capacity"]:
        serve(m, s, slot, remaining)
        return
    if s["capacity"] > 0:
        worst = service.worst_slot(m, s)
        # Of equals the earlier keeps its server; a job that lost the anchor's role may be the earlier one.
        finish = service.finish_of(m, s, worst)
        mine = s["now"] + remaining
        if mine < finish or (mine == finish and m.jobs[slot]["number"] < m.jobs[worst]["number"]):
            displaced = unserve(m, s, worst)
            serve(m, s, slot, remaining)
            slot, remaining = worst, displaced
    if s["rate_kind"] == THRESHOLD:
        wait(m, s, slot, remaining)
        return
    partial = s["partial"]
    if partial >= 0:
        settle_partial(s)
        other = s["partial_remaining"]
        if remaining > other or (remaining == other and m.jobs[slot]["number"] > m.jobs[partial]["number"]):
            wait(m, s, slot, remaining)
            return
        wait(m, s, partial, unmake_partial(m, s))
    make_partial(m, s, slot, remaining)


@jit
def take_first(m: Memory, s: Record) -> tuple[int, float]:
    """Take the best job that does not run at rate one: the partial one, or the first of the queue."""
    slot = s["partial"]
    if slot >= 0:
        remaining = unmake_partial(m, s)
    else:
        slot = m.waiting[0]["slot"]
        remaining = unwait(m, s, slot)
    return slot, remaining


@jit
def refill(m: Memory, s: Record) -> None:
    """Fill the places that a departure or a new anchor has left."""
    while s["in_service"] < s["capacity"] and (s["partial"] >= 0 or s["waiting"] > 0):
        slot, remaining = take_first(m, s)
        serve(m, s, slot, remaining)
    if s["partial"] < 0 and s["waiting"] > 0 and s["rate_kind"] != THRESHOLD:
        slot, remaining = take_first(m, s)
        make_partial(m, s, slot, remaining)


@jit
def detach(m: Memory, s: Record, slot: int) -> float:
    """Take a job that is not the anchor from where it is, into the queue, and return what remains of it."""
    where = m.jobs[slot]["where"]
    if where == IN_SERVICE:
        remaining = unserve(m, s, slot)
    elif where == AS_PARTIAL:
        remaining = unmake_partial(m, s)
    else:
        remaining = unwait(m, s, slot)
    s["backlog"] -= remaining
    return remaining


# ---- the anchor's role ---------------------------------------------------------------------------


@jit
def margin(kind: float, number: float, size: float, spare: float) -> float:
    """Return the spare capacity that dynasplit keeps from an anchor; [D] eq. (53) is LOG_MARGIN with 2."""
    if kind == LOG_MARGIN:
        return float(spare / (number + np.log1p(size)))
    if kind == POWER_MARGIN:
        return float(spare / 2.0 * (1.0 + size) ** -number)
    return float(spare * number)


@jit
def settle_anchor(s: Record) -> None:
    """Bring the anchor's remaining size up to now; compensated, for it may change its rate at every event."""
    if s["anchor_rate"] > 0.0:
        done = -s["anchor_rate"] * (s["now"] - s["anchor_since"]) + s["anchor_low"]
        remaining = s["anchor_remaining"] + done
        s["anchor_low"] = done - (remaining - s["anchor_remaining"])
        s["anchor_remaining"] = max(remaining, 0.0)
    s["anchor_since"] = s["now"]


@jit
def make_anchor(m: Memory, s: Record, slot: int, remaining: float) -> None:
    """Give a queued job the anchor's role, at rate zero until the rates are set."""
    job = m.jobs[slot]
    job["where"] = AS_ANCHOR
    s["anchor"] = slot
    s["anchor_rate"] = 0.0
    s["anchor_remaining"] = remaining
    s["anchor_low"] = 0.0
    s["anchor_since"] = s["now"]
    # One that finished together with the last anchor goes whatever its rate is.
    s["anchor_finish"] = s["now"] if remaining == 0.0 else np.inf
    kind = s["rate_kind"]
    s["gamma"] = 1.0
    if kind == DYNASPLIT:
        s["gamma"] = min(1.0, s["spare"] - margin(m.parameters[0], m.parameters[1], job["size"], s["spare"]))
    elif kind == BACKLOG:
        s["threshold"] = m.parameters[0] * job["size"] ** m.parameters[1]


@jit
def unmake_anchor(m: Memory, s: Record) -> float:
    """Take the anchor's role from its job and return what remains of it."""
    settle_anchor(s)
    if s["anchor_rate"] > 0.0:
        events.enter_queue(m, s, s["anchor"])
    s["anchor"] = -1
    s["anchor_rate"] = 0.0
    s["anchor_finish"] = np.inf
    remaining: float = s["anchor_remaining"]
    return remaining


@jit_apart
def compact_giants(s: Record, jobs: Array, giants: Array, place: Ints) -> None:
    """Throw out the candidates that have left; there is room for three times the jobs present."""
    kept = 0
    for i in range(s["giants"]):
        entry = giants[i]
        key, tie, slot = entry["key"], entry["tie"], entry["slot"]
        if jobs[slot]["number"] == tie:
            # What is kept so far lies before i, so nothing unread is overwritten.
            heaps.push(giants, place, kept, key, tie, slot)
            kept += 1
    s["giants"] = kept


@jit_apart
def gather_giants(s: Record, jobs: Array, giants: Array, place: Ints) -> None:
    """Begin to keep the candidates in a heap: all jobs present but the anchor."""
    count = 0
    for slot in range(s["highest"]):
        job = jobs[slot]
        if job["number"] >= 0 and slot != s["anchor"]:
            heaps.push(giants, place, count, -job["size"], job["number"], slot)
            count += 1
    s["giants"] = count
    s["tracked"] = 1


@jit
def remember(m: Memory, s: Record, slot: int) -> None:
    """Note a job as a candidate for the anchor's role, where there are too many to look at all of them."""
    kind = s["rate_kind"]
    if kind != THRESHOLD and not s["tracked"]:
        if s["number"] > s["many"]:
            gather_giants(s, m.jobs, m.giants, m.giant_place)
        return
    if s["giants"] == len(m.giants) or s["giants"] > 3 * s["number"] + 64:
        compact_giants(s, m.jobs, m.giants, m.giant_place)
    job = m.jobs[slot]
    key = -job["size"] if kind != THRESHOLD else 0.0
    heaps.push(m.giants, m.giant_place, s["giants"], key, job["number"], slot)
    s["giants"] += 1


@jit
def larger(m: Memory, slot: int, best: int) -> int:
    """Return the job of larger original size, of two equal ones the earlier; `best` may be -1."""
    if best < 0:
        return slot
    job, other = m.jobs[slot], m.jobs[best]
    if job["size"] > other["size"] or (job["size"] == other["size"] and job["number"] < other["number"]):
        return slot
    return best


@jit
def largest_present(m: Memory, s: Record) -> int:
    """Look at all jobs but the anchor for the largest, or return -1."""
    best = -1
    for i in range(s["in_service"]):
        best = larger(m, m.service[i]["slot"], best)
    for i in range(s["waiting"]):
        best = larger(m, m.waiting[i]["slot"], best)
    if s["partial"] >= 0:
        best = larger(m, s["partial"], best)
    return best


@jit
def pop_giant(m: Memory, s: Record) -> int:
    """Take the best candidate for the anchor's role, or return -1."""
    if s["rate_kind"] != THRESHOLD and (not s["tracked"] or 2 * s["number"] < s["many"]):
        s["tracked"] = 0
        return largest_present(m, s)
    while s["giants"] > 0:
        entry = m.giants[0]
        slot, number = entry["slot"], entry["tie"]
        m.giant_place[slot] = 0
        heaps.remove(m.giants, m.giant_place, s["giants"], slot)
        s["giants"] -= 1
        if m.jobs[slot]["number"] == number:
            return int(slot)
    return -1


@jit
def choose_anchor(m: Memory, s: Record) -> None:
    """Hand the free role to the next candidate, which leaves its place to another job."""
    slot = pop_giant(m, s)
    if slot < 0:
        return
    # A large job of thresh-split waits for the role outside the queue.
    remaining = m.jobs[slot]["remaining"] if s["rate_kind"] == THRESHOLD else detach(m, s, slot)
    make_anchor(m, s, slot, remaining)


# ---- rates ---------------------------------------------------------------------------------------


@jit
def set_anchor_rate(m: Memory, s: Record, rate: float) -> None:
    """Change the anchor's rate, if it is another."""
    if s["anchor"] < 0 or rate == s["anchor_rate"]:
        return
    settle_anchor(s)
    slot = s["anchor"]
    if s["anchor_rate"] == 0.0:
        events.leave_queue(m, s, slot)
    elif rate == 0.0:
        events.enter_queue(m, s, slot)
    events.set_clock(m, s, slot, rate)
    s["anchor_rate"] = rate
    s["anchor_finish"] = np.inf
    if rate > 0.0:
        s["anchor_finish"] = s["now"] + s["anchor_remaining"] / rate


@jit
def set_partial_rate(m: Memory, s: Record, rate: float) -> None:
    """Change the partial job's rate, if it is another."""
    if s["partial"] < 0 or rate == s["partial_rate"]:
        return
    settle_partial(s)
    slot = s["partial"]
    if s["partial_rate"] == 0.0:
        events.leave_queue(m, s, slot)
    elif rate == 0.0:
        events.enter_queue(m, s, slot)
    events.set_clock(m, s, slot, rate)
    s["partial_rate"] = rate
    s["partial_finish"] = np.inf
    if rate > 0.0:
        s["partial_finish"] = s["now"] + s["partial_remaining"] / rate


@jit
def backlog_rate(s: Record) -> float:
    """Return one while the other jobs' work is below the threshold, else zero and the time of crossing it.

    At the threshold it is one: the work is falling, and will be below at once.
    """
    if s["backlog"] <= s["threshold"]:
        return 1.0
    s["switch_time"] = s["now"] + (s["backlog"] - s["threshold"]) / s["servers"]
    return 0.0


@jit
def start_idle_clocks(m: Memory, s: Record) -> None:
    """Let the clocks of an anchor and a partial job run that were left at rate zero."""
    if s["anchor"] >= 0 and s["anchor_rate"] == 0.0:
        events.set_clock(m, s, s["anchor"], 0.0)
    if s["partial"] >= 0 and s["partial_rate"] == 0.0:
        events.set_clock(m, s, s["partial"], 0.0)


@jit
def join_switch(m: Memory, s: Record) -> None:
    """Let a completion that coincides with the switch, but for rounding, come first.

    On one server the backlog stands at the threshold, so an arriving job completes just when it is reached again.
    """
    finish = min(service.first_finish(m, s), s["partial_finish"])
    if s["switch_time"] < finish < s["switch_time"] + COINCIDENCE * s["backlog"]:
        s["switch_time"] = finish


@jit
def set_rates(m: Memory, s: Record, user: object) -> None:
    """Set the anchor's and the partial job's rate for the state after an event."""
    s["switch_time"] = np.inf
    rate = 1.0
    kind = s["rate_kind"]
    if s["number"] > s["servers"] and s["anchor"] >= 0:
        rate = s["gamma"]
        if kind == BACKLOG:
            rate = backlog_rate(s)
        elif kind == NETWORK:
            rate = network_rate(m, s)
        elif kind == USER_RATE and user is not None:
            settle_anchor(s)
            size = m.jobs[s["anchor"]]["size"]
            backlog = max(s["backlog"], 0.0)
            asked = user(size, s["anchor_remaining"], backlog, s["number"], s["spare"], m.parameters)  # type: ignore[operator]
            if np.isnan(asked):
                s["invalid"] = 1
            rate = min(1.0, max(0.0, asked))
    set_anchor_rate(m, s, rate)
    set_partial_rate(m, s, 1.0 - rate)
    if s["clock"] != NO_CLOCK:
        start_idle_clocks(m, s)
    if s["switch_time"] < np.inf:
        join_switch(m, s)
    s["busy"] = s["in_service"] + s["anchor_rate"] + s["partial_rate"]


# ---- events --------------------------------------------------------------------------------------


@jit_apart
def recount_backlog(m: Memory, s: Record) -> None:
    """Sum the other jobs' work anew, so that rounding does not add up over chunks."""
    backlog = 0.0
    for i in range(s["in_service"]):
        backlog += m.service[i]["key"] - s["now"]
    for i in range(s["waiting"]):
        backlog += m.waiting[i]["key"]
    if s["partial"] >= 0:
        backlog += s["partial_remaining"] - s["partial_rate"] * (s["now"] - s["partial_since"])
    s["backlog"] = backlog


@jit
def least_to_start(m: Memory, s: Record) -> float:
    """Return the least that remains of a job at rate zero that may start at the next event."""
    least = np.inf
    if s["waiting"] > 0:
        least = m.waiting[0]["key"]
    if s["partial"] >= 0 and s["partial_rate"] == 0.0:
        least = min(least, s["partial_remaining"])
    if s["anchor"] >= 0 and s["anchor_rate"] == 0.0:
        least = min(least, s["anchor_remaining"])
    if s["rate_kind"] == THRESHOLD and s["giants"] > 0:
        least = min(least, m.jobs[m.giants[0]["slot"]]["remaining"])
    return float(least)


@jit
def progress(s: Record) -> None:
    """Take from the backlog, if the policy looks at it, what was done since the last event."""
    if s["rate_kind"] < BACKLOG:
        return
    s["backlog"] -= (s["in_service"] + s["partial_rate"]) * s["elapsed"]
    if s["in_service"] == 0 and s["partial"] < 0:
        s["backlog"] = 0.0


@jit
def queue_large(m: Memory, s: Record, slot: int) -> None:
    """Let a large job of thresh-split wait for its server."""
    events.set_clock(m, s, slot, 0.0)
    m.jobs[slot]["where"] = AS_ANCHOR
    remember(m, s, slot)


@jit
def arrive(m: Memory, s: Record, slot: int) -> None:
    """Let a job in: as the anchor if it finds none, or in place of a smaller one if the role is preemptive."""
    kind = s["rate_kind"]
    anchor = s["anchor"]
    job = m.jobs[slot]
    remaining = job["size"]
    eligible = kind != THRESHOLD or job["size"] > m.parameters[0]
    takes_role = eligible and (anchor < 0 or (kind == SPLIT and job["size"] > m.jobs[anchor]["size"]))
    if takes_role:
        if anchor >= 0:
            remaining = unmake_anchor(m, s)
        make_anchor(m, s, slot, job["size"])
        if anchor < 0:
            return
        slot = anchor
    elif eligible and kind == THRESHOLD:
        queue_large(m, s, slot)
        return
    insert(m, s, slot, remaining)
    if kind != THRESHOLD:
        remember(m, s, slot)


@jit
def first_to_finish(m: Memory, s: Record) -> int:
    """Return who finishes now; of several at one instant, the one that came first."""
    time = s["now"]
    slot = -1
    if s["in_service"] > 0 and service.first_finish(m, s) == time:
        slot = service.first_slot(m, s)
    if s["partial_finish"] == time and (slot < 0 or m.jobs[s["partial"]]["number"] < m.jobs[slot]["number"]):
        slot = s["partial"]
    if s["anchor_finish"] == time and (slot < 0 or m.jobs[s["anchor"]]["number"] < m.jobs[slot]["number"]):
        slot = s["anchor"]
    return slot


@jit
def leave(m: Memory, s: Record, slot: int, outcome: int) -> None:
    """Take a job out of the system, wherever it is, and hand on its role or place."""
    job = m.jobs[slot]
    held_role = slot == s["anchor"]
    if held_role:
        remaining = unmake_anchor(m, s)
    elif job["where"] == AS_ANCHOR:
        remaining = job["remaining"]
    else:
        remaining = detach(m, s, slot)
    job["waited"] += s["now"] - job["since"]
    events.depart(m, s, slot, outcome, 0.0 if outcome == SERVED else remaining)
    if held_role:
        choose_anchor(m, s)
    refill(m, s)


def _run_anchor(m: Memory, arrivals: Floats, sizes: Floats, patience: Floats, user: object) -> int:
    """Run an anchor policy over a chunk of arrivals; returns a status."""
    s = m.system[0]
    if s["fresh"]:
        recount_backlog(m, s)
    events.begin_chunk(m, s)
    while True:
        finish = min(service.first_finish(m, s), s["anchor_finish"], s["partial_finish"])
        deadline = events.first_deadline(m, s)
        event = events.next_event(s, arrivals, finish, deadline, s["switch_time"])
        if event < COMPLETION:
            return event
        progress(s)
        events.keep_digits(m, s, least_to_start(m, s), events.STARTING)
        if event == ARRIVAL:
            arrive(m, s, events.admit(m, s, sizes, patience))
        elif event == SWITCH:
            s["backlog"] = s["threshold"]
        else:
            completed = event == COMPLETION
            slot = first_to_finish(m, s) if completed else m.deadlines[0]["slot"]
            leave(m, s, slot, SERVED if completed else ABANDONED)
        set_rates(m, s, user)


run_anchor = jit_entry(_run_anchor)
