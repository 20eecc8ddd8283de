"""The clock, the order of events, jobs coming and going, patience: what all families share."""

import numpy as np

from queue_env.kernel import heaps, pairing
from queue_env.kernel.compile import jit, jit_apart
from queue_env.kernel.layout import (
    ABANDONED,
    ABANDONMENT,
    ANCHOR,
    ARRIVAL,
    BAD_RULE,
    BIN_BITS,
    BINS,
    BLOCK_OVER,
    COMPLETION,
    DONE,
    FOLLOW,
    FRACTIONAL_CLOCK,
    GROW,
    INDEX,
    LEVELS,
    LOSS,
    LOWEST_OCTAVE,
    NEED_ARRIVALS,
    NO_CLOCK,
    OUTGROWN,
    QUEUE_CLOCK,
    RATES,
    REMAINING,
    SERVED,
    SHARING,
    SIZE_BITS,
    SWITCH,
    THRESHOLD,
    WATCH,
    Array,
    Floats,
    Ints,
    Memory,
    Record,
)

# A duration below such a share of the clock's reading would lose digits when added to it; the clock is then set to
# zero. An arriving job's response time keeps at least 29 bits. For others it is enough that the order of events is
# kept, for most of their response time lies behind them, and small durations are common where many jobs share.
ARRIVING = 2.0**-24
STARTING = 2.0**-40

# ---- clock ---------------------------------------------------------------------------------------


@jit
def advance(s: Record, time: float) -> None:
    """Move the clock to `time`, and the areas under the number in system and the capacity in use with it."""
    elapsed = time - s["now"]
    s["elapsed"] = elapsed
    s["number_area"] += s["number"] * elapsed
    s["busy_area"] += s["busy"] * elapsed
    s["now"] = time


@jit
def absolute_time(s: Record) -> float:
    """Return the time since the workload's zero."""
    now: float = s["origin"] + (s["origin_low"] + s["now"])
    return now


@jit_apart
def shift_pair(high: float, low: float, amount: float) -> tuple[float, float]:
    """Add to an unevaluated sum of two doubles, without loss (Knuth's two-sum)."""
    total = high + amount
    rest = total - high
    low += (high - (total - rest)) + (amount - rest)
    return total, low


@jit_apart
def shift_job(jobs: Array, slot: int, now: float) -> None:
    """Move a job's times to the new origin."""
    job = jobs[slot]
    job["arrival"] -= now
    job["since"] -= now
    job["started"] -= now
    job["clock_since"] -= now


@jit_apart
def rebase_service(s: Record, jobs: Array, service: Array, place: Ints, worst: Array, worst_place: Ints) -> None:
    """Move the finish of every job in service to the new origin.

    What began at this very instant is computed anew: its finish may have been rounded, and one of equal size that
    begins now, after the change of origin, must tie with it.
    """
    count = s["in_service"]
    for i in range(count):
        entry = service[i]
        job = jobs[entry["slot"]]
        entry["key"] = job["remaining"] / s["speed"] if job["since"] == s["now"] else entry["key"] - s["now"]
    if s["dual"]:
        heaps.restore(service, place, count)
    else:
        sort_descending(service, count)
    if s["family"] == ANCHOR or s["order"] == REMAINING or s["order"] == LOSS:
        for i in range(s["worst"]):
            worst[i]["key"] = -service[place[worst[i]["slot"]]]["key"]
        heaps.restore(worst, worst_place, s["worst"])


@jit_apart
def sort_descending(entries: Array, count: int) -> None:
    """Sort entries that are nearly in order, largest first."""
    for i in range(1, count):
        entry = entries[i]
        key, tie, slot = entry["key"], entry["tie"], entry["slot"]
        hole = i
        while hole > 0:
            above = entries[hole - 1]
            if above["key"] > key or (above["key"] == key and above["tie"] > tie):
                break
            here = entries[hole]
            here["key"], here["tie"], here["slot"] = above["key"], above["tie"], above["slot"]
            hole -= 1
        here = entries[hole]
        here["key"], here["tie"], here["slot"] = key, tie, slot


@jit_apart
def rebase_deadlines(s: Record, jobs: Array, deadlines: Array, place: Ints) -> None:
    """Move the deadlines to the new origin."""
    for i in range(s["deadlines"]):
        entry = deadlines[i]
        job = jobs[entry["slot"]]
        if job["clock_since"] == s["now"] and s["family"] != SHARING:
            entry["key"] = job["patience"] / job["clock_rate"]
        else:
            entry["key"] -= s["now"]
    heaps.restore(deadlines, place, s["deadlines"])


