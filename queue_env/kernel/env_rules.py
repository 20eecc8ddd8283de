"""The reference rules as an action: rates of all jobs present, and when they change without a job coming or going."""

import numpy as np

from queue_env.kernel.anchor import COINCIDENCE, margin
from queue_env.kernel.compile import jit, jit_apart
from queue_env.kernel.env_crowd import backlog_without, largest
from queue_env.kernel.env_layout import (
    BELOW_BACKLOG,
    BY_ARRIVAL,
    BY_REMAINING,
    CHOSEN,
    FCFS,
    LARGE_APART,
    LARGEST_FIRST,
    LAS,
    LCFS,
    MARGIN,
    PLCFS,
    PS,
    PSJF,
    RULE,
    SJF,
    SRPT,
    TWO_CLASS,
)
from queue_env.kernel.env_rates import (
    choose,
    serve,
    serve_apart,
    serve_chosen,
    serve_first,
    set_asked_rates,
    stop_service,
)
from queue_env.kernel.layout import Array, Record, Slots


@jit_apart
def choose_by_key(c: Record, s: Record, jobs: Array, orders: Slots, kind: int) -> None:
    """Choose the n best by size or by arrival, without preemption of those in service, or with it."""
    for i in range(s["number"]):
        job = jobs[orders[BY_ARRIVAL, i]]
        job["key"] = job["size"] if kind in (PSJF, SJF) else -job["arrival"]
        if job["rate"] > 0.0 and kind in (SJF, LCFS):
            job["key"] = -np.inf
    choose(s, jobs, orders, c["servers"])


@jit_apart
def choose_in_classes(c: Record, s: Record, jobs: Array, orders: Slots, boundary: float) -> None:
    """Choose the first class before the second; within each who is in service stays, then the oldest go first.

    Of those in service of the second class the one of longest remaining size yields first.
    """
    for i in range(s["number"]):
        job = jobs[orders[BY_ARRIVAL, i]]
        if job["size"] <= boundary:
            job["key"] = -2.0 if job["rate"] > 0.0 else -1.0
        else:
            job["key"] = job["remaining"] if job["rate"] > 0.0 else np.inf
    choose(s, jobs, orders, c["servers"])


@jit_apart
def serve_large_apart(c: Record, s: Record, jobs: Array, orders: Slots, boundary: float) -> None:
    """Give the oldest large job a server, and the n-1 of smallest remaining size among the others one each."""
    for i in range(s["number"]):
        slot = orders[BY_ARRIVAL, i]
        if jobs[slot]["size"] > boundary:
            serve(s, jobs, orders, slot, 1.0)
            break
    left = c["servers"] - 1
    for i in range(s["number"]):
        slot = orders[BY_REMAINING, i]
        if left > 0 and jobs[slot]["size"] <= boundary:
            serve(s, jobs, orders, slot, 1.0)
            left -= 1


@jit_apart
def serve_below_backlog(c: Record, s: Record, jobs: Array, orders: Slots, rule: Record) -> None:
    """Serve the anchor at one while the others' work is below its threshold, else not; they cross it at `switch`."""
    anchor = s["anchor"]
    backlog = backlog_without(s, jobs, orders, anchor)
    threshold = rule["a"] * jobs[anchor]["size"] ** rule["b"]
    below = s["crossed"] == 1 or backlog - threshold <= COINCIDENCE * backlog
    serve_apart(s, jobs, orders, anchor, 1.0 if below else 0.0, c["servers"])
    if below:
        return
    after = (backlog - threshold) / c["servers"]
    for i in range(s["number"]):
        # A completion that coincides with the crossing, but for rounding, comes first.
        job = jobs[orders[BY_ARRIVAL, i]]
        if job["rate"] > 0.0 and after < job["remaining"] / job["rate"] < after + COINCIDENCE * backlog:
            after = job["remaining"] / job["rate"]
    s["switch"] = s["now"] + after


# ---- least attained service first ----------------------------------------------------------------


@jit
def sort_by_attained(s: Record, jobs: Array, orders: Slots) -> None:
    """Sort the jobs present by attained service, into `CHOSEN`; the newest have usually the least."""
    chosen = orders[CHOSEN]
    number = s["number"]
    for i in range(number):
        slot = orders[BY_ARRIVAL, number - 1 - i]
        attained = jobs[slot]["attained"]
        place = i
        while place > 0 and jobs[chosen[place - 1]]["attained"] > attained:
            chosen[place] = chosen[place - 1]
            place -= 1
        chosen[place] = slot


