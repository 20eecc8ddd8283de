"""From one decision to the next: the event loop over B systems, episodes and their ends."""

import numpy as np

from queue_env.kernel.compile import jit, jit_apart, jit_entry
from queue_env.kernel.env_costs import charge, charge_abandonment
from queue_env.kernel.env_crowd import clear, enter, leave, restore_order
from queue_env.kernel.env_layout import (
    ABANDONMENTS,
    ALL_LEFT,
    ALLOCATION,
    ANCHOR_RATE,
    BIG_JOB,
    BY_ARRIVAL,
    BY_REMAINING,
    COMPLETIONS,
    COSTS,
    ELAPSED,
    EMPTY_AGAIN,
    EPISODE,
    EPISODE_COSTS,
    FAR,
    GIANT_FACTOR,
    GIANT_SIZE,
    GIANT_WEIGHT,
    JOBS,
    NEED_ARRIVALS,
    NEED_GIANTS,
    NEED_SIZES,
    NEED_SOURCE,
    NEXT_STEP,
    NO_REASON,
    OUTCOMES,
    OVER_CAPACITY,
    PRIORITY,
    READY,
    REASON,
    RESETTING,
    RESPONSE,
    REWARD,
    RULE,
    SAME_STEP,
    SERVED,
    STALLED,
    STARTING,
    STEPPING,
    STEPS_OVER,
    TABLE,
    TERMINATED,
    TIME,
    TIME_OVER,
    TRUNCATED,
    WEIGHT,
    WORKLOAD_OVER,
    Batch,
)
from queue_env.kernel.env_rates import between
from queue_env.kernel.env_rules import cross, set_rates
from queue_env.kernel.env_view import observe
from queue_env.kernel.layout import (
    ABANDONED,
    FRACTIONAL_CLOCK,
    NO_CLOCK,
    PRESENT,
    QUEUE_CLOCK,
    Array,
    Floats,
    Ints,
    Record,
    Slots,
)
from queue_env.kernel.layout import SERVED as LEFT_SERVED
from queue_env.kernel.turns import finish, first_system, look_out, new_step, post, take, wait_for_all

HUGE = np.finfo(np.float64).max

# ---- the next event ------------------------------------------------------------------------------


@jit
def shortest_service(s: Record, jobs: Array, orders: Slots) -> float:
    """Return the time until the next job finishes, or infinity; none for one that has nothing left, served or not."""
    shortest = np.inf
    if s["number"] > 0 and jobs[orders[BY_REMAINING, 0]]["remaining"] == 0.0:
        return 0.0
    for i in range(s["served"]):
        job = jobs[orders[SERVED, i]]
        shortest = min(shortest, job["remaining"] / job["rate"])
    return float(shortest)


@jit
def clock_rate(c: Record, rate: float) -> float:
    """Return how fast a job's patience is used up."""
    if c["clock"] == QUEUE_CLOCK:
        return 0.0 if rate > 0.0 else 1.0
    return 1.0 - rate if c["clock"] == FRACTIONAL_CLOCK else 1.0


@jit_apart
def shortest_patience(c: Record, s: Record, jobs: Array, orders: Slots) -> float:
    """Return the time until the next job's patience runs out, or infinity."""
    shortest = np.inf
    for i in range(s["number"]):
        job = jobs[orders[BY_ARRIVAL, i]]
        speed = clock_rate(c, job["rate"])
        if speed > 0.0:
            shortest = min(shortest, job["patience"] / speed)
    return float(shortest)


@jit
def next_arrival(s: Record, chunk: Array) -> float:
    """Return when the next job arrives, or infinity."""
    if s["next"] == s["filled"]:
        return np.inf
    return float(max(s["base"] + chunk[s["next"]]["arrival"], s["now"]))


# ---- time passes ---------------------------------------------------------------------------------


@jit
def work(s: Record, jobs: Array, orders: Slots, elapsed: float, completing: float) -> None:
    """Serve for some time; all that complete together have nothing left."""
    for i in range(s["served"]):
        job = jobs[orders[SERVED, i]]
        rate = job["rate"]
        together = job["remaining"] / rate == completing
        if job["attained"] == 0.0 and elapsed > 0.0:
            job["started"] = s["origin"] + s["now"]
        job["remaining"] = 0.0 if together else max(job["remaining"] - rate * elapsed, 0.0)
        job["attained"] += rate * elapsed
        job["busy_time"] += elapsed
    restore_order(s, jobs, orders)


