"""The memory of B systems that wait for decisions: structured arrays with one row a system, and what their codes mean.

All that a system knows between two decisions lies in its rows, so copying them is a snapshot.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from queue_env.kernel.layout import Array, Floats, Ints, Slots, record_type

# ---- what stands between a system and its next decision, perhaps both of the first two -----------
READY = 0
NEED_ARRIVALS = 1  # the arrival times in memory are used up
NEED_SIZES = 2  # the sizes are
NEED_GIANTS = 4  # the first jobs of big-job episodes are
NEED_SOURCE = 8  # a workload that was handed in for one episode must make way for the stream

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
THRESHOLD = 4

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
TWO_CLASS = 12

# ---- observations --------------------------------------------------------------------------------
FLAT = 0
RAW = 1
COMPACT = 2
SUMMARY = 3

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
BY_ARRIVAL = 1  # slots of the jobs present by job number, then the free ones, the next to be used first
SERVED = 2  # slots of the jobs that get a rate
TABLE = 3  # slots in the rows of the last observation
CHOSEN = 4  # scratch
ORDERS = 5

# ---- rows of `giants` ----------------------------------------------------------------------------
GIANT_SIZE = 0
GIANT_FACTOR = 1  # F(x), by which a later arrival multiplies the weight of what follows
GIANT_WEIGHT = 2  # f(x)/q(x)

# ---- columns of `outcomes` -----------------------------------------------------------------------
REWARD = 0
ELAPSED = 1
TIME = 2
RESPONSE = 3
WEIGHT = 4
COSTS = 5  # cost of each term in this step
COMPLETIONS = COSTS + MOST_TERMS
ABANDONMENTS = COMPLETIONS + 1
TERMINATED = COMPLETIONS + 2
TRUNCATED = COMPLETIONS + 3
REASON = COMPLETIONS + 4  # above zero if the episode is over
EPISODE_COSTS = COMPLETIONS + 5  # cost of each term in the episode so far
EPISODE = EPISODE_COSTS + MOST_TERMS  # at its end: jobs served, abandoned, sums of response time and slowdown, largest
OUTCOMES = EPISODE + 6  # response time, area of N

LIMIT = 1e18  # observed values are cut here
TINY = 1e-12  # a rate, or unused capacity, below this is none
FAR = 2.0**20  # when the clock reads more, it is set to zero

_LINE = 64  # bytes in a line of the processor's cache


def whole_lines(kind: np.dtype[np.void]) -> np.dtype[np.void]:
    """Return the type of the same records, as long as a whole number of lines of the processor's cache."""
    return np.dtype([*kind.descr, ("room", "i1", (-kind.itemsize % _LINE,))])


SETUP = record_type(
    "spare unit interval horizon reward_scale table_low table_high",
    "servers slots rows features action view conserving known symmetric clock episode jobs most_steps autoreset terms "
    "table_first recording reporting",
)
ENV = whole_lines(
    record_type(
        # clock: time = origin + now; an arrival comes at base + its time in the chunk
        "now origin base last_arrival decided decide_at ends switch asked weight factor largest_allowed "
        "response_sum slowdown_sum response_max number_area",
        "arrived steps completed abandoned",
        "number served anchor rule next filled next_size sizes_filled next_giant giants_filled last_chunk "
        "given stage done crossed shown chosen level_first level_last",
    )
)
# What every event looks at lies in the first line.
JOB = whole_lines(
    np.dtype(
        [(name, "f8") for name in ("size", "remaining", "attained", "arrival", "rate", "busy_time")]
        + [("number", "i8"), ("log_size", "f4"), ("mark", "i4")]
        + [(name, "f8") for name in ("desired", "patience", "key", "started")]
    )
)
TO_COME = record_type("arrival size patience", "")
TERM = record_type("weight number", "kind")
RULES = record_type("a b", "kind margin")
_PLACES = np.dtype([("slots", "i4", (8,))])  # places of all orders, padded so that none is in two lines
RECORD = record_type("arrival_time size start_time departure_time waiting_time", "outcome")


