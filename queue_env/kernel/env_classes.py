"""Two classes of jobs in heaps: the first has preemptive priority; O(log N) an event, whatever the number of servers.

A job in service keeps its finish, and a running patience clock its end, so nothing is touched while time passes. Rates
are zero and one, so the clocks `queue` and `fractional` are the same.
"""

import numpy as np

from queue_env.kernel import heaps
from queue_env.kernel.compile import jit, jit_apart
from queue_env.kernel.env_classes_layout import (
    BY_DEADLINE,
    BY_FINISH,
    BY_LEVEL,
    GONE,
    OLDEST,
    QUEUES,
    TO_YIELD,
    Classes,
    Own,
)
from queue_env.kernel.env_layout import BY_ARRIVAL
from queue_env.kernel.layout import NO_CLOCK, SOJOURN_CLOCK, Array, Record, Slots

LEAST_UNTIL_SUM = 64  # events between two sums of the work present
LOST_DIGITS = 2.0**-20  # the sum is made anew when the work has fallen to this part of what it was


@jit
def own(jobs: Array, q: Classes, b: int) -> Own:
    """Return the arrays of system b."""
    return Own(jobs[b], q.standings[b], q.order[b], q.free[b], q.heaps[b], q.places[b], q.counts[b])


# ---- heaps -----------------------------------------------------------------------------------------------


@jit
def add(o: Own, which: int, key: float, tie: int, slot: int) -> None:
    """Put a job into a heap."""
    heaps.push(o.heaps[which], o.places[min(which, QUEUES)], o.counts[which], key, tie, slot)
    o.counts[which] += 1


@jit
def drop(o: Own, which: int, slot: int) -> None:
    """Take a job out of a heap."""
    heaps.remove(o.heaps[which], o.places[min(which, QUEUES)], o.counts[which], slot)
    o.counts[which] -= 1


@jit
def drop_if_in(o: Own, which: int, slot: int) -> None:
    """Take a job out of a heap, if it is in it."""
    if o.places[which, slot] >= 0:
        drop(o, which, slot)


@jit
def top(o: Own, which: int) -> int:
    """Return the first of a heap that is not empty."""
    return int(o.heaps[which, 0]["slot"])


@jit
def soonest(o: Own, which: int) -> float:
    """Return the smallest key of a heap of times, or infinity."""
    if o.counts[which] == 0:
        return np.inf
    time: float = o.heaps[which, 0]["key"]
    return time


# ---- one job ---------------------------------------------------------------------------------------------


@jit
def remaining_of(s: Record, o: Own, slot: int) -> float:
    """Return what is left of a job; of one whose service begins just now what it begins with, unrounded."""
    standing = o.standings[slot]
    if standing["queue"] < 0 and standing["since"] < s["now"]:
        return float(max(standing["finish"] - s["now"], 0.0))
    return float(o.jobs[slot]["remaining"])


@jit
def is_first(c: Record, s: Record, t: Record, o: Own, slot: int) -> int:
    """Return one if the held action gives a job priority, else zero."""
    job, standing = o.jobs[slot], o.standings[slot]
    if c["known"]:
        return 1 if t["share"] >= 1.0 or (t["share"] > 0.0 and standing["rank"] <= t["share"]) else 0
    # What it has attained is rounded: who has reached a level once has reached it.
    attained = s["now"] - standing["begun"] if standing["queue"] < 0 else job["size"] - job["remaining"]
    return 1 if attained < t["level"] and standing["passed"] < t["level"] else 0


@jit
def add_to_queue(s: Record, t: Record, o: Own, slot: int) -> None:
    """Put a waiting job into the queue of its class and age: the young oldest first, the old newest first."""
    job, standing = o.jobs[slot], o.standings[slot]
    queue = QUEUES if standing["first"] else QUEUES + 2
    key = float(standing["epoch"])
    if s["now"] - job["arrival"] > t["within"]:
        queue += 1
        key = -key
    standing["queue"] = queue
    add(o, queue, key, job["number"], slot)


