"""What an observation shows: which jobs are in the table, and their features as numbers."""

import math

import numpy as np

from queue_env.kernel.compile import jit, jit_apart
from queue_env.kernel.env_crowd import largest
from queue_env.kernel.env_layout import (
    BY_ARRIVAL,
    BY_REMAINING,
    COMPACT,
    LIMIT,
    RAW,
    TABLE,
)
from queue_env.kernel.layout import NO_CLOCK, Array, Floats, Record, Slots

TINY_LOG = 1e-8  # below, ln(1 + x) is x in float32
HALF_ROOT = np.float64(math.sqrt(0.5)).view(np.int64).item()
LN_2 = math.log(2.0)


@jit
def cut(value: float) -> float:
    """Return the value within the bounds of an observation."""
    return min(max(value, 0.0), LIMIT)


@jit
def log_above_one(x: float) -> float:
    """Return ln(1 + x) for x >= 0, to more digits than float32 has, with fewer steps than all of them take.

    With 1 + x = 2^k m, where m lies between the roots of 1/2 and 2, it is k ln 2 + 2 artanh((m-1)/(m+1)).
    """
    if x < TINY_LOG:
        return x
    bits: Record = np.float64(1.0 + x).view(np.int64)
    k = (bits - HALF_ROOT) >> 52
    m = np.int64(bits - (k << 52)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    q = s * s
    series = 1.0 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * (1 / 9 + q * (1 / 11)))))
    return float(k * LN_2 + 2.0 * s * series)


@jit
def compressed(value: float, unit: float) -> float:
    """Return ln(1 + value/unit)."""
    return log_above_one(cut(value / unit))


# ---- which jobs ----------------------------------------------------------------------------------


@jit
def mark(jobs: Array, slot: int, free: int) -> int:
    """Mark a job for the table, if a row is free; returns how many are free then."""
    if free == 0 or jobs[slot]["mark"]:
        return free
    jobs[slot]["mark"] = 1
    return free - 1


@jit
def mark_notable(c: Record, s: Record, jobs: Array, orders: Slots, most: int) -> int:
    """Mark those shown whatever remains of them: the anchor, the largest, the newest, the n oldest."""
    number = s["number"]
    free = c["slots"]
    if c["known"]:
        free = mark(jobs, s["anchor"], free)
        free = mark(jobs, most, free)
    free = mark(jobs, orders[BY_ARRIVAL, number - 1], free)
    for i in range(min(c["servers"], number)):
        free = mark(jobs, orders[BY_ARRIVAL, i], free)
    return int(free)


@jit_apart
def fill_table(c: Record, s: Record, jobs: Array, orders: Slots, most: int) -> None:
    """Choose the jobs to show: all if they fit, else the notable ones and then those of smallest remaining size.

    They come in SRPT order. Where sizes are hidden it is the order of arrival, and the latest arrivals fill up.
    """
    number, slots = s["number"], c["slots"]
    order = orders[BY_REMAINING if c["known"] else BY_ARRIVAL]
    table = orders[TABLE]
    if number <= slots:
        for i in range(number):
            table[i] = order[i]
        s["shown"] = number
        return
    free = mark_notable(c, s, jobs, orders, most)
    for i in range(number):
        if free == 0:
            break
        free = mark(jobs, order[i] if c["known"] else order[number - 1 - i], free)
    count = 0
    for i in range(number):
        job = jobs[order[i]]
        if job["mark"]:
            table[count] = order[i]
            count += 1
            job["mark"] = 0
    s["shown"] = count


# ---- as numbers ----------------------------------------------------------------------------------


@jit
def log_size(c: Record, job: Record) -> float:
    """Return the compressed size of a job, computed once."""
    if job["log_size"] < 0.0:
        job["log_size"] = compressed(job["size"], c["unit"])
    value: float = job["log_size"]
    return value