@jit_apart
def serve_least_attained(c: Record, s: Record, jobs: Array, orders: Slots) -> None:
    """Serve level after level of attained service; the next change is when a level meets the one above it."""
    sort_by_attained(s, jobs, orders)
    chosen = orders[CHOSEN]
    number = s["number"]
    left = float(c["servers"])
    first = 0
    below_first = 0
    below_rate = 0.0
    below = 0.0
    soonest = np.inf
    while first < number:
        attained = jobs[chosen[first]]["attained"]
        last = first
        while last < number and jobs[chosen[last]]["attained"] == attained:
            last += 1
        rate = min(1.0, left / (last - first))
        for i in range(first, last):
            serve(s, jobs, orders, chosen[i], rate)
        if first > 0 and below_rate > rate and (attained - below) / (below_rate - rate) < soonest:
            soonest = (attained - below) / (below_rate - rate)
            s["level_first"], s["level_last"] = below_first, first
        left = max(left - rate * (last - first), 0.0)
        if rate == 0.0:
            break
        below, below_rate, below_first = attained, rate, first
        first = last
    s["switch"] = s["now"] + soonest


@jit_apart
def level(s: Record, jobs: Array, orders: Slots) -> None:
    """Let the level that has caught up with the one above it be one with it, exactly."""
    chosen = orders[CHOSEN]
    attained = jobs[chosen[s["level_last"]]]["attained"]
    for i in range(s["level_first"], s["level_last"]):
        job = jobs[chosen[i]]
        # What has attained a hair more or less by rounding has as much less or more left.
        job["remaining"] = max(job["remaining"] + (job["attained"] - attained), 0.0)
        job["attained"] = attained


# ---- rates -------------------------------------------------------------------------------------


@jit_apart
def apply_rule(c: Record, s: Record, rule: Record, jobs: Array, orders: Slots) -> None:
    """Set the rates of a reference rule."""
    kind = rule["kind"]
    servers = c["servers"]
    by_key = s["number"] > servers and kind in (LCFS, PLCFS, PSJF, SJF, TWO_CLASS)
    if by_key and kind == TWO_CLASS:
        choose_in_classes(c, s, jobs, orders, rule["a"])
    elif by_key:
        choose_by_key(c, s, jobs, orders, kind)
    stop_service(s, jobs, orders)
    if by_key:
        serve_chosen(s, jobs, orders)
    elif kind == LARGE_APART:
        serve_large_apart(c, s, jobs, orders, rule["a"])
    elif kind == PS or s["number"] <= servers:
        for i in range(s["number"]):
            serve(s, jobs, orders, orders[BY_ARRIVAL, i], min(1.0, servers / s["number"]))
    elif kind == FCFS:
        serve_first(s, jobs, orders, BY_ARRIVAL, servers)
    elif kind == SRPT:
        serve_first(s, jobs, orders, BY_REMAINING, servers)
    elif kind == LAS:
        serve_least_attained(c, s, jobs, orders)
    elif kind == LARGEST_FIRST:
        serve_apart(s, jobs, orders, largest(s, jobs, orders), 1.0, servers)
    elif kind == MARGIN:
        rate = min(1.0, rule["b"] - margin(rule["margin"], rule["a"], jobs[s["anchor"]]["size"], rule["b"]))
        serve_apart(s, jobs, orders, s["anchor"], rate, servers)
    elif kind == BELOW_BACKLOG:
        serve_below_backlog(c, s, jobs, orders, rule)


@jit
def set_rates(c: Record, s: Record, rules: Array, jobs: Array, orders: Slots) -> None:
    """Set the rates that the held action means for the jobs present now."""
    s["switch"] = np.inf
    if c["action"] == RULE:
        apply_rule(c, s, rules[s["rule"]], jobs, orders)
    else:
        stop_service(s, jobs, orders)
        set_asked_rates(c, s, jobs, orders)
    s["crossed"] = 0


@jit
def cross(s: Record, jobs: Array, orders: Slots, rule: Record) -> None:
    """Note that the time of `switch` has come."""
    s["crossed"] = 1
    if rule["kind"] == LAS:
        level(s, jobs, orders)