@jit
def add_to_yielding(c: Record, o: Own, slot: int) -> None:
    """Add a served job of the second class to those that can be preempted.

    The one of longest remaining size goes first, or where sizes are hidden that of most attained service. Both are in
    an order that does not change while they are served.
    """
    standing = o.standings[slot]
    add(o, TO_YIELD, -standing["finish"] if c["known"] else standing["begun"], -o.jobs[slot]["number"], slot)


@jit
def add_to_level(c: Record, t: Record, o: Own, slot: int) -> None:
    """Note when a served job of the first class will have had so much service that it loses its priority."""
    if not c["known"] and t["level"] < np.inf:
        add(o, BY_LEVEL, o.standings[slot]["begun"] + t["level"], o.jobs[slot]["number"], slot)


@jit
def wait(c: Record, s: Record, t: Record, o: Own, slot: int) -> None:
    """Let a job wait from now on; its clock runs."""
    job, standing = o.jobs[slot], o.standings[slot]
    standing["since"] = s["now"]
    if c["clock"] != NO_CLOCK and o.places[BY_DEADLINE, slot] < 0 and job["patience"] < np.inf:
        standing["due"] = s["now"] + job["patience"]
        add(o, BY_DEADLINE, standing["due"], job["number"], slot)
    add_to_queue(s, t, o, slot)
    add(o, OLDEST, float(job["number"]), job["number"], slot)


@jit
def leave_queue(s: Record, o: Own, slot: int) -> None:
    """Let a job wait no longer."""
    standing = o.standings[slot]
    standing["waited"] += s["now"] - standing["since"]
    drop(o, standing["queue"], slot)
    drop(o, OLDEST, slot)
    standing["queue"] = -1


@jit
def give_up_server(s: Record, t: Record, o: Own, slot: int) -> None:
    """Take a job's server."""
    drop_if_in(o, TO_YIELD, slot)
    drop_if_in(o, BY_LEVEL, slot)
    t["first_served"] -= o.standings[slot]["first"]
    s["served"] -= 1
    o.jobs[slot]["rate"] = 0.0


@jit
def leave_service(s: Record, t: Record, o: Own, slot: int) -> None:
    """Take a job's server, if it still has one, and let it finish at no time."""
    drop(o, BY_FINISH, slot)
    if o.jobs[slot]["rate"] > 0.0:
        give_up_server(s, t, o, slot)


@jit_apart
def begin_service(c: Record, s: Record, t: Record, o: Own, slot: int) -> None:
    """Give a waiting job a server."""
    job, standing = o.jobs[slot], o.standings[slot]
    leave_queue(s, o, slot)
    if c["clock"] != SOJOURN_CLOCK and o.places[BY_DEADLINE, slot] >= 0:
        drop(o, BY_DEADLINE, slot)
        if standing["since"] < s["now"]:
            job["patience"] = max(standing["due"] - s["now"], 0.0)
        standing["due"] = np.inf
    standing["since"] = s["now"]
    standing["finish"] = s["now"] + job["remaining"]
    standing["begun"] = s["now"] - (job["size"] - job["remaining"])
    job["rate"] = 1.0
    if np.isnan(job["started"]) and job["remaining"] == job["size"]:
        job["started"] = s["origin"] + s["now"]
    s["served"] += 1
    t["first_served"] += standing["first"]
    add(o, BY_FINISH, standing["finish"], job["number"], slot)
    if standing["first"]:
        add_to_level(c, t, o, slot)
    else:
        add_to_yielding(c, o, slot)


@jit
def forget_start(s: Record, job: Record) -> None:
    """Take back that a job has begun, if its service has lasted no time."""
    if job["started"] == s["origin"] + s["now"]:
        job["started"] = np.nan