class Batch(NamedTuple):
    """All arrays of B systems; the kernel's entry points take them in this order.

    Attributes:
        setup: `(1,)` of `SETUP`: what all systems share.
        shares: `(threads + 1, COLUMNS)` of `turns`: who does which blocks of systems.
        status: `(B,)` what stands between a system and its next decision.
        systems: `(B,)` of `ENV`.
        jobs: `(B, capacity)` of `JOB`.
        orders: `(B, ORDERS, capacity)` slots.
        chunks: `(B, length)` of `TO_COME`: arrival times, sizes and patience to come.
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
    shares: Ints
    status: Slots
    systems: Array
    jobs: Array
    orders: Slots
    chunks: Array
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


def aligned(shape: tuple[int, ...], kind: Any) -> npt.NDArray[Any]:
    """Return zeros that begin with a line of the processor's cache."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    room = np.zeros(size + _LINE, np.uint8)
    start = -room.ctypes.data % _LINE
    array: npt.NDArray[Any] = room[start : start + size].view(kind).reshape(shape)
    return array


def _planes(count: int, places: int, kind: Any) -> npt.NDArray[Any]:
    """Return zeros, shape (B, places), in which place k of one system lies beside place k of the next.

    Most places of most systems are never used, so a pass over the systems runs through a few dense stretches of memory.
    Each is longer than B by at least a line of the processor's cache: so they do not compete for the same lines, and
    the array is never contiguous, also for one system, and the kernel is compiled for one kind.
    """
    size = np.dtype(kind).itemsize
    width = (count * size // _LINE + 2) * _LINE // size
    return aligned((places, width), kind)[:, :count].T


def _orders(count: int, capacity: int) -> Slots:
    """Return zeros, shape (B, ORDERS, capacity), with the orders of one place side by side."""
    places = _planes(count, capacity, _PLACES)["slots"]
    return places[:, :, :ORDERS].transpose(0, 2, 1)


def laid_out(batch: Batch) -> Batch:
    """Return a batch of the same content whose arrays lie in memory as `allocate_batch` lays them."""
    count, capacity = batch.jobs.shape
    arrays = {
        "systems": aligned((count,), ENV),
        "jobs": _planes(count, capacity, JOB),
        "orders": _orders(count, capacity),
        "outcomes": _planes(count, OUTCOMES, np.float64),
        "last_outcomes": _planes(count, OUTCOMES, np.float64),
    }
    for name, array in arrays.items():
        array[...] = getattr(batch, name)
    return batch._replace(**arrays)


def allocate_batch(
    count: int,
    capacity: int,
    chunk: int,
    giants: int,
    actions: int,
    entries: int,
    raw: bool,
    slots: int,
    shares: Ints,
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
        shares: who does which blocks of systems.
        **tables: `setup`, `terms`, `table`, `rules`, shared by all systems.
    """
    kind = np.float64 if raw else np.float32
    batch = Batch(
        shares=shares,
        status=np.zeros(count, np.int32),
        systems=aligned((count,), ENV),
        jobs=_planes(count, capacity, JOB),
        orders=_orders(count, capacity),
        chunks=np.zeros((count, chunk), TO_COME),
        giants=np.zeros((count, 3, giants)),
        actions=np.zeros((count, actions)),
        observations=np.zeros((count, entries), kind),
        last_observations=np.zeros((count, entries), kind),
        outcomes=_planes(count, OUTCOMES, np.float64),
        last_outcomes=_planes(count, OUTCOMES, np.float64),
        rates=np.zeros((count, slots)),
        records=np.zeros((count, 0), RECORD),
        **tables,
    )
    batch.systems["anchor"] = -1
    batch.orders[:, BY_ARRIVAL, :] = np.arange(capacity)
    return batch
