"""From one decision to the next where the action is `threshold`: the event loop of systems of two classes."""

import math

import numpy as np

from queue_env.kernel.compile import jit, jit_apart, jit_entry
from queue_env.kernel.env_classes import (
    classify,
    close_gaps,
    empty_heaps,
    fill_heaps,
    forget_action,
    forget_start,
    join,
    keep_work,
    own,
    serve,
    set_zero,
    soonest,
    sum_work,
    take_leave,
    take_over,
    top,
    write_down,
)
from queue_env.kernel.env_classes_layout import BY_DEADLINE, BY_FINISH, BY_LEVEL, OLDEST, QUEUES, Classes, Own
from queue_env.kernel.env_costs import charge, charge_abandonment
from queue_env.kernel.env_events import (
    begin_episode,
    check_end,
    clear_step,
    end,
    first_not_allowed,
    keep_end,
    missing,
    next_arrival,
    note_arrival,
    note_decision,
    open_episode,
    shift_clock,
    sum_up,
    to_unit,
)
from queue_env.kernel.env_layout import (
    ABANDONMENTS,
    BIG_JOB,
    BY_ARRIVAL,
    COMPLETIONS,
    COST_ABANDON,
    COST_MEAN,
    COST_WAIT,
    FAR,
    GIANT_FACTOR,
    GIANT_SIZE,
    GIANT_WEIGHT,
    NEED_GIANTS,
    NEED_SOURCE,
    NEXT_STEP,
    NO_REASON,
    OVER_CAPACITY,
    READY,
    REASON,
    RESETTING,
    RESPONSE,
    SAME_STEP,
    STALLED,
    STARTING,
    STEPPING,
    TIME_OVER,
    TRUNCATED,
    Batch,
)
from queue_env.kernel.env_rates import between
from queue_env.kernel.env_view import compressed
from queue_env.kernel.layout import ABANDONED, NO_CLOCK, SERVED, Array, Floats, Ints, Record, Slots
from queue_env.kernel.turns import finish, first_system, look_out, new_step, post, take, wait_for_all

# ---- jobs come and go ----------------------------------------------------------------------------


@jit
def place_job(
    m: Batch,
    q: Classes,
    c: Record,
    b: int,
    size: float,
    remaining: float,
    age: float,
    patience: float,
    rank: float,
) -> None:
    """Let a job be there, and open its record."""
    s, o = m.systems[b], own(m.jobs, q, b)
    slot = join(c, s, q.states[b], o, size, remaining, age, patience, rank)
    if c["recording"]:
        note_arrival(s, o.jobs[slot], m.records[b])


@jit
def admit(m: Batch, q: Classes, c: Record, s: Record, b: int) -> None:
    """Let the next job in."""
    chunk, i = m.chunks[b], s["next_size"]
    patience = np.inf
    if c["clock"] != NO_CLOCK:
        patience = chunk[s["next"]]["patience"]
    s["last_arrival"] = s["now"]
    place_job(m, q, c, b, chunk[i]["size"], chunk[i]["size"], 0.0, patience, q.ranks[b, i])
    s["next"] += 1
    s["next_size"] += 1
    s["weight"] *= s["factor"]


@jit_apart
def record_departure(s: Record, job: Record, records: Array, waited: float, how: int) -> None:
    """Close the record of a job."""
    record = records[job["number"]]
    record["start_time"] = job["started"]
    record["departure_time"] = s["origin"] + s["now"]
    record["waiting_time"] = waited
    record["outcome"] = how


@jit
def depart(m: Batch, c: Record, s: Record, t: Record, o: Own, b: int, slot: int, how: int) -> None:
    """Let a job go and count it."""
    job, outcome = o.jobs[slot], m.outcomes[b]
    response = s["now"] - job["arrival"]
    take_leave(s, t, o, slot)
    if how == SERVED:
        outcome[COMPLETIONS] += 1
        outcome[RESPONSE] += response
        s["completed"] += 1
        s["response_sum"] += response
        s["slowdown_sum"] += response / job["size"]
        s["response_max"] = max(s["response_max"], response)
    else:
        forget_start(s, job)
        outcome[ABANDONMENTS] += 1
        s["abandoned"] += 1
    if c["recording"]:
        record_departure(s, job, m.records[b], o.standings[slot]["waited"], how)