@jit_apart
def use_patience(c: Record, s: Record, jobs: Array, orders: Slots, elapsed: float, running_out: float) -> None:
    """Let the patience clocks run; all that run out together have nothing left."""
    for i in range(s["number"]):
        job = jobs[orders[BY_ARRIVAL, i]]
        speed = clock_rate(c, job["rate"])
        if speed > 0.0:
            together = job["patience"] / speed == running_out
            job["patience"] = 0.0 if together else max(job["patience"] - speed * elapsed, 0.0)


@jit_apart
def shift_clock(s: Record) -> None:
    """Make now the new origin of time for all but the jobs."""
    now = s["now"]
    s["origin"] += now
    s["base"] -= now
    s["last_arrival"] -= now
    s["decided"] -= now
    s["decide_at"] -= now
    s["ends"] -= now
    s["switch"] -= now
    s["now"] = 0.0


@jit_apart
def rebase(s: Record, jobs: Array, orders: Slots) -> None:
    """Make now the new origin of time, so that the clock keeps its digits."""
    for i in range(s["number"]):
        jobs[orders[BY_ARRIVAL, i]]["arrival"] -= s["now"]
    shift_clock(s)


# ---- jobs come and go ----------------------------------------------------------------------------


@jit_apart
def note_arrival(s: Record, job: Record, records: Array) -> None:
    """Open the record of a job."""
    record = records[job["number"]]
    record["arrival_time"] = s["origin"] + job["arrival"]
    record["size"] = job["size"]
    record["start_time"] = record["departure_time"] = record["waiting_time"] = np.nan
    record["outcome"] = PRESENT


@jit
def admit(s: Record, jobs: Array, orders: Slots, chunk: Array, records: Array, c: Record) -> None:
    """Let the next job in."""
    patience = np.inf
    if c["clock"] != NO_CLOCK:
        patience = chunk[s["next"]]["patience"]
    s["last_arrival"] = s["now"]
    slot = enter(s, jobs, orders, chunk[s["next_size"]]["size"], patience)
    s["next"] += 1
    s["next_size"] += 1
    s["weight"] *= s["factor"]
    if c["recording"]:
        note_arrival(s, jobs[slot], records)


@jit
def depart(
    c: Record, s: Record, jobs: Array, orders: Slots, outcome: Floats, records: Array, slot: int, how: int
) -> None:
    """Let a job go and count it."""
    job = jobs[slot]
    response = s["now"] - job["arrival"]
    if how == LEFT_SERVED:
        outcome[COMPLETIONS] += 1
        outcome[RESPONSE] += response
        s["completed"] += 1
        s["response_sum"] += response
        s["slowdown_sum"] += response / job["size"]
        s["response_max"] = max(s["response_max"], response)
    else:
        outcome[ABANDONMENTS] += 1
        s["abandoned"] += 1
    if c["recording"]:
        record = records[job["number"]]
        record["start_time"] = job["started"]
        record["departure_time"] = s["origin"] + s["now"]
        record["waiting_time"] = max(response - job["busy_time"], 0.0)
        record["outcome"] = how
    leave(s, jobs, orders, slot)


@jit
def first_impatient(c: Record, s: Record, jobs: Array, orders: Slots) -> int:
    """Return whose patience has run out, of several the earliest."""
    for i in range(s["number"]):
        slot = orders[BY_ARRIVAL, i]
        if jobs[slot]["patience"] == 0.0 and clock_rate(c, jobs[slot]["rate"]) > 0.0:
            return int(slot)
    return -1


# ---- the end of an episode -----------------------------------------------------------------------


@jit
def end(s: Record, outcome: Floats, column: int, reason: int) -> None:
    """Note that the episode is over, and why; the first reason counts."""
    if outcome[REASON] == NO_REASON:
        outcome[column] = 1.0
        outcome[REASON] = reason
        s["done"] = 1