@jit_apart
def rebase_sharing(s: Record, jobs: Array, tags: Array, place: Ints, deadlines: Array, deadline_place: Ints) -> None:
    """Set the readings of gained service and of fractional waiting to zero, and move the tags with them."""
    for i in range(s["waiting"]):
        job = jobs[tags[i]["slot"]]
        tags[i]["key"] = job["size"] if job["arrival"] == s["now"] else tags[i]["key"] - s["virtual"]
    heaps.restore(tags, place, s["waiting"])
    s["virtual"] = 0.0
    if s["clock"] == FRACTIONAL_CLOCK:
        for i in range(s["deadlines"]):
            job = jobs[deadlines[i]["slot"]]
            fresh = job["arrival"] == s["now"]
            deadlines[i]["key"] = job["patience"] if fresh else deadlines[i]["key"] - s["virtual_clock"]
        heaps.restore(deadlines, deadline_place, s["deadlines"])
    s["virtual_clock"] = 0.0


@jit_apart
def rebase_levels(s: Record, jobs: Array, levels: Array, service: Array, place: Ints) -> None:
    """Move the levels' times to the new origin."""
    for i in range(s["in_service"]):
        entry = service[i]
        level = levels[entry["slot"]]
        left = jobs[level["root"]]["size"] - level["attained"]
        entry["key"] = max(left, 0.0) if level["since"] == s["now"] else entry["key"] - s["now"]
    heaps.restore(service, place, s["in_service"])
    level_id = s["low_level"]
    while level_id >= 0:
        levels[level_id]["since"] -= s["now"]
        level_id = levels[level_id]["above"]


@jit_apart
def rebase_anchor(s: Record) -> None:
    """Move the anchor's and the partial job's times to the new origin."""
    now = s["now"]
    fresh = s["anchor_rate"] > 0.0 and s["anchor_since"] == now
    s["anchor_finish"] = s["anchor_remaining"] / s["anchor_rate"] if fresh else s["anchor_finish"] - now
    s["anchor_since"] -= now
    fresh = s["partial_rate"] > 0.0 and s["partial_since"] == now
    s["partial_finish"] = s["partial_remaining"] / s["partial_rate"] if fresh else s["partial_finish"] - now
    s["partial_since"] -= now


@jit_apart
def shift_entries(jobs: Array, entries: Array, count: int, now: float) -> None:
    """Move the times of the jobs in a heap to the new origin."""
    for i in range(count):
        shift_job(jobs, entries[i]["slot"], now)


@jit_apart
def shift_level_jobs(s: Record, jobs: Array, levels: Array) -> None:
    """Move the times of the jobs in all levels to the new origin."""
    level = s["low_level"]
    while level >= 0:
        root = levels[level]["root"]
        slot = root
        while slot >= 0:
            shift_job(jobs, slot, s["now"])
            slot = pairing.following(jobs, root, slot)
        level = levels[level]["above"]


@jit_apart
def shift_anchor_jobs(s: Record, jobs: Array, giants: Array) -> None:
    """Move the times of the anchor, the partial job and the large jobs of thresh-split to the new origin."""
    for slot in (s["anchor"], s["partial"]):
        if slot >= 0:
            shift_job(jobs, slot, s["now"])
    if s["rate_kind"] == THRESHOLD:
        for i in range(s["giants"]):
            slot = giants[i]["slot"]
            if jobs[slot]["number"] == giants[i]["tie"]:
                shift_job(jobs, slot, s["now"])


@jit_apart
def shift_jobs(
    s: Record, jobs: Array, service: Array, waiting: Array, giants: Array, levels: Array, order: Ints
) -> None:
    """Move the times of all jobs present to the new origin."""
    family, now = s["family"], s["now"]
    if family == LEVELS:
        shift_level_jobs(s, jobs, levels)
        return
    if family == RATES:
        for i in range(s["number"]):
            shift_job(jobs, order[i], now)
        return
    shift_entries(jobs, waiting, s["waiting"], now)
    if family != SHARING:
        shift_entries(jobs, service, s["in_service"], now)
    if family == ANCHOR:
        shift_anchor_jobs(s, jobs, giants)