@jit_apart
def preempt(c: Record, s: Record, t: Record, o: Own, slot: int) -> None:
    """Let a job in service wait; one that finishes now loses its server too, but nothing can keep it."""
    if o.standings[slot]["finish"] <= s["now"]:
        give_up_server(s, t, o, slot)
        return
    o.jobs[slot]["remaining"] = remaining_of(s, o, slot)
    forget_start(s, o.jobs[slot])
    leave_service(s, t, o, slot)
    wait(c, s, t, o, slot)


# ---- who is served ---------------------------------------------------------------------------------------


@jit_apart
def sort_by_age(s: Record, t: Record, o: Own, young: int) -> None:
    """Move the waiting jobs of a class that have come of age, or are young again by another action, to their queue."""
    for queue in (young, young + 1):
        while o.counts[queue] > 0:
            slot = top(o, queue)
            old = s["now"] - o.jobs[slot]["arrival"] > t["within"]
            if old == (queue > young):
                break
            drop(o, queue, slot)
            add_to_queue(s, t, o, slot)


@jit
def next_of(s: Record, t: Record, o: Own, young: int) -> int:
    """Return who of the waiting jobs of a class is served next, or -1."""
    if o.counts[young] + o.counts[young + 1] == 0:
        return -1
    sort_by_age(s, t, o, young)
    return top(o, young if o.counts[young] > 0 else young + 1)


@jit
def lose_priority(c: Record, t: Record, o: Own) -> None:
    """Let the served job be of the second class that has had as much service as the level says."""
    slot = top(o, BY_LEVEL)
    drop(o, BY_LEVEL, slot)
    o.standings[slot]["first"] = 0
    o.standings[slot]["passed"] = t["level"]
    t["first_served"] -= 1
    add_to_yielding(c, o, slot)


@jit_apart
def serve(c: Record, s: Record, t: Record, o: Own) -> None:
    """Give free servers to waiting jobs, and to those of the first class the servers of the second."""
    while soonest(o, BY_LEVEL) <= s["now"]:
        lose_priority(c, t, o)
    while s["served"] < c["servers"]:
        slot = next_of(s, t, o, QUEUES)
        if slot < 0:
            slot = next_of(s, t, o, QUEUES + 2)
        if slot < 0:
            return
        begin_service(c, s, t, o, slot)
    while o.counts[TO_YIELD] > 0 and o.counts[QUEUES] + o.counts[QUEUES + 1] > 0:
        slot = next_of(s, t, o, QUEUES)
        preempt(c, s, t, o, top(o, TO_YIELD))
        begin_service(c, s, t, o, slot)


@jit
def change_class(c: Record, s: Record, t: Record, o: Own, slot: int, first: int) -> None:
    """Move a job to the class that it is of by another action."""
    standing = o.standings[slot]
    if standing["queue"] >= 0:
        if standing["first"] != first:
            drop(o, standing["queue"], slot)
            standing["first"] = first
            add_to_queue(s, t, o, slot)
        return
    if o.jobs[slot]["rate"] == 0.0:
        return  # it leaves now
    drop_if_in(o, BY_LEVEL, slot)
    if first:
        drop_if_in(o, TO_YIELD, slot)
        add_to_level(c, t, o, slot)
    elif standing["first"]:
        add_to_yielding(c, o, slot)
    t["first_served"] += first - standing["first"]
    standing["first"] = first


@jit_apart
def classify(c: Record, s: Record, t: Record, o: Own) -> None:
    """Sort the jobs present into the classes of another action; O(N), and O(log N) for each that changes."""
    for i in range(t["listed"]):
        slot = o.order[i]
        if slot != GONE:
            change_class(c, s, t, o, slot, is_first(c, s, t, o, slot))


# ---- jobs come and go ------------------------------------------------------------------------------------


@jit_apart
def close_gaps(t: Record, o: Own) -> None:
    """Close the gaps that jobs have left in the order of arrival."""
    count = 0
    for i in range(t["listed"]):
        slot = o.order[i]
        if slot != GONE:
            o.order[count] = slot
            o.standings[slot]["place"] = count
            count += 1
    t["listed"] = count