@jit
def check_end(c: Record, s: Record, outcome: Floats) -> None:
    """See whether an event has ended the episode."""
    if c["episode"] == BIG_JOB:
        if s["number"] == 0:
            end(s, outcome, TERMINATED, EMPTY_AGAIN)
    elif c["episode"] == JOBS and not s["given"] and s["completed"] + s["abandoned"] >= c["jobs"]:
        end(s, outcome, TRUNCATED, ALL_LEFT)
    if s["last_chunk"] and s["number"] == 0 and s["next"] == s["filled"]:
        end(s, outcome, TRUNCATED, WORKLOAD_OVER)


# ---- from one decision to the next ---------------------------------------------------------------


@jit
def missing(s: Record, chunk: Array) -> int:
    """Return what must be handed in before time can go on; a size that is not allowed is passed over."""
    need = READY
    if s["next"] == s["filled"]:
        if s["last_chunk"]:
            return READY
        need = NEED_ARRIVALS
    while s["next_size"] < s["sizes_filled"]:
        if chunk[s["next_size"]]["size"] <= s["largest_allowed"]:
            return need
        s["next_size"] += 1
    return need | NEED_SIZES


@jit
def event_happens(m: Batch, c: Record, s: Record, b: int) -> int:
    """Go to the next event; returns 1 if a job came or went, 0 if rates change, -1 if it is time to decide or stop."""
    jobs, orders, chunk, outcome = m.jobs[b], m.orders[b], m.chunks[b], m.outcomes[b]
    shortest = shortest_service(s, jobs, orders)
    running_out = np.inf
    if c["clock"] != NO_CLOCK:
        running_out = shortest_patience(c, s, jobs, orders)
    now = s["now"]
    completion, deadline, arrival = now + shortest, now + running_out, next_arrival(s, chunk)
    stop = min(s["decide_at"], s["ends"])
    time = min(completion, deadline, arrival, s["switch"], stop)
    if time == np.inf:
        end(s, outcome, TRUNCATED, STALLED)
        return -1
    elapsed = time - now
    if s["number"] > 0:
        work(s, jobs, orders, elapsed, shortest if completion == time else -1.0)
        if c["clock"] != NO_CLOCK:
            use_patience(c, s, jobs, orders, elapsed, running_out if deadline == time else -1.0)
    s["now"] = time
    s["number_area"] += s["number"] * elapsed
    charge(c, s, m.terms, m.table, jobs, orders, outcome, now)
    if completion == time:
        # Of several that have nothing left, the earliest.
        depart(c, s, jobs, orders, outcome, m.records[b], orders[BY_REMAINING, 0], LEFT_SERVED)
    elif deadline == time:
        slot = first_impatient(c, s, jobs, orders)
        charge_abandonment(c, s, m.terms, outcome)
        depart(c, s, jobs, orders, outcome, m.records[b], slot, ABANDONED)
    elif arrival == time:
        if s["number"] == orders.shape[1]:
            end(s, outcome, TRUNCATED, OVER_CAPACITY)
            return -1
        admit(s, jobs, orders, chunk, m.records[b], c)
    elif s["switch"] == time:
        cross(s, jobs, orders, m.rules[s["rule"]])
        restore_order(s, jobs, orders)
        return 0
    else:
        if time == s["ends"]:
            end(s, outcome, TRUNCATED, TIME_OVER)
        return -1
    check_end(c, s, outcome)
    return 1


@jit
def run(m: Batch, c: Record, s: Record, b: int) -> int:
    """Go on to the next decision, or until something must be handed in; returns READY or what is missing."""
    while True:
        need = missing(s, m.chunks[b])
        if need != READY:
            return need
        if s["now"] > FAR:
            rebase(s, m.jobs[b], m.orders[b])
        happened = event_happens(m, c, s, b)
        if s["done"] or happened < 0:
            return READY
        if happened > 0 and c["interval"] == 0.0:
            return READY
        set_rates(c, s, m.rules, m.jobs[b], m.orders[b])


# ---- actions -------------------------------------------------------------------------------------


