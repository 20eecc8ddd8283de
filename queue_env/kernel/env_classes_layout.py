"""The memory of systems of two classes, beside their `Batch`: heaps, and what each job has to have there."""

from typing import NamedTuple

import numpy as np

from queue_env.kernel.layout import ENTRY, Array, Floats, Ints, record_type

# ---- heaps: rows of `heaps` and `counts`, and but for the last four of `places` ---------------------------
BY_FINISH = 0  # jobs in service by when they finish
TO_YIELD = 1  # those of the second class by who is preempted first
BY_LEVEL = 2  # those of the first class by when they have had so much service that they lose it
OLDEST = 3  # waiting jobs by job number
BY_DEADLINE = 4  # running patience clocks by their end
QUEUES = 5  # waiting jobs: of the first class the young, then the old, then those of the second class
HEAPS = 9
PLACES = 6  # a job is in one of the last four at most
GONE = -1  # a gap in the order of arrival

CLASSES = record_type(
    # the held action: share of the jobs that have priority, service at which it is lost, age up to which jobs are
    # young; the work present as it is kept up to date
    "share level within work most_work",
    "until_sum arrived_before",
    "listed free first_served by_service",
)
STANDING = record_type(
    # when it will finish and its patience run out; when it would have begun, had it been served without a break; since
    # when it has been waiting or served, and how long it had been waiting then; P[S <= size]; the largest level at
    # which it has lost its priority
    "finish due begun since waited rank passed",
    # the first job that arrived with it, its place in `order`, whether it is of the first class, its queue or -1
    "epoch place first queue",
)


class Classes(NamedTuple):
    """What B systems of two classes have beside their `Batch`.

    Attributes:
        states: `(B,)` of `CLASSES`.
        standings: `(B, capacity)` of `STANDING`, by slot.
        order: `(B, capacity)` slots of the jobs present by job number, with gaps.
        free: `(B, capacity)` stack of free slots.
        heaps: `(B, HEAPS, capacity)` of `ENTRY`; made anew when a snapshot is put back.
        places: `(B, PLACES, capacity)` positions of the slots in the heaps, or -1.
        counts: `(B, HEAPS)` entries.
        ranks: `(B, length)` P[S <= size] of the sizes to come.
    """

    states: Array
    standings: Array
    order: Ints
    free: Ints
    heaps: Array
    places: Ints
    counts: Ints
    ranks: Floats


class Own(NamedTuple):
    """The arrays of one system."""

    jobs: Array
    standings: Array
    order: Ints
    free: Ints
    heaps: Array
    places: Ints
    counts: Ints


def allocate_classes(count: int, capacity: int, chunk: int) -> Classes:
    """Allocate what B empty systems have beside their `Batch`, with room for the ranks of a chunk of sizes."""
    return Classes(
        states=np.zeros(count, CLASSES),
        standings=np.zeros((count, capacity), STANDING),
        order=np.zeros((count, capacity), np.int64),
        free=np.zeros((count, capacity), np.int64),
        heaps=np.zeros((count, HEAPS, capacity), ENTRY),
        places=np.zeros((count, PLACES, capacity), np.int64),
        counts=np.zeros((count, HEAPS), np.int64),
        ranks=np.zeros((count, chunk)),
    )