# ---- the next event ------------------------------------------------------------------------------


@jit
def ages_cost(c: Record, terms: Array) -> bool:
    """Return whether there is a cost that depends on the age or the size of each job present."""
    for t in range(c["terms"]):
        kind = terms[t]["kind"]
        if kind not in (COST_MEAN, COST_WAIT, COST_ABANDON):
            return True
    return False


@jit
def list_present(t: Record, o: Own, orders: Slots) -> None:
    """Write the order of arrival where the costs of each job look for it."""
    close_gaps(t, o)
    for i in range(t["listed"]):
        orders[BY_ARRIVAL, i] = o.order[i]


@jit
def pass_time(m: Batch, c: Record, s: Record, t: Record, o: Own, b: int, time: float) -> None:
    """Move the clock and charge for the time."""
    now = s["now"]
    elapsed = time - now
    s["now"] = time
    t["work"] -= s["served"] * elapsed
    s["number_area"] += s["number"] * elapsed
    if ages_cost(c, m.terms):
        list_present(t, o, m.orders[b])
    charge(c, s, m.terms, m.table, o.jobs, m.orders[b], m.outcomes[b], now)
    if time > FAR:
        set_zero(c, s, t, o)
        shift_clock(s)


@jit
def event_happens(m: Batch, q: Classes, c: Record, s: Record, t: Record, o: Own, b: int) -> int:
    """Go to the next event; returns 1 if a job came or went, 0 if one loses priority, -1 if it is time to stop."""
    outcome = m.outcomes[b]
    completion, deadline = soonest(o, BY_FINISH), soonest(o, BY_DEADLINE)
    arrival, loss = next_arrival(s, m.chunks[b]), soonest(o, BY_LEVEL)
    time = min(completion, deadline, arrival, loss, s["decide_at"], s["ends"])
    if time == np.inf:
        end(s, outcome, TRUNCATED, STALLED)
        return -1
    over = time == s["ends"]
    pass_time(m, c, s, t, o, b, time)
    if completion == time:
        depart(m, c, s, t, o, b, top(o, BY_FINISH), SERVED)
    elif deadline == time:
        charge_abandonment(c, s, m.terms, outcome)
        depart(m, c, s, t, o, b, top(o, BY_DEADLINE), ABANDONED)
    elif arrival == time:
        if s["number"] == len(o.order):
            end(s, outcome, TRUNCATED, OVER_CAPACITY)
            return -1
        admit(m, q, c, s, b)
    elif loss == time:
        return 0  # those who lose their priority now do so all at once, before anybody is served
    else:
        if over:
            end(s, outcome, TRUNCATED, TIME_OVER)
        return -1
    keep_work(s, t, o)
    check_end(c, s, outcome)
    return 1


@jit
def run(m: Batch, q: Classes, c: Record, s: Record, b: int) -> int:
    """Go on to the next decision, or until something must be handed in; returns READY or what is missing."""
    t, o = q.states[b], own(m.jobs, q, b)
    while True:
        need = missing(s, m.chunks[b])
        if need != READY:
            return need
        happened = event_happens(m, q, c, s, t, o, b)
        if s["done"] or happened < 0:
            return READY
        if happened > 0 and c["interval"] == 0.0:
            return READY
        serve(c, s, t, o)


# ---- actions -------------------------------------------------------------------------------------


@jit
def young_until(c: Record, order: float) -> float:
    """Return the age up to which the oldest go first, by the second number of the action."""
    if order <= 0.0:
        return np.inf
    return float(c["unit"] * (1.0 - order) / order)


@jit
def take_action(m: Batch, q: Classes, c: Record, s: Record, b: int) -> None:
    """Take up an action: sort the jobs into its classes, and serve by it."""
    action, t, o = m.actions[b], q.states[b], own(m.jobs, q, b)
    share = between(0.0, to_unit(c, action[0]), 1.0)
    level = 0.0 if c["known"] else action[2]
    t["within"] = young_until(c, between(0.0, to_unit(c, action[1]), 1.0))
    if share != t["share"] or level != t["level"]:
        t["share"], t["level"] = share, level
        classify(c, s, t, o)
    serve(c, s, t, o)