@jit_apart
def rebase(m: Memory, s: Record) -> None:
    """Make now the new origin of time, so that small durations keep their digits; O(jobs present)."""
    now = s["now"]
    family = s["family"]
    if family == SHARING:
        rebase_sharing(s, m.jobs, m.waiting, m.waiting_place, m.deadlines, m.deadline_place)
    if family != SHARING or s["clock"] != FRACTIONAL_CLOCK:
        rebase_deadlines(s, m.jobs, m.deadlines, m.deadline_place)
    if family in (INDEX, ANCHOR):
        rebase_service(s, m.jobs, m.service, m.service_place, m.worst, m.worst_place)
    if family == ANCHOR:
        rebase_anchor(s)
    if family == LEVELS:
        rebase_levels(s, m.jobs, m.levels, m.service, m.service_place)
    shift_jobs(s, m.jobs, m.service, m.waiting, m.giants, m.levels, m.order)
    s["switch_time"] -= now
    s["last_arrival"] -= now
    s["origin"], s["origin_low"] = shift_pair(s["origin"], s["origin_low"], now)
    s["shift"], s["shift_low"] = shift_pair(s["shift"], s["shift_low"], -now)
    s["now"] = 0.0


@jit
def keep_digits(m: Memory, s: Record, duration: float, share: float) -> None:
    """Rebase if `duration` is below `share` of the clock's reading, to which it is to be added."""
    if duration < s["now"] * share and duration > 0.0:
        rebase(m, s)


@jit
def begin_chunk(m: Memory, s: Record) -> None:
    """Take up a chunk, if it is a new one; in a stream its times count from the last arrival, which is now."""
    if s["fresh"] and s["relative"]:
        rebase(m, s)
        s["shift"] = 0.0
        s["shift_low"] = 0.0
        s["last_given"] = 0.0
    s["fresh"] = 0


# ---- order of events -----------------------------------------------------------------------------


@jit
def next_event(s: Record, arrivals: Floats, completion: float, deadline: float, switch: float) -> int:
    """Choose the next event, move the clock to it, and return its kind, or a status that ends the run.

    Simultaneous events: completion, then abandonment, then arrival; a change of rates comes last.
    """
    s["elapsed"] = 0.0
    if s["invalid"]:
        return BAD_RULE
    if s["pending"] == 0:
        return DONE
    arrival = np.inf
    given = np.nan
    if s["next"] < len(arrivals):
        given = arrivals[s["next"]]
        # Equal times stay equal, however the origin moved between them.
        arrival = s["last_arrival"] if given == s["last_given"] else (given + s["shift"]) + s["shift_low"]
        arrival = max(arrival, s["now"])
    elif not s["draining"]:
        return NEED_ARRIVALS
    time = min(completion, deadline, switch, arrival)
    horizon = (s["horizon"] - s["origin"]) - s["origin_low"]
    if time > horizon:
        advance(s, horizon)
        return DONE
    if time == np.inf:
        return DONE
    if completion == time:
        advance(s, time)
        return COMPLETION
    if deadline == time:
        advance(s, time)
        return ABANDONMENT
    if arrival > time:
        advance(s, time)
        return SWITCH
    if s["free"] == 0:
        return GROW
    advance(s, time)
    s["last_given"] = given
    return ARRIVAL


# ---- blocks: they end whenever the number present falls to a level and their largest job has left -


@jit_apart
def outgrow(s: Record, size: float) -> None:
    """Note that the arriving job is the largest of its block."""
    s["block_largest"] = size
    s["largest"] = s["arrived"]
    if s["stopping"] == WATCH:
        s["stopping"] = OUTGROWN
        s["pending"] = 0


@jit_apart
def end_block(s: Record) -> None:
    """End the block if its largest job has left, for the number present has fallen to the level."""
    if s["largest"] >= 0:
        return
    if s["stopping"] == WATCH:
        s["stopping"] = BLOCK_OVER
        s["pending"] = 0
    elif s["stopping"] == FOLLOW:
        s["counted_from"] = s["arrived"]
        s["block_largest"] = 0.0


@jit_apart
def mark_response(s: Record, marks: Floats, above: Floats, periods: Ints, number: int, response: float) -> None:
    """Count a response time by how many marks it is above, with the weight of the period of the job's arrival."""
    period = s["periods"]
    while period > 0 and number < periods[period]:
        period -= 1
    place = 0
    while place < len(marks) and response > marks[place]:
        place += 1
    above[place] += 2.0**period