@jit
def describe_system(c: Record, s: Record, jobs: Array, orders: Slots, elapsed: float, view: Floats) -> None:
    """Write the features of the system: jobs present, total remaining work, anchor's size, time passed, delta."""
    raw = c["view"] == RAW
    known = c["known"] == 1
    work = 0.0
    if known:
        for i in range(s["number"]):
            work += jobs[orders[BY_REMAINING, i]]["remaining"]
    size = 0.0
    if s["anchor"] >= 0 and known:
        size = jobs[s["anchor"]]["size"]
    view[0] = s["number"] if raw else log_above_one(float(s["number"]))
    view[1] = cut(work) if raw else compressed(work, c["unit"])
    view[2] = cut(size)
    if not raw:
        view[2] = log_size(c, jobs[s["anchor"]]) if size > 0.0 else 0.0
    view[3] = cut(elapsed) if raw else compressed(elapsed, c["unit"])
    view[4] = c["spare"]


@jit
def describe_job(c: Record, s: Record, jobs: Array, slot: int, most: int, row: Floats) -> None:
    """Write the features of a job of the table."""
    job = jobs[slot]
    age = s["now"] - job["arrival"]
    i = 0
    if c["view"] == RAW:
        if c["known"]:
            row[0] = cut(job["remaining"])
            row[1] = cut(job["size"])
            i = 2
        row[i] = cut(age)
        row[i + 1] = cut(job["attained"])
        if c["clock"] != NO_CLOCK:
            row[i + 2] = cut(job["patience"])
    else:
        unit = c["unit"]
        if c["known"]:
            # Most jobs have not been served yet.
            row[1] = log_size(c, job)
            row[0] = row[1] if job["attained"] == 0.0 else compressed(job["remaining"], unit)
            i = 2
        row[i] = compressed(age, unit)
        row[i + 1] = 0.0 if job["attained"] == 0.0 else compressed(job["attained"], unit)
        if c["clock"] != NO_CLOCK:
            row[i + 2] = compressed(job["patience"], unit)
    i += 2
    if c["clock"] != NO_CLOCK:
        i += 1
    if c["known"]:
        row[i] = slot == s["anchor"]
        row[i + 1] = slot == most
        i += 2
    row[i] = job["rate"] > 0.0
    row[i + 1] = 1.0


@jit
def describe_small(c: Record, s: Record, jobs: Array, slot: int, row: Floats) -> None:
    """Write the features of a job of the compact view."""
    job = jobs[slot]
    row[1] = log_size(c, job)
    row[0] = row[1] if job["attained"] == 0.0 else compressed(job["remaining"], c["unit"])
    row[2] = compressed(s["now"] - job["arrival"], c["unit"])
    row[3] = slot == s["anchor"]
    row[4] = 1.0


@jit
def describe_few(c: Record, s: Record, jobs: Array, orders: Slots, view: Floats) -> None:
    """Write the anchor's row and those of the n+1 jobs of smallest remaining size."""
    width = c["features"]
    if s["number"] > 0:
        describe_small(c, s, jobs, s["anchor"], view[5 : 5 + width])
    for i in range(min(s["number"], c["servers"] + 1)):
        start = 5 + (i + 1) * width
        describe_small(c, s, jobs, orders[BY_REMAINING, i], view[start : start + width])


@jit_apart
def observe(c: Record, s: Record, jobs: Array, orders: Slots, elapsed: float, view: Floats) -> None:
    """Write an observation."""
    for i in range(len(view)):
        view[i] = 0.0
    describe_system(c, s, jobs, orders, elapsed, view)
    if c["view"] == COMPACT:
        s["shown"] = 0
        describe_few(c, s, jobs, orders, view)
        return
    most = largest(s, jobs, orders) if c["known"] else -1
    if s["number"] > 0:
        fill_table(c, s, jobs, orders, most)
    else:
        s["shown"] = 0
    width = c["features"]
    for i in range(s["shown"]):
        start = 5 + i * width
        describe_job(c, s, jobs, orders[TABLE, i], most, view[start : start + width])