# ---- observations --------------------------------------------------------------------------------


@jit
def a_server(c: Record, jobs: int) -> float:
    """Return the compressed number of jobs a server."""
    return math.log1p(jobs / c["servers"])


@jit_apart
def summarise(c: Record, s: Record, t: Record, o: Own, outcome: Floats, elapsed: float, view: Floats) -> None:
    """Write an observation."""
    view[0] = a_server(c, s["number"])
    view[1] = s["served"] / c["servers"]
    view[2] = t["first_served"] / c["servers"]
    view[3] = a_server(c, s["number"] - s["served"])
    view[4] = a_server(c, o.counts[QUEUES] + o.counts[QUEUES + 1])
    view[5] = 0.0
    if o.counts[OLDEST] > 0:
        view[5] = compressed(s["now"] - o.jobs[top(o, OLDEST)]["arrival"], c["unit"])
    view[6] = compressed(elapsed, c["unit"])
    view[7] = math.log1p(s["arrived"] - t["arrived_before"])
    view[8] = math.log1p(outcome[COMPLETIONS])
    view[9] = math.log1p(outcome[ABANDONMENTS])
    if c["known"]:
        view[10] = compressed(t["work"], c["unit"] * c["servers"])
    t["arrived_before"] = s["arrived"]


@jit
def show(m: Batch, q: Classes, c: Record, s: Record, b: int, elapsed: float) -> None:
    """Show what a step has led to."""
    summarise(c, s, q.states[b], own(m.jobs, q, b), m.outcomes[b], elapsed, m.observations[b])


# ---- episodes ------------------------------------------------------------------------------------


@jit
def clear(c: Record, s: Record, t: Record, o: Own, chunk: Array, outcome: Floats) -> None:
    """Begin an episode with nobody present."""
    begin_episode(c, s, chunk, outcome)
    empty_heaps(s, t, o, 0)
    forget_action(c, t)


@jit
def begin(m: Batch, q: Classes, c: Record, s: Record, b: int) -> int:
    """Begin an episode, up to its first arrival if that is where it starts; returns READY or what is missing."""
    if s["given"]:
        return NEED_SOURCE
    clear(c, s, q.states[b], own(m.jobs, q, b), m.chunks[b], m.outcomes[b])
    if c["episode"] == BIG_JOB:
        i, giants = s["next_giant"], m.giants[b]
        if i == s["giants_filled"]:
            return NEED_GIANTS
        s["next_giant"] += 1
        s["weight"], s["factor"] = giants[GIANT_WEIGHT, i], giants[GIANT_FACTOR, i]
        s["largest_allowed"] = giants[GIANT_SIZE, i]
        place_job(m, q, c, b, giants[GIANT_SIZE, i], giants[GIANT_SIZE, i], 0.0, np.inf, giants[GIANT_FACTOR, i])
    s["stage"] = STARTING
    return READY


@jit
def advance(m: Batch, q: Classes, c: Record, s: Record, b: int) -> int:
    """Bring one system to its next decision, or as far as it can go; returns READY or what is missing."""
    while True:
        if s["stage"] == RESETTING:
            need = begin(m, q, c, s, b)
            if need != READY:
                return need
        if s["stage"] == STEPPING or (s["stage"] == STARTING and s["number"] == 0 and c["interval"] == 0.0):
            need = run(m, q, c, s, b)
            if need != READY:
                return need
        if s["stage"] != STEPPING:
            open_episode(m, c, s, b)
            q.states[b]["arrived_before"] = s["arrived"]
            show(m, q, c, s, b, 0.0)
            return READY
        sum_up(m, c, s, b)
        show(m, q, c, s, b, s["now"] - s["decided"])
        note_decision(c, s)
        if not s["done"] or c["autoreset"] != SAME_STEP:
            return READY
        keep_end(m, b)
        s["stage"] = RESETTING


# ---- entry points --------------------------------------------------------------------------------