# ---- arrivals ------------------------------------------------------------------------------------


@jit_apart
def mark_window(s: Record) -> None:
    """Note the areas at both ends of the window of time averages."""
    number = s["arrived"]
    if number == s["window_from"]:
        s["window_start"] = absolute_time(s)
        s["window_number"] = s["number_area"]
        s["window_busy"] = s["busy_area"]
        s["window_served"] = s["served"]
        s["window_state"] = 1
    if number == s["window_to"]:
        s["window_end"] = absolute_time(s)
        s["window_number_end"] = s["number_area"]
        s["window_busy_end"] = s["busy_area"]
        s["window_served_end"] = s["served"]
        s["window_state"] = 2


@jit
def admit(m: Memory, s: Record, sizes: Floats, patience: Floats) -> int:
    """Give the arriving job a slot and return it."""
    mark_window(s)
    size = sizes[s["next"]]
    limit = np.inf
    if s["clock"] != NO_CLOCK:
        limit = patience[s["next"]]
    keep_digits(m, s, min(size / s["speed"], limit) if limit > 0.0 else size / s["speed"], ARRIVING)
    now = s["now"]
    if now > s["last_arrival"] or s["arrived"] == 0:
        s["epoch"] += 1
    s["last_arrival"] = now
    s["free"] -= 1
    slot = m.free[s["free"]]
    if slot >= s["highest"]:
        s["highest"] = slot + 1
    job = m.jobs[slot]
    job["number"] = s["arrived"]
    job["epoch"] = s["epoch"]
    job["size"] = size
    job["remaining"] = size
    job["arrival"] = now
    job["since"] = now
    job["started"] = np.nan
    job["waited"] = 0.0
    job["patience"] = limit
    job["clock_since"] = now
    job["clock_rate"] = 0.0
    if size > s["block_largest"]:
        outgrow(s, size)
    s["arrived"] += 1
    s["next"] += 1
    s["number"] += 1
    return int(slot)


# ---- queue and service ---------------------------------------------------------------------------


@jit
def leave_queue(m: Memory, s: Record, slot: int) -> None:
    """Note that a job's rate becomes positive."""
    job = m.jobs[slot]
    job["waited"] += s["now"] - job["since"]
    job["since"] = s["now"]
    if s["recording"]:
        note_start(s, m.records, job)


@jit
def enter_queue(m: Memory, s: Record, slot: int) -> None:
    """Note that a job's rate becomes zero."""
    job = m.jobs[slot]
    job["since"] = s["now"]
    if s["recording"]:
        forget_start(s, m.records, job)


@jit_apart
def note_start(s: Record, records: Array, job: Record) -> None:
    """Record the start of a job that is served for the first time."""
    if np.isnan(job["started"]) and job["number"] < len(records):
        job["started"] = s["now"]
        records[job["number"]]["start_time"] = absolute_time(s)


@jit_apart
def forget_start(s: Record, records: Array, job: Record) -> None:
    """Take back the start of a job whose service lasted no time."""
    if job["started"] == s["now"]:
        job["started"] = np.nan
        records[job["number"]]["start_time"] = np.nan


# ---- patience ------------------------------------------------------------------------------------


@jit
def clear_deadline(s: Record, deadlines: Array, place: Ints, slot: int) -> None:
    """Forget a job's deadline, if it has one."""
    if place[slot] >= 0:
        heaps.remove(deadlines, place, s["deadlines"], slot)
        s["deadlines"] -= 1


@jit
def set_clock(m: Memory, s: Record, slot: int, share: float) -> None:
    """Let a job's patience clock run as its kind says for a job that gets `share` of a server."""
    if s["clock"] != NO_CLOCK:
        change_clock(s, m.jobs, m.deadlines, m.deadline_place, slot, share)


@jit_apart
def change_clock(s: Record, jobs: Array, deadlines: Array, place: Ints, slot: int, share: float) -> None:
    """Do the work of `set_clock` for jobs that have patience."""
    kind = s["clock"]
    rate = 1.0
    if kind == QUEUE_CLOCK:
        rate = 1.0 if share == 0.0 else 0.0
    elif kind == FRACTIONAL_CLOCK:
        rate = 1.0 - share
    job = jobs[slot]
    if rate == job["clock_rate"]:
        return
    left = max(job["patience"] - job["clock_rate"] * (s["now"] - job["clock_since"]), 0.0)
    clear_deadline(s, deadlines, place, slot)
    job["patience"] = left
    job["clock_since"] = s["now"]
    job["clock_rate"] = rate
    if rate > 0.0 and left < np.inf:
        heaps.push(deadlines, place, s["deadlines"], s["now"] + left / rate, job["number"], slot)
        s["deadlines"] += 1