@jit
def to_unit(c: Record, value: float) -> float:
    """Return an entry of an action on the scale of rates, finite."""
    if c["symmetric"] and c["action"] != PRIORITY:
        value = 0.5 * (between(-HUGE, value, HUGE) + 1.0)
    return between(-HUGE, value, HUGE)


@jit
def take_action(m: Batch, c: Record, s: Record, b: int) -> None:
    """Take up an action for the jobs of the last observation, and set the rates."""
    jobs, orders, action = m.jobs[b], m.orders[b], m.actions[b]
    kind = c["action"]
    if kind == RULE:
        s["rule"] = int(action[0])
    elif kind == ANCHOR_RATE:
        s["asked"] = between(0.0, to_unit(c, action[0]), 1.0)
    else:
        for i in range(s["number"]):
            jobs[orders[BY_ARRIVAL, i]]["desired"] = 0.0 if kind == ALLOCATION else -np.inf
        for i in range(s["shown"]):
            jobs[orders[TABLE, i]]["desired"] = to_unit(c, action[i])
    set_rates(c, s, m.rules, jobs, orders)
    if c["reporting"]:
        for i in range(c["slots"]):
            m.rates[b, i] = jobs[orders[TABLE, i]]["rate"] if i < s["shown"] else 0.0


@jit
def all_numbers(actions: Floats) -> bool:
    """Return whether no entry is NaN; in a loop without a way out, of which several rounds run at once."""
    count, width = actions.shape
    some = False
    for b in range(count):
        for i in range(width):
            some |= actions[b, i] != actions[b, i]
    return not some


@jit
def first_not_allowed(c: Record, systems: Array, rules: Array, actions: Floats) -> int:
    """Return which entry of the actions is not a number, or no rule, or -1; what will be ignored may be anything."""
    if c["action"] != RULE and all_numbers(actions):
        return -1
    count, width = actions.shape
    for b in range(count):
        for i in range(width):
            value = actions[b, i]
            no_rule = c["action"] == RULE and not (0.0 <= value < len(rules) and value == np.floor(value))
            if (np.isnan(value) or no_rule) and not (systems[b]["done"] and c["autoreset"] == NEXT_STEP):
                return int(b * width + i)
    return -1


# ---- the results of a step -----------------------------------------------------------------------


@jit
def sum_up(m: Batch, c: Record, s: Record, b: int) -> None:
    """Sum up the step: reward, time, and if the episode is over what it has been like."""
    outcome = m.outcomes[b]
    s["steps"] += 1
    if s["steps"] >= c["most_steps"] and not s["done"]:
        end(s, outcome, TRUNCATED, STEPS_OVER)
    cost = 0.0
    for t in range(c["terms"]):
        cost += m.terms[t]["weight"] * outcome[COSTS + t]
        outcome[EPISODE_COSTS + t] += outcome[COSTS + t]
    outcome[REWARD] = 0.0 - c["reward_scale"] * cost  # not -0.0
    outcome[ELAPSED] = s["now"] - s["decided"]
    note_time(s, outcome)
    if s["done"]:
        note_episode(s, outcome)


@jit
def note_decision(c: Record, s: Record) -> None:
    """Note that it is time to decide, and when it will be the next time."""
    s["decided"] = s["now"]
    s["decide_at"] = s["now"] + c["interval"] if c["interval"] > 0.0 else np.inf


@jit
def close_step(m: Batch, c: Record, s: Record, b: int) -> None:
    """End a step, and show what it has led to."""
    sum_up(m, c, s, b)
    observe(c, s, m.jobs[b], m.orders[b], s["now"] - s["decided"], m.observations[b])
    note_decision(c, s)


@jit
def note_time(s: Record, outcome: Floats) -> None:
    """Write down where the episode is."""
    outcome[TIME] = s["origin"] + s["now"]
    outcome[WEIGHT] = s["weight"]


@jit_apart
def note_episode(s: Record, outcome: Floats) -> None:
    """Write down what the episode has been like."""
    outcome[EPISODE] = s["completed"]
    outcome[EPISODE + 1] = s["abandoned"]
    outcome[EPISODE + 2] = s["response_sum"]
    outcome[EPISODE + 3] = s["slowdown_sum"]
    outcome[EPISODE + 4] = s["response_max"]
    outcome[EPISODE + 5] = s["number_area"]


