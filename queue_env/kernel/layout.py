"""The memory of one simulated system: structured arrays that the caller allocates and the kernel fills.

Everything the kernel knows between two calls lies in a `Memory`, so copying its arrays is a checkpoint and putting them
back continues bit for bit.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.void]
Record: TypeAlias = Any  # one record of an Array; numba knows the types of its fields, a static checker does not
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Slots: TypeAlias = npt.NDArray[np.int32]

# ---- what a run returns --------------------------------------------------------------------------
DONE = 0  # every counted job has left, or the horizon is reached, or nothing can happen any more
NEED_ARRIVALS = 1  # the chunk is used up
GROW = 2  # no free slot for the next job: enlarge the memory and call again
BAD_RULE = 3  # a user's index or rate is NaN, or an allocation broke 0 <= v <= 1 or sum v <= n

# ---- events, in the order in which simultaneous ones happen --------------------------------------
COMPLETION = 10
ABANDONMENT = 11
ARRIVAL = 12
SWITCH = 13  # rates change without a job coming or going

# ---- families of policies: each has its own data structure ---------------------------------------
INDEX = 0  # the n best by an index at rate 1
ANCHOR = 1  # one job at a rate of its own, SRPT for the rest
SHARING = 2  # equal shares
LEVELS = 3  # least attained service first
RATES = 4  # rates handed in by the user's function

# ---- orders of the index family ------------------------------------------------------------------
EARLIEST = 0
LATEST = 1
REMAINING = 2
SIZE = 3
LOSS = 4  # two classes, no waiting room
USER_STATIC = 5  # the user's index, of what does not change in service
USER_DYNAMIC = 6  # the user's index, of what changes in service

# ---- how the anchor family sets the anchor's rate ------------------------------------------------
SPLIT = 0
THRESHOLD = 1
DYNASPLIT = 2
BACKLOG = 3
USER_RATE = 4
NETWORK = 5
LOG_MARGIN = 0
POWER_MARGIN = 1
CONSTANT_MARGIN = 2

# ---- patience clocks -----------------------------------------------------------------------------
NO_CLOCK = 0
QUEUE_CLOCK = 1
FRACTIONAL_CLOCK = 2
SOJOURN_CLOCK = 3

# ---- outcomes, and where a job is ----------------------------------------------------------------
SERVED = 0
ABANDONED = 1
PRESENT = 2
UNKNOWN = -1  # left before the snapshot of an environment that kept no records
IN_QUEUE = 0
IN_SERVICE = 1
AS_PARTIAL = 2
AS_ANCHOR = 3

# ---- what stops a run of a block -----------------------------------------------------------------
FOLLOW = 0  # nothing does: blocks follow one another
WATCH = 1  # these will:
BLOCK_OVER = 2
OUTGROWN = 3  # a larger job than the largest has arrived
MOST_PERIODS = 64  # of weights that double

# ---- histograms: 2^7 bins an octave, from 2^-40 to 2^60 ------------------------------------------
BIN_BITS = 7
LOWEST_OCTAVE = -40
HIGHEST_OCTAVE = 60
BINS = (HIGHEST_OCTAVE - LOWEST_OCTAVE) << BIN_BITS
SIZE_BITS = 4  # sizes by outcome: 2^4 bins an octave over the same octaves
SIZE_BINS = (HIGHEST_OCTAVE - LOWEST_OCTAVE) << SIZE_BITS

SMALL = 32  # up to so many servers, those in service lie in one sorted array
WIDEST = 32  # numbers that a layer of a network may give; the scratch table has room for them
MANY = 64  # up to so many jobs, the next anchor is found by looking at all of them; with more, in a heap


# What is counted, whatever the slots.
COUNTED = ("stats", "response_counts", "slowdown_counts", "size_counts", "marks", "above", "periods", "records")


def record_type(floats: str, ints: str, short_ints: str = "") -> np.dtype[np.void]:
    """Return the type of records with these fields, named in strings; an even number of short ones aligns all."""
    kinds = {"f8": floats, "i8": ints, "i4": short_ints}
    return np.dtype([(name, kind) for kind, names in kinds.items() for name in names.split()])


ENTRY = record_type("key", "tie slot")
JOB = record_type(
    # arrival, since (in the queue), started, clock_since: times relative to the origin
    "size remaining arrival since started waited key patience clock_since clock_rate",
    "number epoch where child sibling previous level",
)
LEVEL = record_type("attained since rate idle", "count root below above")
SYSTEM = record_type(
    # clock: absolute time = origin + (origin_low + now); a chunk's time + shift + shift_low is relative to the origin
    "now elapsed origin origin_low shift shift_low last_arrival last_given horizon "
    # model
    "speed spare share shortest "
    # anchor family
    "anchor_rate anchor_remaining anchor_low anchor_since anchor_finish gamma threshold switch_time "
    "partial_rate partial_remaining partial_since partial_finish backlog "
    # sharing
    "virtual virtual_clock "
    # measures
    "busy number_area busy_area sojourn work_done "
    "window_start window_end window_number window_busy window_number_end window_busy_end "
    # blocks
    "block_largest",
    "family order preemptive lossy clock servers capacity dual relative "
    "next draining number arrived epoch served free highest in_service worst waiting deadlines giants "
    "anchor partial rate_kind invalid stalled fresh tracked many "
    "level_free low_level high_full partial_level full_count "
    "counted_from counted_to pending rows recording "
    "window_from window_to window_served window_served_end window_state "
    "level stopping largest periods",
)
STATS = record_type(
    "response_sum response_square_sum response_max slowdown_sum slowdown_square_sum slowdown_max "
    "waiting_sum waiting_square_sum size_sum abandoned_time_sum",
    "counted served abandoned present waited",
)
RECORD = record_type("start_time departure_time waiting_time", "outcome")


class Memory(NamedTuple):
    """All arrays of one system; the kernel's functions take it as their first argument.

    Attributes:
        system: `(1,)` of `SYSTEM`, the scalars.
        jobs: `(slots,)` of `JOB`.
        free: `(slots,)` stack of free slots.
        service, worst: heaps (or the sorted array) of jobs in service, by finish and by who is preempted first.
        waiting, deadlines: heaps of waiting jobs by priority, and of running patience clocks by their end.
        giants: heap of candidates for the anchor's role, largest first, with entries of departed jobs left in; kept
            only while many jobs are present.
        levels, level_free: levels of attained service.
        service_place, worst_place, waiting_place, deadline_place, giant_place: `(slots,)`, positions in the heaps.
        order: `(slots,)` slots in arrival order, for user allocations.
        scratch: `(4, at least slots)` sizes, remaining, ages and rates handed to a user's allocation; or the numbers
            that layers of a network give.
        parameters: `(k,)` the policy's numbers.
        stats: `(rows,)` of `STATS`.
        response_counts, slowdown_counts: `(rows, BINS)`.
        size_counts: `(rows, 2, SIZE_BINS)`, sizes of counted jobs that were served, and of those that abandoned.
        marks: `(times,)` increasing, at which response times are counted besides; or of length 0.
        above: `(times + 1,)` counted jobs served, by how many of the marks their response time is above, weighted.
        periods: `(MOST_PERIODS,)` numbers of the jobs from which on the weight is 1, 2, 4, ...
        records: `(jobs,)` of `RECORD`, or of length 0.
    """

    system: Array
    jobs: Array
    free: Ints
    service: Array
    worst: Array
    waiting: Array
    deadlines: Array
    giants: Array
    levels: Array
    level_free: Ints
    service_place: Ints
    worst_place: Ints
    waiting_place: Ints
    deadline_place: Ints
    giant_place: Ints
    order: Ints
    scratch: Floats
    parameters: Floats
    stats: Array
    response_counts: Ints
    slowdown_counts: Ints
    size_counts: Ints
    marks: Floats
    above: Floats
    periods: Ints
    records: Array


def allocate(
    slots: int, rows: int = 1, records: int = 0, parameters: Floats | None = None, marks: Floats | None = None
) -> Memory:
    """Allocate the memory of an empty system.

    Args:
        slots: jobs that can be present before the memory has to grow.
        rows: rows of statistics.
        records: jobs of which a record is kept.
        parameters: the policy's numbers.
        marks: times at which response times are counted.

    Returns:
        Zeroed arrays, with the stacks of free slots and levels filled.
    """
    memory = Memory(
        system=np.zeros(1, SYSTEM),
        jobs=np.zeros(slots, JOB),
        free=_stack(slots),
        service=np.zeros(slots + 1, ENTRY),
        worst=np.zeros(slots + 1, ENTRY),
        waiting=np.zeros(slots + 1, ENTRY),
        deadlines=np.zeros(slots + 1, ENTRY),
        giants=np.zeros(4 * slots, ENTRY),
        levels=np.zeros(slots, LEVEL),
        level_free=_stack(slots),
        service_place=np.full(slots, -1, dtype=np.int64),
        worst_place=np.full(slots, -1, dtype=np.int64),
        waiting_place=np.full(slots, -1, dtype=np.int64),
        deadline_place=np.full(slots, -1, dtype=np.int64),
        giant_place=np.full(slots, -1, dtype=np.int64),
        order=np.zeros(slots, dtype=np.int64),
        scratch=np.zeros((4, max(slots, WIDEST))),
        parameters=np.zeros(0) if parameters is None else parameters,
        stats=np.zeros(rows, STATS),
        response_counts=np.zeros((rows, BINS), dtype=np.int64),
        slowdown_counts=np.zeros((rows, BINS), dtype=np.int64),
        size_counts=np.zeros((rows, 2, SIZE_BINS), dtype=np.int64),
        marks=np.zeros(0) if marks is None else marks,
        above=np.zeros(1 if marks is None else len(marks) + 1),
        periods=np.zeros(MOST_PERIODS, dtype=np.int64),
        records=np.zeros(records, RECORD),
    )
    memory.system["level"] = -1
    memory.jobs["number"] = -1
    memory.records["start_time"] = np.nan
    memory.records["departure_time"] = np.nan
    memory.records["waiting_time"] = np.nan
    memory.records["outcome"] = PRESENT
    system = memory.system
    system["free"] = slots
    system["level_free"] = slots
    return memory


def _stack(slots: int) -> Ints:
    """Return a stack of free slots, the first on top."""
    return np.arange(slots, dtype=np.int64)[::-1].copy()


def enlarge(memory: Memory) -> Memory:
    """Return a memory with twice the slots and the same content."""
    slots = len(memory.jobs)
    larger = allocate(2 * slots, rows=1, parameters=memory.parameters)
    kept = {name: getattr(memory, name) for name in ("system", *COUNTED)}
    for name in ("jobs", "service", "worst", "waiting", "deadlines", "giants", "levels", "order"):
        old = getattr(memory, name)
        getattr(larger, name)[: len(old)] = old
    for name in ("service_place", "worst_place", "waiting_place", "deadline_place", "giant_place"):
        getattr(larger, name)[:slots] = getattr(memory, name)
    for stack, count in (("free", "free"), ("level_free", "level_free")):
        used = int(memory.system[count][0])
        # New slots go below the old free ones, so that the old ones are used first, as without growth.
        getattr(larger, stack)[:slots] = np.arange(2 * slots - 1, slots - 1, -1)
        getattr(larger, stack)[slots : slots + used] = getattr(memory, stack)[:used]
        memory.system[count] += slots
    return larger._replace(**kept)
