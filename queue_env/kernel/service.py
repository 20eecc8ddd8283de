"""The set of jobs in service at full rate, by the time at which each finishes.

With few servers it is one array sorted by finish, latest first; with many it is a heap by finish, beside one by who is
to be preempted first. A job in service keeps its finish, so nothing is touched while the clock moves.
"""

import numpy as np

from queue_env.kernel import heaps
from queue_env.kernel.compile import jit
from queue_env.kernel.layout import ANCHOR, LOSS, REMAINING, Array, Memory, Record


@jit
def copy_entry(entries: Array, target: int, source: int) -> None:
    """Copy one entry onto another."""
    to, entry = entries[target], entries[source]
    to["key"] = entry["key"]
    to["tie"] = entry["tie"]
    to["slot"] = entry["slot"]


@jit
def first_finish(m: Memory, s: Record) -> float:
    """Return when the next job in service finishes, or infinity."""
    if s["in_service"] == 0:
        return np.inf
    time: float = m.service[0 if s["dual"] else s["in_service"] - 1]["key"]
    return time


@jit
def first_slot(m: Memory, s: Record) -> int:
    """Return the slot of the job in service that finishes next."""
    return int(m.service[0 if s["dual"] else s["in_service"] - 1]["slot"])


@jit
def position(m: Memory, s: Record, slot: int) -> int:
    """Return where in the set a job in service lies."""
    if s["dual"]:
        return int(m.service_place[slot])
    i = 0
    while m.service[i]["slot"] != slot:
        i += 1
    return i


@jit
def insert_sorted(m: Memory, s: Record, finish: float, number: int, slot: int) -> None:
    """Insert into the sorted array; who finishes next is usually near its end."""
    i = s["in_service"]
    while i > 0:
        entry = m.service[i - 1]
        if entry["key"] > finish or (entry["key"] == finish and entry["tie"] > number):
            break
        copy_entry(m.service, i, i - 1)
        i -= 1
    here = m.service[i]
    here["key"] = finish
    here["tie"] = number
    here["slot"] = slot


@jit
def add(m: Memory, s: Record, finish: float, slot: int) -> None:
    """Add a job that finishes at `finish`."""
    job = m.jobs[slot]
    number = job["number"]
    if not s["dual"]:
        insert_sorted(m, s, finish, number, slot)
        s["in_service"] += 1
        return
    heaps.push(m.service, m.service_place, s["in_service"], finish, number, slot)
    s["in_service"] += 1
    if not s["preemptive"]:
        return
    order = s["order"]
    rank = finish
    if order == LOSS and job["key"] == 0.0:
        return
    if s["family"] != ANCHOR and order != REMAINING and order != LOSS:
        rank = job["key"]
    heaps.push(m.worst, m.worst_place, s["worst"], -rank, -number, slot)
    s["worst"] += 1


@jit
def drop(m: Memory, s: Record, slot: int) -> None:
    """Take a job out."""
    if s["dual"]:
        heaps.remove(m.service, m.service_place, s["in_service"], slot)
        s["in_service"] -= 1
        if m.worst_place[slot] >= 0:
            heaps.remove(m.worst, m.worst_place, s["worst"], slot)
            s["worst"] -= 1
        return
    for i in range(position(m, s, slot) + 1, s["in_service"]):
        copy_entry(m.service, i - 1, i)
    s["in_service"] -= 1


@jit
def worst_by_key(m: Memory, s: Record) -> int:
    """Return who has the largest index, the later job of a tie, by looking at all in service."""
    worst = -1
    for i in range(s["in_service"]):
        slot = m.service[i]["slot"]
        if worst < 0:
            worst = slot
            continue
        job, other = m.jobs[slot], m.jobs[worst]
        if job["key"] > other["key"] or (job["key"] == other["key"] and job["number"] > other["number"]):
            worst = slot
    return worst


@jit
def worst_slot(m: Memory, s: Record) -> int:
    """Return the slot of the job in service that is preempted first, or -1."""
    order = s["order"]
    if s["dual"]:
        return int(m.worst[0]["slot"]) if s["worst"] > 0 else -1
    if s["family"] == ANCHOR or order == REMAINING:
        return int(m.service[0]["slot"]) if s["in_service"] > 0 else -1
    if order == LOSS:
        for i in range(s["in_service"]):
            slot = m.service[i]["slot"]
            if m.jobs[slot]["key"] > 0.0:
                return int(slot)
        return -1
    return worst_by_key(m, s)


@jit
def remaining_of(m: Memory, s: Record, slot: int) -> float:
    """Return what remains of a job in service; if it has begun just now, what it began with, unrounded."""
    job = m.jobs[slot]
    if job["since"] == s["now"]:
        return float(job["remaining"])
    return float(max(finish_of(m, s, slot) - s["now"], 0.0) * s["speed"])


@jit
def finish_of(m: Memory, s: Record, slot: int) -> float:
    """Return when a job in service finishes."""
    time: float = m.service[position(m, s, slot)]["key"]
    return time
