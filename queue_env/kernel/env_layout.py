"""The memory of B systems that wait for decisions: structured arrays with one row a system, and what their codes mean.

All that a system knows between two decisions lies in its rows, so copying them is a snapshot.
"""

from typing import Any, NamedTuple

import numpy as np

from queue_env.kernel.layout import Array, Floats, Slots, record_type

# ---- what stands between a system and its next decision ------------------------------------------
READY = 0
NEED_ARRIVALS = 1  # the arrival times in memory are used up
NEED_SIZES = 2  # the sizes are
NEED_GIANTS = 3  # the first jobs of big-job episodes are
NEED_SOURCE = 4  # a workload that was handed in for one episode must make way for the stream

# ---- what a call of the kernel is doing for a system ---------------------------------------------
STEPPING = 0
RESETTING = 1
STARTING = 2  # the episode has begun, its first decision has not come
RESUMING = 3  # a snapshot has been put back, and waits for its decision

# ---- actions -------------------------------------------------------------------------------------
ALLOCATION = 0
ANCHOR_RATE = 1
PRIORITY = 2
RULE = 3

# ---- reference rules -----------------------------------------------------------------------------
FCFS = 0
LCFS = 1
PLCFS = 2
SRPT = 3
PSJF = 4
SJF = 5
PS = 6
LAS = 7
LARGEST_FIRST = 8  # split
LARGE_APART = 9  # thresh-split
MARGIN = 10  # dynasplit
BELOW_BACKLOG = 11  # backlog-split

# ---- observations --------------------------------------------------------------------------------
FLAT = 0
RAW = 1
COMPACT = 2

# ---- episodes and how they end -------------------------------------------------------------------
JOBS = 0
HORIZON = 1
BIG_JOB = 2
NEXT_STEP = 0
SAME_STEP = 1
DISABLED = 2
REASONS = (
    "",
    "jobs: as many as asked for have left",
    "horizon: its time is over",
    "empty: the system is empty again",
    "capacity: more jobs than it can hold",
    "workload: its last job has left",
    "stalled: nobody is served and nobody arrives",
    "steps: as many as allowed",
)
NO_REASON, ALL_LEFT, TIME_OVER, EMPTY_AGAIN, OVER_CAPACITY, WORKLOAD_OVER, STALLED, STEPS_OVER = range(len(REASONS))

# ---- cost terms ----------------------------------------------------------------------------------
COST_TAIL = 0
COST_MEAN = 1
COST_SLOWDOWN = 2
COST_MOMENT = 3
COST_EXCEED = 4
COST_WAIT = 5
COST_ABANDON = 6
MOST_TERMS = 8
COST_BITS = 6  # 2^6 bins an octave of the table of the tail cost

# ---- rows of `orders` ----------------------------------------------------------------------------
BY_REMAINING = 0  # slots of the jobs present, smallest remaining first, then by job number
BY_ARRIVAL = 1  # slots of the jobs present by job number
FREE = 2  # stack of free slots
TABLE = 3  # slots in the rows of the last observation
SERVED = 4  # slots of the jobs that get a rate
CHOSEN = 5  # scratch
ORDERS = 6
_ROOM = 8  # a whole number of places to a line of the processor's cache

# ---- rows of `chunks` and of `giants` ------------------------------------------------------------
ARRIVALS = 0
SIZES = 1
PATIENCE = 2
GIANT_SIZE = 0
GIANT_FACTOR = 1  # F(x), by which a later arrival multiplies the weight of what follows
GIANT_WEIGHT = 2  # f(x)/q(x)

# ---- columns of `outcomes` -----------------------------------------------------------------------
REWARD = 0
ELAPSED = 1
TIME = 2
COMPLETIONS = 3
ABANDONMENTS = 4
RESPONSE = 5
WEIGHT = 6
TERMINATED = 7
TRUNCATED = 8
REASON = 9
EPISODE = 10  # of the whole episode: jobs served, abandoned, sums of response time and slowdown, largest, area of N
COSTS = 16  # cost of each term in this step
EPISODE_COSTS = COSTS + MOST_TERMS  # and in the episode so far
OUTCOMES = EPISODE_COSTS + MOST_TERMS

LIMIT = 1e18  # observed values are cut here
TINY = 1e-12  # a rate, or unused capacity, below this is none
FAR = 2.0**20  # when the clock reads more, it is set to zero