@jit
def list_last(t: Record, o: Own, slot: int) -> None:
    """Add a job to the order of arrival; those that come at one time are of one epoch."""
    if t["listed"] == len(o.order):
        close_gaps(t, o)
    job, standing, last = o.jobs[slot], o.standings[slot], t["listed"]
    standing["epoch"] = job["number"]
    if last > 0 and o.jobs[o.order[last - 1]]["arrival"] == job["arrival"]:
        standing["epoch"] = o.standings[o.order[last - 1]]["epoch"]
    standing["place"] = last
    o.order[last] = slot
    t["listed"] += 1


@jit
def join(
    c: Record, s: Record, t: Record, o: Own, size: float, remaining: float, age: float, patience: float, rank: float
) -> int:
    """Give a job a slot and let it wait; returns the slot."""
    t["free"] -= 1
    slot = int(o.free[t["free"]])
    job, standing = o.jobs[slot], o.standings[slot]
    job["number"] = s["arrived"]
    job["size"] = size
    job["remaining"] = remaining
    job["attained"] = size - remaining
    job["arrival"] = s["now"] - age
    job["rate"] = job["busy_time"] = 0.0
    job["desired"] = -np.inf
    job["patience"] = patience
    job["started"] = np.nan
    job["log_size"] = -1.0
    job["mark"] = 0
    standing["due"] = np.inf
    standing["waited"] = age
    standing["rank"] = rank
    standing["passed"] = 0.0
    standing["queue"] = QUEUES
    standing["first"] = is_first(c, s, t, o, slot)
    s["arrived"] += 1
    s["number"] += 1
    t["work"] += remaining
    list_last(t, o, slot)
    wait(c, s, t, o, slot)
    return slot


@jit_apart
def take_leave(s: Record, t: Record, o: Own, slot: int) -> None:
    """Take a job out of the system."""
    job, standing = o.jobs[slot], o.standings[slot]
    job["remaining"] = remaining_of(s, o, slot)
    t["work"] -= job["remaining"]
    if standing["queue"] >= 0:
        leave_queue(s, o, slot)
    else:
        leave_service(s, t, o, slot)
    drop_if_in(o, BY_DEADLINE, slot)
    o.order[standing["place"]] = GONE
    while t["listed"] > 0 and o.order[t["listed"] - 1] == GONE:
        t["listed"] -= 1
    o.free[t["free"]] = slot
    t["free"] += 1
    s["number"] -= 1
    if t["listed"] > 2 * s["number"] + LEAST_UNTIL_SUM:
        close_gaps(t, o)


@jit_apart
def sum_work(s: Record, t: Record, o: Own) -> None:
    """Sum up the work present, so that what rounds off does not gather."""
    work = 0.0
    for i in range(t["listed"]):
        if o.order[i] != GONE:
            work += remaining_of(s, o, o.order[i])
    t["work"] = t["most_work"] = work
    t["until_sum"] = max(s["number"], LEAST_UNTIL_SUM)


@jit
def keep_work(s: Record, t: Record, o: Own) -> None:
    """Note that an event has changed the work present, and sum it up when it is time; O(1) an event on average."""
    t["until_sum"] -= 1
    t["most_work"] = max(t["most_work"], t["work"])
    if t["until_sum"] < 0 or t["work"] < t["most_work"] * LOST_DIGITS:
        sum_work(s, t, o)


# ---- all at once -----------------------------------------------------------------------------------------


@jit
def forget_action(c: Record, t: Record) -> None:
    """Hold what is held before the first decision: nobody has priority, and the oldest go first."""
    t["share"] = t["level"] = 0.0
    t["within"] = np.inf
    t["by_service"] = 1 - c["known"]


