"""Runs of one block from a snapshot with a job of a given size injected: the largest-job decomposition of the tail.

A run puts a snapshot back, lets a job of a given size arrive, and goes on until the block is over, or a larger
job arrives. Which jobs it counts: those of the block that have been present while the injected job was the block's
largest, until they left, had been there for longer than the last mark, or the block was over.

Blocks of very large jobs are cut: at times that double, the run goes on taking jobs up with probability one half only,
and those it then takes up count twice as much. The time that a cut takes off the block as it is foreseen is noted as
lost, and where a run goes on as won, weighted; so its mean is zero, whatever is foreseen.
"""

from typing import NamedTuple

import numpy as np

from queue_env.kernel.anchor import run_anchor
from queue_env.kernel.compile import jit, jit_apart, jit_entry
from queue_env.kernel.events import absolute_time, mark_response
from queue_env.kernel.index import run_index
from queue_env.kernel.layout import (
    BLOCK_OVER,
    DONE,
    FOLLOW,
    MOST_PERIODS,
    NEED_ARRIVALS,
    OUTGROWN,
    WATCH,
    Array,
    Floats,
    Memory,
    Record,
    record_type,
)
from queue_env.kernel.levels import run_levels
from queue_env.kernel.rates import run_rates
from queue_env.kernel.sharing import run_sharing

# ---- what a call returns beside the statuses of a run --------------------------------------------
FINISHED = 20  # all tasks are
NEED_NUMBERS = 21  # a pool of random numbers is used up
TOO_LONG = 22  # a block takes more jobs than its task allows
SHRINK = 23  # the memory has grown for a task that is over, and the snapshots have not

# ---- where a task is -----------------------------------------------------------------------------
NEXT_TASK = 0
INJECTED = 1  # the job of the given size is about to arrive
IN_BLOCK = 2
DYING = 3  # in the block, but no more jobs are taken up
AFTERWARDS = 4  # the block is over, some of its jobs are there

ENDLESS = 2**62
GO_ON = -1  # with the numbers that the task before has left
FIRST_CHUNK = 16  # jobs; each chunk of a task is twice as long as the one before, for most blocks are short

TASK = record_type("size first_cut lasts lost", "most jobs place")
DRIVE = record_type("injected cut", "task stage length begun gap_at size_at coin_at used_up")


class Work(NamedTuple):
    """What a call works on, beside the memory of the system.

    Attributes:
        buffer: `(k,)` all of the memory that a snapshot holds, in one piece.
        snapshot: `(k,)` the state just before the arrival of the injected job.
        tasks: `(tasks,)` of `TASK`: the size of that job, how long after it the first cut may come, how long the block
            is foreseen to last, the most jobs a run may take, and the place in the pools where its random numbers
            begin, or `GO_ON`; the results are the number of jobs and the time lost by cuts.
        found: `(tasks, times + 1)` counted jobs by how many marks their response time is above, weighted.
        drive: `(1,)` of `DRIVE`, where the work is.
        gap_pool, size_pool, coin_pool: random numbers to use up, the coins uniform.
        arrivals, sizes: `(chunk,)` scratch.
    """

    buffer: Floats
    snapshot: Floats
    tasks: Array
    found: Floats
    drive: Array
    gap_pool: Floats
    size_pool: Floats
    coin_pool: Floats
    arrivals: Floats
    sizes: Floats


# ---- the jobs of the block -----------------------------------------------------------------------


@jit_apart
def mark_present(m: Memory, s: Record, least_age: float) -> None:
    """Count the jobs present of at least some age as above all marks."""
    for slot in range(s["highest"]):
        job = m.jobs[slot]
        if s["counted_from"] <= job["number"] < s["counted_to"] and s["now"] - job["arrival"] >= least_age:
            mark_response(s, m.marks, m.above, m.periods, job["number"], np.inf)


