"""Least attained service first: jobs level with one another share what the levels below leave them.

A level is a set of jobs with equal attained service. From the lowest up, levels run at rate one while their jobs fit
on the servers (the full levels); the next one shares what is left (the partial level); those above wait. A lower level
that catches up with the next one becomes one with it. Levels are a linked list; each has a heap of its jobs by size.
"""

import numpy as np

from queue_env.kernel import events, heaps, pairing
from queue_env.kernel.compile import jit, jit_apart, jit_entry
from queue_env.kernel.layout import (
    ABANDONED,
    ABANDONMENT,
    ARRIVAL,
    COMPLETION,
    NO_CLOCK,
    SERVED,
    SOJOURN_CLOCK,
    SWITCH,
    Floats,
    Memory,
    Record,
)

# ---- one level -----------------------------------------------------------------------------------


@jit
def settle(m: Memory, s: Record, level: int) -> None:
    """Bring a level's attained service, or its time in the queue, up to now."""
    here = m.levels[level]
    elapsed = s["now"] - here["since"]
    if here["rate"] > 0.0:
        here["attained"] += here["rate"] * elapsed
    else:
        here["idle"] += elapsed
    here["since"] = s["now"]


@jit_apart
def set_clocks(m: Memory, s: Record, level: int, rate: float) -> None:
    """Tell every job of a level its new rate, for its patience."""
    root = m.levels[level]["root"]
    slot = root
    while slot >= 0:
        events.set_clock(m, s, slot, rate)
        slot = pairing.following(m.jobs, root, slot)


@jit
def set_rate(m: Memory, s: Record, level: int, rate: float) -> None:
    """Change a level's rate, if it is another."""
    here = m.levels[level]
    if rate == here["rate"]:
        return
    settle(m, s, level)
    here["rate"] = rate
    if s["clock"] != NO_CLOCK and s["clock"] != SOJOURN_CLOCK:
        set_clocks(m, s, level, rate)


@jit
def schedule(m: Memory, s: Record, level: int) -> None:
    """Enter a full level, or enter it anew, in the heap of finish times."""
    if m.service_place[level] >= 0:
        heaps.remove(m.service, m.service_place, s["in_service"], level)
        s["in_service"] -= 1
    settle(m, s, level)
    here = m.levels[level]
    job = m.jobs[here["root"]]
    left = max(job["size"] - here["attained"], 0.0)
    heaps.push(m.service, m.service_place, s["in_service"], s["now"] + left, job["number"], level)
    s["in_service"] += 1


@jit
def unschedule(m: Memory, s: Record, level: int) -> None:
    """Take a level out of the heap of finish times."""
    heaps.remove(m.service, m.service_place, s["in_service"], level)
    s["in_service"] -= 1


# ---- the list of levels, and which of them run ---------------------------------------------------


@jit
def first_waiting(m: Memory, s: Record) -> int:
    """Return the lowest level that does not run, or -1."""
    if s["partial_level"] >= 0:
        return int(m.levels[s["partial_level"]]["above"])
    if s["high_full"] >= 0:
        return int(m.levels[s["high_full"]]["above"])
    return int(s["low_level"])


@jit
def promote(m: Memory, s: Record) -> bool:
    """Let the next level run, in full if it fits, else in part; returns whether anything changed."""
    level = s["partial_level"]
    room = s["servers"] - s["full_count"]
    if level < 0:
        level = first_waiting(m, s)
        if level < 0 or room == 0:
            return False
        s["partial_level"] = level
        return True
    if m.levels[level]["count"] > room:
        return False
    s["partial_level"] = -1
    set_rate(m, s, level, 1.0)
    schedule(m, s, level)
    s["high_full"] = level
    s["full_count"] += m.levels[level]["count"]
    return True


@jit
def demote(m: Memory, s: Record) -> None:
    """Take the highest full level out of the full ones; it becomes the partial one."""
    if s["partial_level"] >= 0:
        set_rate(m, s, s["partial_level"], 0.0)
    level = s["high_full"]
    unschedule(m, s, level)
    s["full_count"] -= m.levels[level]["count"]
    s["high_full"] = m.levels[level]["below"]
    s["partial_level"] = level