@jit_apart
def empty_heaps(s: Record, t: Record, o: Own, number: int) -> None:
    """Take all jobs out of the heaps and the order of arrival; the first slots are in use, so many."""
    o.places[:, :] = -1
    o.counts[:] = 0
    capacity = len(o.free)
    for i in range(capacity - number):
        o.free[i] = capacity - 1 - i
    t["free"] = capacity - number
    t["listed"] = t["first_served"] = t["until_sum"] = 0
    t["work"] = t["most_work"] = 0.0
    s["served"] = 0


@jit_apart
def set_zero(c: Record, s: Record, t: Record, o: Own) -> None:
    """Move all times of the jobs present to a clock that is zero now; the caller sets the clock."""
    now = s["now"]
    for i in range(t["listed"]):
        slot = o.order[i]
        if slot != GONE:
            o.jobs[slot]["arrival"] -= now
            standing = o.standings[slot]
            standing["since"] -= now
            standing["finish"] -= now
            standing["begun"] -= now
            standing["due"] -= now
    for which in (BY_FINISH, TO_YIELD, BY_LEVEL, BY_DEADLINE):
        for i in range(o.counts[which]):
            entry = o.heaps[which, i]
            # The keys of those that yield are minus a time where sizes are known.
            entry["key"] += now if which == TO_YIELD and c["known"] else -now
        heaps.restore(o.heaps[which], o.places[which], o.counts[which])


@jit_apart
def write_down(c: Record, s: Record, t: Record, o: Own, orders: Slots) -> None:
    """Write down how each job of a system is now, for those who look in; its future is the same, to the bit."""
    close_gaps(t, o)
    for i in range(s["number"]):
        slot = o.order[i]
        orders[BY_ARRIVAL, i] = slot
        job, standing = o.jobs[slot], o.standings[slot]
        waiting = s["now"] - standing["since"] if standing["queue"] >= 0 else 0.0
        job["remaining"] = remaining_of(s, o, slot)
        job["attained"] = job["size"] - job["remaining"]
        job["busy_time"] = s["now"] - job["arrival"] - (standing["waited"] + waiting)
        if standing["due"] < np.inf and (standing["since"] < s["now"] or c["clock"] == SOJOURN_CLOCK):
            job["patience"] = max(standing["due"] - s["now"], 0.0)


@jit_apart
def take_over(c: Record, s: Record, t: Record, o: Own) -> None:
    """Let jobs that another action has left, in the first slots, be of the second class; n at most go on in service."""
    forget_action(c, t)
    served = 0
    for slot in range(s["number"]):
        job, standing = o.jobs[slot], o.standings[slot]
        waits = job["rate"] == 0.0 or served == c["servers"]
        served += 0 if waits else 1
        job["rate"] = 0.0 if waits else 1.0
        standing["since"] = s["now"]
        standing["waited"] = s["now"] - job["arrival"] - job["busy_time"]
        standing["finish"] = s["now"] + job["remaining"]
        standing["begun"] = s["now"] - job["attained"]
        standing["due"] = s["now"] + job["patience"] if waits or c["clock"] == SOJOURN_CLOCK else np.inf
        standing["passed"] = 0.0
        standing["first"] = 0
        standing["queue"] = QUEUES if waits else -1


@jit_apart
def fill_heaps(c: Record, s: Record, t: Record, o: Own) -> None:
    """Put the jobs present, which are in the first slots by job number, into the heaps and the order of arrival."""
    for slot in range(s["number"]):
        job, standing = o.jobs[slot], o.standings[slot]
        list_last(t, o, slot)
        if standing["due"] < np.inf and c["clock"] != NO_CLOCK:
            add(o, BY_DEADLINE, standing["due"], job["number"], slot)
        if standing["queue"] >= 0:
            add_to_queue(s, t, o, slot)
            add(o, OLDEST, float(job["number"]), job["number"], slot)
            continue
        add(o, BY_FINISH, standing["finish"], job["number"], slot)
        if job["rate"] == 0.0:
            continue
        s["served"] += 1
        t["first_served"] += standing["first"]
        if standing["first"]:
            add_to_level(c, t, o, slot)
        else:
            add_to_yielding(c, o, slot)