@jit_apart
def take_no_more(m: Memory, s: Record) -> None:
    """Count no job that arrives from now on, and end when all that are present will be older than the last mark."""
    s["counted_to"] = min(s["counted_to"], s["arrived"])
    s["pending"] = 0
    last = -np.inf
    for slot in range(s["highest"]):
        job = m.jobs[slot]
        if s["counted_from"] <= job["number"] < s["counted_to"]:
            s["pending"] += 1
            last = max(last, job["arrival"])
    s["horizon"] = s["origin"] + (s["origin_low"] + last) + m.marks[len(m.marks) - 1]


# ---- from one stretch of a task to the next ------------------------------------------------------


@jit_apart
def put_back(s: Record, d: Record, w: Work) -> None:
    """Copy the snapshot over the memory, and prepare the arrival of the task's job."""
    for i in range(len(w.snapshot)):
        w.buffer[i] = w.snapshot[i]
    w.arrivals[0] = 0.0
    w.sizes[0] = w.tasks[d["task"]]["size"]
    s["next"] = 0
    s["fresh"] = 1
    place = w.tasks[d["task"]]["place"]
    if place != GO_ON:
        d["gap_at"] = place
        d["size_at"] = place
        d["coin_at"] = place
    d["length"] = 1
    d["used_up"] = 0
    d["begun"] = s["arrived"]
    d["stage"] = INJECTED


@jit_apart
def end_task(m: Memory, s: Record, d: Record, w: Work) -> None:
    """Write down the result of a task."""
    w.tasks[d["task"]]["jobs"] = s["arrived"] - d["begun"]
    for i in range(len(m.above)):
        w.found[d["task"], i] = m.above[i]
    d["stage"] = NEXT_TASK
    d["task"] += 1


@jit_apart
def begin_watching(m: Memory, s: Record, d: Record, w: Work) -> None:
    """Go on after the injected job has arrived, which is the largest of its block."""
    for i in range(len(m.above)):
        m.above[i] = 0.0
    s["periods"] = 0
    m.periods[0] = 0
    # Who has been there for longer than the last mark counts for an earlier largest job; older jobs have lower numbers.
    first = s["arrived"] - 1
    for slot in range(s["highest"]):
        job = m.jobs[slot]
        if s["counted_from"] <= job["number"] < first and s["now"] - job["arrival"] < m.marks[len(m.marks) - 1]:
            first = job["number"]
    s["counted_from"] = first
    s["stopping"] = WATCH
    s["pending"] = ENDLESS
    d["injected"] = absolute_time(s)
    d["cut"] = w.tasks[d["task"]]["first_cut"]
    d["length"] = FIRST_CHUNK // 2
    d["stage"] = IN_BLOCK


@jit_apart
def flip_coins(m: Memory, s: Record, d: Record, w: Work) -> None:
    """Cut the run if it is time to and the coin says so; else let later jobs count twice as much."""
    while absolute_time(s) - d["injected"] >= d["cut"] and s["periods"] < MOST_PERIODS - 1:
        coin = w.coin_pool[d["coin_at"]]
        d["coin_at"] += 1
        left = 2.0 ** s["periods"] * max(w.tasks[d["task"]]["lasts"] - d["cut"], 0.0)
        if coin < 0.5:
            w.tasks[d["task"]]["lost"] += left
            take_no_more(m, s)
            d["stage"] = DYING
            return
        w.tasks[d["task"]]["lost"] -= left
        d["cut"] *= 2.0
        s["periods"] += 1
        m.periods[s["periods"]] = s["arrived"]


@jit_apart
def end_stretch(m: Memory, s: Record, d: Record, w: Work) -> None:
    """Go on where no counted job is left, the horizon is reached, the block is over, or its job is outgrown."""
    if s["stopping"] == OUTGROWN:
        # The younger ones count for the larger job.
        mark_present(m, s, m.marks[len(m.marks) - 1])
    elif s["stopping"] == BLOCK_OVER:
        s["stopping"] = FOLLOW
        s["level"] = -1
        take_no_more(m, s)
        if s["pending"] > 0:
            d["stage"] = AFTERWARDS
            return
    else:
        mark_present(m, s, 0.0)
    end_task(m, s, d, w)


