"""The jobs present in one system: their slots in two orders, and how they come and go."""

import numpy as np

from queue_env.kernel.compile import jit, jit_apart
from queue_env.kernel.env_layout import (
    BY_ARRIVAL,
    BY_REMAINING,
    SERVED,
)
from queue_env.kernel.layout import Array, Record, Slots


@jit
def goes_before(jobs: Array, slot: int, other: int) -> bool:
    """Return whether a job comes before another in SRPT order."""
    job, rival = jobs[slot], jobs[other]
    if job["remaining"] != rival["remaining"]:
        return bool(job["remaining"] < rival["remaining"])
    return bool(job["number"] < rival["number"])


@jit
def sift(jobs: Array, order: Slots, place: int) -> None:
    """Move a job towards the front of the SRPT order, to where it belongs."""
    slot = order[place]
    while place > 0 and goes_before(jobs, slot, order[place - 1]):
        order[place] = order[place - 1]
        place -= 1
    order[place] = slot


@jit
def restore_order(s: Record, jobs: Array, orders: Slots) -> None:
    """Put the jobs into SRPT order again after some have been served; those are the only ones out of place."""
    order = orders[BY_REMAINING]
    for place in range(1, s["number"]):
        sift(jobs, order, place)


@jit
def enter(s: Record, jobs: Array, orders: Slots, size: float, patience: float) -> int:
    """Give an arriving job a slot, a place in both orders, and the anchor's role if nobody has it."""
    last = s["number"]
    slot = orders[BY_ARRIVAL, last]
    job = jobs[slot]
    job["number"] = s["arrived"]
    job["size"] = size
    job["remaining"] = size
    job["attained"] = 0.0
    job["arrival"] = s["now"]
    job["rate"] = 0.0
    job["desired"] = -np.inf
    job["patience"] = patience
    job["busy_time"] = 0.0
    job["started"] = np.nan
    job["mark"] = 0
    job["log_size"] = -1.0
    orders[BY_REMAINING, last] = slot
    sift(jobs, orders[BY_REMAINING], last)
    s["arrived"] += 1
    s["number"] += 1
    if s["anchor"] < 0:
        s["anchor"] = slot
    return int(slot)


@jit
def take_out(order: Slots, count: int, slot: int) -> None:
    """Close the gap that a job leaves in an order."""
    place = 0
    while order[place] != slot:
        place += 1
    for i in range(place, count - 1):
        order[i] = order[i + 1]


@jit
def largest(s: Record, jobs: Array, orders: Slots) -> int:
    """Return the slot of the largest original size present, of two equal ones the earlier, or -1."""
    best = -1
    size = -1.0
    for i in range(s["number"]):
        slot = orders[BY_ARRIVAL, i]
        if jobs[slot]["size"] > size:
            size = jobs[slot]["size"]
            best = slot
    return int(best)


@jit_apart
def leave(s: Record, jobs: Array, orders: Slots, slot: int) -> None:
    """Take a job out of the system and hand on the anchor's role."""
    number = s["number"]
    take_out(orders[BY_REMAINING], number, slot)
    take_out(orders[BY_ARRIVAL], number, slot)
    if jobs[slot]["rate"] > 0.0:
        take_out(orders[SERVED], s["served"], slot)
        s["served"] -= 1
    jobs[slot]["rate"] = 0.0
    orders[BY_ARRIVAL, number - 1] = slot
    s["number"] -= 1
    if slot == s["anchor"]:
        s["anchor"] = largest(s, jobs, orders)


@jit
def backlog_without(s: Record, jobs: Array, orders: Slots, slot: int) -> float:
    """Return the remaining work of all jobs but one."""
    work = 0.0
    for i in range(s["number"]):
        other = orders[BY_REMAINING, i]
        if other != slot:
            work += jobs[other]["remaining"]
    return work


@jit_apart
def clear(s: Record) -> None:
    """Empty the system."""
    s["number"] = 0
    s["served"] = 0
    s["anchor"] = -1
    s["shown"] = 0