@jit
def clear_step(c: Record, outcome: Floats) -> None:
    """Forget a step's results, but for those of the whole episode."""
    for i in range(COSTS + c["terms"]):
        outcome[i] = 0.0
    for i in range(COMPLETIONS, EPISODE_COSTS):
        outcome[i] = 0.0


# ---- episodes ------------------------------------------------------------------------------------


@jit_apart
def begin_episode(c: Record, s: Record, chunk: Array, outcome: Floats) -> None:
    """Empty the system and set everything that counts to zero; the jobs to come stay as they are."""
    clear(s)
    if not s["given"]:
        # The job that would have come next has been looked at: its gap is longer than that to the end, and its size may
        # have been limited. A new one takes its place.
        s["next"] += s["next"] < s["filled"]
        s["next_size"] += s["next_size"] < s["sizes_filled"]
    s["base"] = -chunk[s["next"] - 1]["arrival"] if s["next"] > 0 else 0.0
    s["now"] = s["origin"] = s["last_arrival"] = s["decided"] = 0.0
    s["response_sum"] = s["slowdown_sum"] = s["response_max"] = s["number_area"] = 0.0
    s["arrived"] = s["done"] = s["steps"] = s["completed"] = s["abandoned"] = s["crossed"] = 0
    s["switch"] = np.inf
    s["weight"] = s["factor"] = 1.0
    s["largest_allowed"] = np.inf
    s["ends"] = c["horizon"]
    s["decide_at"] = c["interval"] if c["interval"] > 0.0 else np.inf
    for i in range(OUTCOMES):
        outcome[i] = 0.0


@jit_apart
def admit_giant(c: Record, s: Record, jobs: Array, orders: Slots, giants: Floats, records: Array) -> None:
    """Start a big-job episode with its first job."""
    i = s["next_giant"]
    size = giants[GIANT_SIZE, i]
    s["next_giant"] += 1
    s["weight"] = giants[GIANT_WEIGHT, i]
    s["factor"] = giants[GIANT_FACTOR, i]
    s["largest_allowed"] = size
    slot = enter(s, jobs, orders, size, np.inf)
    if c["recording"]:
        note_arrival(s, jobs[slot], records)


@jit
def begin(m: Batch, c: Record, s: Record, b: int) -> int:
    """Begin an episode, up to its first arrival if that is where it starts; returns READY or what is missing."""
    if s["given"]:
        return NEED_SOURCE
    begin_episode(c, s, m.chunks[b], m.outcomes[b])
    if c["episode"] == BIG_JOB:
        if s["next_giant"] == s["giants_filled"]:
            return NEED_GIANTS
        admit_giant(c, s, m.jobs[b], m.orders[b], m.giants[b], m.records[b])
    s["stage"] = STARTING
    return READY


@jit
def open_episode(m: Batch, c: Record, s: Record, b: int) -> None:
    """Write the outcomes that go with the first observation of an episode."""
    s["decided"] = s["now"]
    s["done"] = 0
    clear_step(c, m.outcomes[b])
    note_time(s, m.outcomes[b])
    if m.last_outcomes[b, REASON] != NO_REASON:
        # The step that ended the last episode and began this one has the reward and the flags of its end.
        for column in (REWARD, TERMINATED, TRUNCATED):
            m.outcomes[b, column] = m.last_outcomes[b, column]


@jit
def show_start(m: Batch, c: Record, s: Record, b: int) -> None:
    """Write the first observation of an episode."""
    open_episode(m, c, s, b)
    observe(c, s, m.jobs[b], m.orders[b], 0.0, m.observations[b])


@jit
def keep_end(m: Batch, b: int) -> None:
    """Keep the end of an episode, to report it beside the beginning of the next."""
    for i in range(m.observations.shape[1]):
        m.last_observations[b, i] = m.observations[b, i]
    for i in range(OUTCOMES):
        m.last_outcomes[b, i] = m.outcomes[b, i]