@jit
def allot(m: Memory, s: Record) -> None:
    """Decide which levels run, and how fast."""
    while s["full_count"] > s["servers"]:
        demote(m, s)
    while promote(m, s):
        pass
    level = s["partial_level"]
    room = s["servers"] - s["full_count"]
    if level >= 0 and room == 0:
        set_rate(m, s, level, 0.0)
        s["partial_level"] = -1
    elif level >= 0:
        set_rate(m, s, level, room / m.levels[level]["count"])
    s["busy"] = float(s["full_count"] if s["partial_level"] < 0 else s["servers"])


@jit
def unlink(m: Memory, s: Record, level: int) -> None:
    """Take a level out of the list and free it."""
    here = m.levels[level]
    if here["below"] >= 0:
        m.levels[here["below"]]["above"] = here["above"]
    else:
        s["low_level"] = here["above"]
    if here["above"] >= 0:
        m.levels[here["above"]]["below"] = here["below"]
    if s["partial_level"] == level:
        s["partial_level"] = -1
    if s["high_full"] == level:
        s["high_full"] = here["below"]
    m.level_free[s["level_free"]] = level
    s["level_free"] += 1


# ---- levels that meet ----------------------------------------------------------------------------


@jit
def time_to_meet(m: Memory, s: Record, level: int) -> float:
    """Return how long a running level needs to reach the one above it, or infinity."""
    if level < 0 or m.levels[level]["above"] < 0:
        return np.inf
    here, above = m.levels[level], m.levels[m.levels[level]["above"]]
    closing = here["rate"] - above["rate"]
    if closing <= 0.0:
        return np.inf
    gap = (above["attained"] + above["rate"] * (s["now"] - above["since"])) - (
        here["attained"] + here["rate"] * (s["now"] - here["since"])
    )
    return float(max(gap, 0.0) / closing)


@jit_apart
def retag(m: Memory, s: Record, level: int, target: int) -> None:
    """Tell the jobs of a level that they belong to another, whose time in the queue reads otherwise."""
    root = m.levels[level]["root"]
    difference = m.levels[level]["idle"] - m.levels[target]["idle"]
    rate = m.levels[target]["rate"]
    slot = root
    while slot >= 0:
        job = m.jobs[slot]
        job["level"] = target
        job["waited"] += difference
        if s["clock"] != NO_CLOCK and s["clock"] != SOJOURN_CLOCK:
            events.set_clock(m, s, slot, rate)
        slot = pairing.following(m.jobs, root, slot)


@jit
def merge(m: Memory, s: Record, lower: int) -> None:
    """Make a level and the one above it one; the jobs of the smaller move, so each moves O(log n) times."""
    upper = m.levels[lower]["above"]
    settle(m, s, lower)
    settle(m, s, upper)
    kept, gone = upper, lower
    if m.levels[lower]["count"] > m.levels[upper]["count"]:
        kept, gone = lower, upper
    retag(m, s, gone, kept)
    m.levels[kept]["attained"] = m.levels[upper]["attained"]
    if m.service_place[lower] >= 0:
        unschedule(m, s, lower)
        s["full_count"] -= m.levels[lower]["count"]
        s["high_full"] = m.levels[lower]["below"]
    one, other = m.levels[kept], m.levels[gone]
    one["root"] = pairing.meld(m.jobs, one["root"], other["root"])
    one["count"] += other["count"]
    unlink(m, s, gone)
    s["partial_level"] = kept


# ---- events --------------------------------------------------------------------------------------


@jit
def new_level(m: Memory, s: Record) -> int:
    """Put a new level of no attained service below all others, as a full one."""
    s["level_free"] -= 1
    level = m.level_free[s["level_free"]]
    here = m.levels[level]
    here["attained"] = 0.0
    here["since"] = s["now"]
    here["rate"] = 0.0
    here["idle"] = 0.0
    here["count"] = 0
    here["root"] = -1
    here["below"] = -1
    here["above"] = s["low_level"]
    if s["low_level"] >= 0:
        m.levels[s["low_level"]]["below"] = level
    s["low_level"] = level
    return int(level)