@jit_apart
def next_chunk(s: Record, d: Record, w: Work) -> bool:
    """Take the next jobs from the pools; returns whether there were any, and coins enough."""
    length = min(2 * d["length"], len(w.arrivals), len(w.size_pool) - d["size_at"], len(w.gap_pool) - d["gap_at"])
    if length == 0 or len(w.coin_pool) - d["coin_at"] < MOST_PERIODS:
        return False
    time = 0.0
    for i in range(length):
        time += w.gap_pool[d["gap_at"] + i]
        w.arrivals[i] = time
        w.sizes[i] = w.size_pool[d["size_at"] + i]
    d["gap_at"] += length
    d["size_at"] += length
    d["length"] = length
    d["used_up"] = 0
    s["next"] = 0
    s["fresh"] = 1
    return True


@jit
def prepare(m: Memory, w: Work) -> int:
    """Get ready for the next stretch of a run; returns DONE if it can go on, or why not."""
    s, d = m.system[0], w.drive[0]
    if d["stage"] == NEXT_TASK:
        if d["task"] == len(w.tasks):
            return FINISHED
        if len(w.buffer) > len(w.snapshot):
            return SHRINK
        put_back(s, d, w)
    if s["arrived"] - d["begun"] > w.tasks[d["task"]]["most"]:
        return TOO_LONG
    if d["used_up"] and not next_chunk(s, d, w):
        return NEED_NUMBERS
    return DONE


@jit
def take_up(m: Memory, w: Work, status: int) -> bool:
    """Take up what a stretch has come to; returns whether the call can go on."""
    s, d = m.system[0], w.drive[0]
    if status == DONE:
        end_stretch(m, s, d, w)
        return True
    if status != NEED_ARRIVALS:
        return False
    d["used_up"] = 1
    if d["stage"] == INJECTED:
        begin_watching(m, s, d, w)
    elif d["stage"] == IN_BLOCK:
        flip_coins(m, s, d, w)
    return True


# ---- entry points by family: run all tasks; they return FINISHED, or what is needed to go on -----
# They differ in what they call. One made for a function it is given would be compiled anew in every process, for numba
# keeps no code on disk that has a compiled function among its captured values.


def _drive_index(m: Memory, w: Work, user: object) -> int:
    while True:
        ready = prepare(m, w)
        if ready != DONE:
            return ready
        length = w.drive[0]["length"]
        status = run_index(m, w.arrivals[:length], w.sizes[:length], w.arrivals[:0], user)
        if not take_up(m, w, status):
            return status


def _drive_anchor(m: Memory, w: Work, user: object) -> int:
    while True:
        ready = prepare(m, w)
        if ready != DONE:
            return ready
        length = w.drive[0]["length"]
        status = run_anchor(m, w.arrivals[:length], w.sizes[:length], w.arrivals[:0], user)
        if not take_up(m, w, status):
            return status


def _drive_rates(m: Memory, w: Work, user: object) -> int:
    while True:
        ready = prepare(m, w)
        if ready != DONE:
            return ready
        length = w.drive[0]["length"]
        status = run_rates(m, w.arrivals[:length], w.sizes[:length], w.arrivals[:0], user)
        if not take_up(m, w, status):
            return status


@jit_entry
def drive_sharing(m: Memory, w: Work) -> int:
    """Run all tasks under processor sharing."""
    while True:
        ready = prepare(m, w)
        if ready != DONE:
            return ready
        length = w.drive[0]["length"]
        status = run_sharing(m, w.arrivals[:length], w.sizes[:length], w.arrivals[:0])
        if not take_up(m, w, status):
            return status


@jit_entry
def drive_levels(m: Memory, w: Work) -> int:
    """Run all tasks under least attained service first."""
    while True:
        ready = prepare(m, w)
        if ready != DONE:
            return ready
        length = w.drive[0]["length"]
        status = run_levels(m, w.arrivals[:length], w.sizes[:length], w.arrivals[:0])
        if not take_up(m, w, status):
            return status


drive_index = jit_entry(_drive_index)
drive_anchor = jit_entry(_drive_anchor)
drive_rates = jit_entry(_drive_rates)