@jit
def first_deadline(m: Memory, s: Record) -> float:
    """Return the time of the next abandonment, or infinity."""
    if s["deadlines"] > 0:
        time: float = m.deadlines[0]["key"]
        return time
    return np.inf


# ---- departures ----------------------------------------------------------------------------------


@jit
def bin_of(value: float) -> int:
    """Return the histogram bin of a positive value, from the exponent and the first bits of its significand."""
    bits: Record = np.float64(value).view(np.int64) >> (52 - BIN_BITS)
    return int(min(max(bits - ((1023 + LOWEST_OCTAVE) << BIN_BITS), 0), BINS - 1))


@jit
def count_served(m: Memory, row: int, slot: int, response: float) -> None:
    """Add a served job to the statistics."""
    stats = m.stats[row]
    size = m.jobs[slot]["size"]
    slowdown = response / size
    stats["served"] += 1
    stats["response_sum"] += response
    stats["response_square_sum"] += response * response
    stats["slowdown_sum"] += slowdown
    stats["slowdown_square_sum"] += slowdown * slowdown
    stats["size_sum"] += size
    if response > stats["response_max"]:
        stats["response_max"] = response
    if slowdown > stats["slowdown_max"]:
        stats["slowdown_max"] = slowdown
    m.response_counts[row, bin_of(response)] += 1
    m.slowdown_counts[row, bin_of(slowdown)] += 1


@jit
def count(m: Memory, s: Record, slot: int, outcome: int, response: float) -> None:
    """Add a departing job to the statistics and the records, if it is one of the counted."""
    job = m.jobs[slot]
    number = job["number"]
    if number < s["counted_from"] or number >= s["counted_to"]:
        return
    s["pending"] -= 1
    row = 0
    if s["rows"] > 1:
        row = (number - s["counted_from"]) * s["rows"] // (s["counted_to"] - s["counted_from"])
    stats = m.stats[row]
    waited = job["waited"]
    stats["counted"] += 1
    stats["waiting_sum"] += waited
    stats["waiting_square_sum"] += waited * waited
    if waited > 0.0:
        stats["waited"] += 1
    m.size_counts[row, outcome, bin_of(job["size"]) >> (BIN_BITS - SIZE_BITS)] += 1
    if outcome == SERVED:
        count_served(m, row, slot, response)
        if len(m.marks) > 0:
            mark_response(s, m.marks, m.above, m.periods, number, response)
    else:
        stats["abandoned"] += 1
        stats["abandoned_time_sum"] += response
    if s["recording"]:
        note_departure(s, m.records, job, outcome)


@jit_apart
def note_departure(s: Record, records: Array, job: Record, outcome: int) -> None:
    """Record how a job left."""
    if outcome != SERVED:
        forget_start(s, records, job)
    record = records[job["number"]]
    record["departure_time"] = absolute_time(s)
    record["waiting_time"] = job["waited"]
    record["outcome"] = outcome


@jit
def depart(m: Memory, s: Record, slot: int, outcome: int, remaining: float) -> None:
    """Let a job go: its waiting is complete in ``waited``, and it is in no heap but perhaps that of deadlines."""
    job = m.jobs[slot]
    response = s["now"] - job["arrival"]
    if outcome == SERVED:
        # The clock's rounding must not make a job faster than its size.
        response = max(response, job["size"] / s["speed"])
        s["served"] += 1
    s["sojourn"] += response
    s["work_done"] += job["size"] - remaining
    if s["clock"] != NO_CLOCK:
        clear_deadline(s, m.deadlines, m.deadline_place, slot)
    count(m, s, slot, outcome, response)
    if job["number"] == s["largest"]:
        s["largest"] = -1
    job["number"] = -1
    m.free[s["free"]] = slot
    s["free"] += 1
    s["number"] -= 1
    if s["number"] == s["level"]:
        end_block(s)


@jit
def abandon_from_queue(m: Memory, s: Record, slot: int) -> None:
    """Let a job go that is in the queue."""
    job = m.jobs[slot]
    job["waited"] += s["now"] - job["since"]
    depart(m, s, slot, ABANDONED, job["remaining"])