@jit
def lowest_is_new(m: Memory, s: Record) -> bool:
    """Return whether the lowest level has not been served yet, so that an arriving job is level with it."""
    level = s["low_level"]
    if level < 0:
        return False
    here = m.levels[level]
    return bool(here["attained"] == 0.0 and (here["rate"] == 0.0 or here["since"] == s["now"]))


@jit
def arrive(m: Memory, s: Record, slot: int) -> None:
    """Let a job in, at the lowest level."""
    fresh = not lowest_is_new(m, s)
    level = new_level(m, s) if fresh else s["low_level"]
    settle(m, s, level)
    here = m.levels[level]
    job = m.jobs[slot]
    # The lowest level is always served, so a job starts when it arrives.
    events.leave_queue(m, s, slot)
    job["level"] = level
    job["waited"] = -here["idle"]
    pairing.clear(m.jobs, slot)
    here["root"] = pairing.meld(m.jobs, here["root"], slot)
    here["count"] += 1
    events.set_clock(m, s, slot, here["rate"])
    if fresh:
        set_rate(m, s, level, 1.0)
        if s["high_full"] < 0:
            s["high_full"] = level
    if fresh or m.service_place[level] >= 0:
        s["full_count"] += 1
        schedule(m, s, level)


@jit
def leave(m: Memory, s: Record, slot: int, outcome: int) -> None:
    """Let a job go."""
    job = m.jobs[slot]
    level = job["level"]
    settle(m, s, level)
    here = m.levels[level]
    if outcome == SERVED:
        # Set to the size, so that equal sizes in a level finish together.
        here["attained"] = job["size"]
    job["waited"] += here["idle"]
    full = m.service_place[level] >= 0
    here["root"] = pairing.take_out(m.jobs, here["root"], slot)
    here["count"] -= 1
    events.depart(m, s, slot, outcome, 0.0 if outcome == SERVED else job["size"] - here["attained"])
    if full:
        s["full_count"] -= 1
    if here["count"] > 0 and full:
        schedule(m, s, level)
    elif here["count"] == 0:
        if full:
            unschedule(m, s, level)
        unlink(m, s, level)


@jit
def time_to_finish(m: Memory, s: Record) -> float:
    """Return how long the first job of the partial level needs to finish, or infinity."""
    level = s["partial_level"]
    if level < 0:
        return np.inf
    here = m.levels[level]
    attained = here["attained"] + here["rate"] * (s["now"] - here["since"])
    return float(max(m.jobs[here["root"]]["size"] - attained, 0.0) / here["rate"])


@jit
def complete(m: Memory, s: Record) -> None:
    """Let the next job go that finishes."""
    level = s["partial_level"]
    if s["in_service"] > 0 and m.service[0]["key"] == s["now"]:
        level = m.service[0]["slot"]
    leave(m, s, m.levels[level]["root"], SERVED)


@jit_entry
def run_levels(m: Memory, arrivals: Floats, sizes: Floats, patience: Floats) -> int:
    """Run least attained service over a chunk of arrivals; returns a status."""
    s = m.system[0]
    events.begin_chunk(m, s)
    while True:
        partial = time_to_finish(m, s)
        full_meets = time_to_meet(m, s, s["high_full"])
        partial_meets = time_to_meet(m, s, s["partial_level"])
        meets = min(full_meets, partial_meets)
        events.keep_digits(m, s, min(partial, meets), events.STARTING)
        finish = s["now"] + partial
        if s["in_service"] > 0:
            finish = min(finish, m.service[0]["key"])
        event = events.next_event(s, arrivals, finish, events.first_deadline(m, s), s["now"] + meets)
        if event < COMPLETION:
            return event
        if event == COMPLETION:
            complete(m, s)
        elif event == ABANDONMENT:
            leave(m, s, m.deadlines[0]["slot"], ABANDONED)
        elif event == SWITCH:
            merge(m, s, s["high_full"] if full_meets <= partial_meets else s["partial_level"])
        elif event == ARRIVAL:
            arrive(m, s, events.admit(m, s, sizes, patience))
        allot(m, s)