SETUP = record_type(
    "spare unit interval horizon reward_scale table_low table_high",
    "servers slots rows features action view conserving known symmetric clock episode jobs most_steps autoreset terms "
    "table_first recording reporting",
)
ENV = record_type(
    # clock: time = origin + now; an arrival comes at base + its time in the chunk
    "now origin base last_arrival decided decide_at ends switch asked weight factor largest_allowed "
    "response_sum slowdown_sum response_max number_area",
    "arrived steps completed abandoned",
    "number free served anchor rule next filled next_size sizes_filled next_giant giants_filled last_chunk "
    "given stage status done crossed shown chosen level_first level_last spare_bits",
)
JOB = record_type(
    "size remaining attained arrival rate desired patience key busy_time started log_size",
    "number was mark",
)
TERM = record_type("weight number", "kind")
RULES = record_type("a b", "kind margin")
RECORD = record_type("arrival_time size start_time departure_time waiting_time", "outcome")


class Batch(NamedTuple):
    """All arrays of B systems; the kernel's entry points take them in this order.

    Attributes:
        setup: `(1,)` of `SETUP`: what all systems share.
        systems: `(B,)` of `ENV`.
        jobs: `(B, capacity)` of `JOB`.
        orders: `(B, ORDERS, capacity)` slots.
        chunks: `(B, 3, length)` arrival times, sizes and patience to come.
        giants: `(B, 3, length)` first jobs of big-job episodes to come; length 0 for other episodes.
        terms: `(terms,)` of `TERM`.
        table: `(bins, 4)` coefficients of the tail cost.
        rules: `(rules,)` of `RULES`.
        actions: `(B, entries)` what is to be done.
        observations: `(B, entries)`.
        last_observations: `(B, entries)` the last one of an episode that has been followed by a reset in this step.
        outcomes: `(B, OUTCOMES)` of the step; if a reset followed in the same step, of that, with the reward and the
            flags of the step.
        last_outcomes: `(B, OUTCOMES)` of the step that has been followed by a reset; else its `REASON` is zero.
        rates: `(B, slots)` executed rates by row of the observation acted on.
        records: `(B, jobs)` of `RECORD`, or of length 0.
    """

    setup: Array
    systems: Array
    jobs: Array
    orders: Slots
    chunks: Floats
    giants: Floats
    terms: Array
    table: Floats
    rules: Array
    actions: Floats
    observations: Floats
    last_observations: Floats
    outcomes: Floats
    last_outcomes: Floats
    rates: Floats
    records: Array


def side_by_side(orders: Slots) -> Slots:
    """Return the orders with their first places side by side, in few lines of the processor's cache."""
    count, rows, capacity = orders.shape
    # With room to spare the array is never contiguous, also for one system, and the kernel is compiled for one kind.
    places = np.zeros((count, capacity, _ROOM), np.int32)
    places[:, :, :rows] = orders.transpose(0, 2, 1)
    return places[:, :, :rows].transpose(0, 2, 1)


def allocate_batch(
    count: int,
    capacity: int,
    chunk: int,
    giants: int,
    actions: int,
    entries: int,
    raw: bool,
    slots: int,
    **tables: Any,
) -> Batch:
    """Allocate B empty systems.

    Args:
        count: number of systems B.
        capacity: most jobs present in one.
        chunk: arrivals kept in memory.
        giants: first jobs of big-job episodes kept in memory.
        actions: entries of an action.
        entries: entries of an observation.
        raw: whether observations are float64, else float32.
        slots: rows of the job table K.
        **tables: `setup`, `terms`, `table`, `rules`, shared by all systems.
    """
    kind = np.float64 if raw else np.float32
    batch = Batch(
        systems=np.zeros(count, ENV),
        jobs=np.zeros((count, capacity), JOB),
        orders=side_by_side(np.zeros((count, ORDERS, capacity), np.int32)),
        chunks=np.zeros((count, 3, chunk)),
        giants=np.zeros((count, 3, giants)),
        actions=np.zeros((count, actions)),
        observations=np.zeros((count, entries), kind),
        last_observations=np.zeros((count, entries), kind),
        outcomes=np.zeros((count, OUTCOMES)),
        last_outcomes=np.zeros((count, OUTCOMES)),
        rates=np.zeros((count, slots)),
        records=np.zeros((count, 0), RECORD),
        **tables,
    )
    batch.systems["anchor"] = -1
    batch.systems["free"] = capacity
    batch.orders[:, FREE, :] = np.arange(capacity)[::-1]
    return batch
