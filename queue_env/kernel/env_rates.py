"""Rates from actions: the projection of desired rates, the anchor's rate, priorities, and what is left over."""

import numpy as np

from queue_env.kernel.compile import jit, jit_apart
from queue_env.kernel.env_layout import (
    ALLOCATION,
    ANCHOR_RATE,
    BY_ARRIVAL,
    BY_REMAINING,
    CHOSEN,
    PRIORITY,
    SERVED,
    TINY,
)
from queue_env.kernel.layout import Array, Record, Slots

MOST_STEPS = 100


@jit
def between(low: float, value: float, high: float) -> float:
    """Return the value, cut to a range."""
    return min(max(value, low), high)


# ---- who is served -------------------------------------------------------------------------------


@jit
def stop_service(s: Record, jobs: Array, orders: Slots) -> None:
    """Set all rates to zero."""
    for i in range(s["served"]):
        jobs[orders[SERVED, i]]["rate"] = 0.0
    s["served"] = 0


@jit
def serve(s: Record, jobs: Array, orders: Slots, slot: int, rate: float) -> None:
    """Give a job that has none a rate, and list it."""
    if rate < TINY:
        return
    jobs[slot]["rate"] = rate
    orders[SERVED, s["served"]] = slot
    s["served"] += 1


@jit
def gather_served(s: Record, jobs: Array, orders: Slots) -> None:
    """List the jobs that have been given a rate."""
    for i in range(s["number"]):
        slot = orders[BY_ARRIVAL, i]
        rate = jobs[slot]["rate"]
        jobs[slot]["rate"] = 0.0
        serve(s, jobs, orders, slot, rate)


# ---- desired rates -------------------------------------------------------------------------------


@jit_apart
def pivot_of(s: Record, jobs: Array, orders: Slots, servers: int) -> float:
    """Return the n-th largest desired rate, or one if none is above one: the multiplier lies in [pivot-1, pivot]."""
    top = -np.inf
    for i in range(s["number"]):
        top = max(top, jobs[orders[BY_ARRIVAL, i]]["desired"])
    if top <= 1.0:
        return 1.0
    taken = 0
    while True:
        # All jobs at the largest value not yet taken are taken.
        below = -np.inf
        for i in range(s["number"]):
            desired = jobs[orders[BY_ARRIVAL, i]]["desired"]
            if desired == top:
                taken += 1
            elif below < desired < top:
                below = desired
        if taken >= servers:
            return float(top)
        top = below


@jit_apart
def project(s: Record, jobs: Array, orders: Slots, servers: int) -> None:
    """Set the rates nearest to the desired ones with 0 <= v <= 1 and a sum of at most n.

    They are v = min(max(a - m, 0), 1) with the multiplier m >= 0 of the sum, zero if that is small enough. It is found
    by Newton's method on a piecewise linear function, relative to a pivot so that huge values lose no digits.
    """
    number = s["number"]
    total = 0.0
    for i in range(number):
        job = jobs[orders[BY_ARRIVAL, i]]
        job["rate"] = between(0.0, job["desired"], 1.0)
        total += job["rate"]
    if total <= servers:
        return
    pivot = pivot_of(s, jobs, orders, servers)
    for i in range(number):
        job = jobs[orders[BY_ARRIVAL, i]]
        job["key"] = between(-1.0, job["desired"] - pivot, 1.0)
    low, high, multiplier = -1.0, 0.0, -1.0
    for _ in range(MOST_STEPS):
        total = 0.0
        inside = 0
        for i in range(number):
            gap = jobs[orders[BY_ARRIVAL, i]]["key"] - multiplier
            total += between(0.0, gap, 1.0)
            if 0.0 < gap < 1.0:
                inside += 1
        excess = total - servers
        if abs(excess) <= 1e-14 * servers:
            break
        if excess > 0.0:
            low = multiplier
        else:
            high = multiplier
        step = multiplier + excess / inside if inside > 0 else np.inf
        following = step if low < step < high else 0.5 * (low + high)
        if following == multiplier:
            break
        multiplier = following
    for i in range(number):
        job = jobs[orders[BY_ARRIVAL, i]]
        job["rate"] = between(0.0, job["key"] - multiplier, 1.0)