@jit
def begin_step(m: Batch, q: Classes, c: Record, s: Record, b: int) -> None:
    """Begin a step with the system's action, or by a reset if its episode is over."""
    if s["done"] and c["autoreset"] == NEXT_STEP:
        s["stage"] = RESETTING
        return
    s["stage"] = STEPPING
    clear_step(c, m.outcomes[b])
    if c["autoreset"] == SAME_STEP:
        m.last_outcomes[b, REASON] = NO_REASON
    take_action(m, q, c, s, b)


def _step_classes(
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
    states: Array,
    standings: Array,
    order: Ints,
    free: Ints,
    heaps: Array,
    places: Ints,
    counts: Ints,
    ranks: Floats,
    own: int,
    begins: bool,
) -> int:
    """Bring all systems to their next decision, as `env_events.step` does; the arrays are those of both."""
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
    q = Classes(states, standings, order, free, heaps, places, counts, ranks)
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
                begin_step(m, q, c, s, b)
            elif status[b] == READY:
                continue
            status[b] = advance(m, q, c, s, b)
            if status[b] != READY:
                waiting += 1
        finish(shares, waiting)
        done += 1
    return wait_for_all(shares) if own == 0 else done


step_classes = jit_entry(_step_classes)


def _empty_classes(
    setup: Array,
    systems: Array,
    chunks: Array,
    outcomes: Floats,
    jobs: Array,
    states: Array,
    standings: Array,
    order: Ints,
    free: Ints,
    heaps: Array,
    places: Ints,
    counts: Ints,
    ranks: Floats,
    b: int,
) -> None:
    """Begin an episode of system b with nobody present; whom to put in comes next."""
    q = Classes(states, standings, order, free, heaps, places, counts, ranks)
    clear(setup[0], systems[b], q.states[b], own(jobs, q, b), chunks[b], outcomes[b])
    systems[b]["stage"] = STARTING


empty_classes = jit_entry(_empty_classes)


def _put_class(
    setup: Array,
    systems: Array,
    jobs: Array,
    records: Array,
    states: Array,
    standings: Array,
    order: Ints,
    free: Ints,
    heaps: Array,
    places: Ints,
    counts: Ints,
    ranks: Floats,
    b: int,
    size: float,
    remaining: float,
    age: float,
    patience: float,
    rank: float,
) -> None:
    """Put a job into system b that has been there for some time and has had some service."""
    q = Classes(states, standings, order, free, heaps, places, counts, ranks)
    c, s = setup[0], systems[b]
    slot = join(c, s, q.states[b], own(jobs, q, b), size, remaining, age, patience, rank)
    if c["recording"]:
        note_arrival(s, jobs[b, slot], records[b])


put_class = jit_entry(_put_class)


def _rebuild(
    setup: Array,
    systems: Array,
    jobs: Array,
    states: Array,
    standings: Array,
    order: Ints,
    free: Ints,
    heaps: Array,
    places: Ints,
    counts: Ints,
    ranks: Floats,
    b: int,
    foreign: bool,
) -> None:
    """Go on from the jobs present in system b, in the first slots by job number, perhaps of a state of another kind."""
    q = Classes(states, standings, order, free, heaps, places, counts, ranks)
    c, s, t, o = setup[0], systems[b], q.states[b], own(jobs, q, b)
    work, most_work, until_sum = t["work"], t["most_work"], t["until_sum"]
    empty_heaps(s, t, o, s["number"])
    if foreign:
        take_over(c, s, t, o)
    fill_heaps(c, s, t, o)
    if foreign:
        sum_work(s, t, o)
    else:
        t["work"], t["most_work"], t["until_sum"] = work, most_work, until_sum


rebuild = jit_entry(_rebuild)


def _settle(
    setup: Array,
    systems: Array,
    jobs: Array,
    orders: Slots,
    states: Array,
    standings: Array,
    order: Ints,
    free: Ints,
    heaps: Array,
    places: Ints,
    counts: Ints,
    ranks: Floats,
    b: int,
) -> None:
    """Write down how each job of system b is now, and the order of arrival."""
    q = Classes(states, standings, order, free, heaps, places, counts, ranks)
    write_down(setup[0], systems[b], q.states[b], own(jobs, q, b), orders[b])


settle = jit_entry(_settle)