@jit
def advance(m: Batch, c: Record, s: Record, b: int) -> int:
    """Bring one system to its next decision, or as far as it can go; returns READY or what is missing."""
    while True:
        if s["stage"] == RESETTING:
            need = begin(m, c, s, b)
            if need != READY:
                return need
        if s["stage"] == STEPPING or (s["stage"] == STARTING and s["number"] == 0 and c["interval"] == 0.0):
            need = run(m, c, s, b)
            if need != READY:
                return need
        if s["stage"] != STEPPING:
            show_start(m, c, s, b)
            return READY
        close_step(m, c, s, b)
        if not s["done"] or c["autoreset"] != SAME_STEP:
            return READY
        keep_end(m, b)
        s["stage"] = RESETTING


# ---- entry points --------------------------------------------------------------------------------


@jit
def begin_step(m: Batch, c: Record, s: Record, b: int) -> None:
    """Begin a step with the system's action, or by a reset if its episode is over."""
    if s["done"] and c["autoreset"] == NEXT_STEP:
        s["stage"] = RESETTING
        return
    s["stage"] = STEPPING
    clear_step(c, m.outcomes[b])
    if c["autoreset"] == SAME_STEP:
        m.last_outcomes[b, REASON] = NO_REASON
    take_action(m, c, s, b)


def _step(
    setup: Array,
    shares: Ints,
    status: Slots,
    systems: Array,
    jobs: Array,
    orders: Slots,
    chunks: Array,
    giants: Floats,
    terms: Array,
    table: Floats,
    rules: Array,
    actions: Floats,
    observations: Floats,
    last_observations: Floats,
    outcomes: Floats,
    last_outcomes: Floats,
    rates: Floats,
    records: Array,
    own: int,
    begins: bool,
) -> int:
    """Bring all systems to their next decision, together with other threads that follow.

    The arrays are those of `Batch`, in its order. Thread `own` 0 leads: with `begins` a step begins, with new actions;
    without, those systems go on that needed something. The others do what the leader asks for, until it has asked for
    nothing for long.

    Returns:
        To the leader, how many systems need something first; or -1-k if entry k of the actions is not allowed, and
        nothing has been done. To another, how many blocks it has done.
    """
    m = Batch(
        setup,
        shares,
        status,
        systems,
        jobs,
        orders,
        chunks,
        giants,
        terms,
        table,
        rules,
        actions,
        observations,
        last_observations,
        outcomes,
        last_outcomes,
        rates,
        records,
    )
    c = setup[0]
    if own == 0:
        bad = first_not_allowed(c, systems, rules, actions) if begins else -1
        if bad >= 0:
            return -1 - bad
        post(shares, begins)
    done = 0
    while True:
        block = take(shares, 0) if own == 0 else look_out(shares, own)
        if block < 0:
            break
        waiting = 0
        begins = new_step(shares)
        for b in range(first_system(shares, block, len(systems)), first_system(shares, block + 1, len(systems))):
            s = systems[b]
            if begins:
                begin_step(m, c, s, b)
            elif status[b] == READY:
                continue
            status[b] = advance(m, c, s, b)
            if status[b] != READY:
                waiting += 1
        finish(shares, waiting)
        done += 1
    return wait_for_all(shares) if own == 0 else done


step = jit_entry(_step)


def _empty(setup: Array, systems: Array, chunks: Array, outcomes: Floats, b: int) -> None:
    """Begin an episode of system b with nobody present; whom to put in comes next."""
    begin_episode(setup[0], systems[b], chunks[b], outcomes[b])
    systems[b]["stage"] = STARTING


empty = jit_entry(_empty)


def _put(
    setup: Array,
    systems: Array,
    jobs: Array,
    orders: Slots,
    records: Array,
    b: int,
    size: float,
    remaining: float,
    age: float,
    patience: float,
) -> int:
    """Put a job into system b that has been there for some time and has had some service; returns its slot."""
    s = systems[b]
    slot = enter(s, jobs[b], orders[b], size, patience)
    job = jobs[b][slot]
    job["remaining"] = remaining
    job["attained"] = size - remaining
    job["arrival"] = s["now"] - age
    restore_order(s, jobs[b], orders[b])
    if setup[0]["recording"]:
        note_arrival(s, job, records[b])
    return int(slot)


put = jit_entry(_put)