@jit_apart
def fill(c: Record, s: Record, jobs: Array, orders: Slots) -> None:
    """Give what is left of the servers to the jobs in SRPT order, or in that of arrival if sizes are hidden."""
    left = float(c["servers"])
    for i in range(s["number"]):
        left -= jobs[orders[BY_ARRIVAL, i]]["rate"]
    order = orders[BY_REMAINING if c["known"] else BY_ARRIVAL]
    for i in range(s["number"]):
        if left <= TINY * c["servers"]:
            return
        job = jobs[order[i]]
        room = 1.0 - job["rate"]
        job["rate"] = 1.0 if room <= left else job["rate"] + left
        left -= min(room, left)


# ---- the best n ----------------------------------------------------------------------------------


@jit_apart
def choose(s: Record, jobs: Array, orders: Slots, most: int) -> None:
    """Find the jobs of smallest key, ties by job number, into `CHOSEN`, best first."""
    chosen = orders[CHOSEN]
    count = 0
    for i in range(s["number"]):
        slot = orders[BY_ARRIVAL, i]
        key = jobs[slot]["key"]
        if count == most:
            if most == 0 or jobs[chosen[count - 1]]["key"] <= key:
                continue
            count -= 1
        place = count
        while place > 0 and jobs[chosen[place - 1]]["key"] > key:
            chosen[place] = chosen[place - 1]
            place -= 1
        chosen[place] = slot
        count += 1
    s["chosen"] = count


@jit
def serve_chosen(s: Record, jobs: Array, orders: Slots) -> None:
    """Give the chosen jobs rate one."""
    for i in range(s["chosen"]):
        serve(s, jobs, orders, orders[CHOSEN, i], 1.0)


@jit
def serve_highest(c: Record, s: Record, jobs: Array, orders: Slots) -> None:
    """Give the n jobs of highest priority rate one."""
    for i in range(s["number"]):
        job = jobs[orders[BY_ARRIVAL, i]]
        job["key"] = -job["desired"]
    choose(s, jobs, orders, c["servers"])
    serve_chosen(s, jobs, orders)


# ---- one job apart -------------------------------------------------------------------------------


@jit
def serve_apart(s: Record, jobs: Array, orders: Slots, anchor: int, rate: float, servers: int) -> None:
    """Give one job a rate; of the others the n-1 of smallest remaining size get one, the n-th what is left of one."""
    left = servers - 1
    for i in range(s["number"]):
        slot = orders[BY_REMAINING, i]
        if slot == anchor:
            continue
        serve(s, jobs, orders, slot, 1.0 if left > 0 else 1.0 - rate)
        if left == 0:
            break
        left -= 1
    serve(s, jobs, orders, anchor, rate)


@jit
def serve_first(s: Record, jobs: Array, orders: Slots, which: int, servers: int) -> None:
    """Give the first n jobs of an order rate one."""
    for i in range(min(s["number"], servers)):
        serve(s, jobs, orders, orders[which, i], 1.0)


# ---- from a held action to rates -----------------------------------------------------------------


@jit
def set_asked_rates(c: Record, s: Record, jobs: Array, orders: Slots) -> None:
    """Set the rates that an action other than a rule asks for."""
    action = c["action"]
    if action == PRIORITY:
        serve_highest(c, s, jobs, orders)
    elif action == ALLOCATION:
        project(s, jobs, orders, c["servers"])
        if c["conserving"]:
            fill(c, s, jobs, orders)
        gather_served(s, jobs, orders)
    elif action == ANCHOR_RATE:
        if c["conserving"] and s["number"] <= c["servers"]:
            serve_first(s, jobs, orders, BY_ARRIVAL, c["servers"])
        elif s["number"] > 0:
            serve_apart(s, jobs, orders, s["anchor"], s["asked"], c["servers"])
