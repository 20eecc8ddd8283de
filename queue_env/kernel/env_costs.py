"""What the jobs present cost as they age: the terms of the reward."""

import numpy as np

from queue_env.kernel.compile import jit, jit_apart
from queue_env.kernel.env_layout import (
    BY_ARRIVAL,
    COST_ABANDON,
    COST_BITS,
    COST_EXCEED,
    COST_MEAN,
    COST_MOMENT,
    COST_SLOWDOWN,
    COST_TAIL,
    COST_WAIT,
    COSTS,
)
from queue_env.kernel.layout import Array, Floats, Record, Slots

SHIFT = 52 - COST_BITS
BELOW = (1 << SHIFT) - 1
UNIT = 2.0**-SHIFT


@jit
def tail_cost(c: Record, table: Floats, age: float) -> float:
    """Return w(age) from the table of cubic pieces."""
    bits: Record = np.float64(min(max(age, c["table_low"]), c["table_high"])).view(np.int64)
    piece = table[(bits >> SHIFT) - c["table_first"]]
    x = (bits & BELOW) * UNIT
    return float(piece[0] + x * (piece[1] + x * (piece[2] + x * piece[3])))


@jit
def power(age: float, exponent: float) -> float:
    """Return age^exponent, quickly for the square."""
    return age * age if exponent == 2.0 else age**exponent


@jit
def aged(c: Record, term: Record, table: Floats, job: Record, before: float, after: float) -> float:
    """Return what it costs by one term that a job ages."""
    kind = term["kind"]
    if kind == COST_TAIL:
        return tail_cost(c, table, after) - tail_cost(c, table, before)
    if kind == COST_SLOWDOWN:
        return float((after - before) / job["size"])
    if kind == COST_MOMENT:
        return power(after, term["number"]) - power(before, term["number"])
    return 1.0 if before <= term["number"] < after else 0.0


@jit
def young(c: Record, term: Record, age: float) -> bool:
    """Return whether a job of this age has cost nothing yet by a term, so that no younger one has either."""
    if term["kind"] == COST_TAIL:
        return bool(age <= c["table_low"])
    return bool(term["kind"] == COST_EXCEED and age <= term["number"])


@jit_apart
def charge(
    c: Record, s: Record, terms: Array, table: Floats, jobs: Array, orders: Slots, outcome: Floats, since: float
) -> None:
    """Charge the jobs present for the time from `since` to now."""
    now = s["now"]
    elapsed = now - since
    number = s["number"]
    for t in range(c["terms"]):
        term = terms[t]
        kind = term["kind"]
        cost = 0.0
        if kind == COST_MEAN:
            cost = number * elapsed
        elif kind == COST_WAIT:
            cost = (number - s["served"]) * elapsed
        elif kind != COST_ABANDON:
            for i in range(number):
                job = jobs[orders[BY_ARRIVAL, i]]
                age = now - job["arrival"]
                if young(c, term, age):
                    break
                cost += aged(c, term, table, job, max(since - job["arrival"], 0.0), age)
        outcome[COSTS + t] += s["weight"] * cost


@jit
def charge_abandonment(c: Record, s: Record, terms: Array, outcome: Floats) -> None:
    """Charge for a job that leaves unserved."""
    for t in range(c["terms"]):
        if terms[t]["kind"] == COST_ABANDON:
            outcome[COSTS + t] += s["weight"]
