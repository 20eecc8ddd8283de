"""The state of a system in one flat array, which one copy puts back, and the arrays of the runs of blocks."""

import numpy as np

from queue_env.kernel.blocks import DRIVE, TASK, Work
from queue_env.kernel.layout import Array, Floats, Memory, enlarge

# What is left out does not change, or is not of the state: numbers of the policy and statistics.
_STATE = (
    "system",
    "jobs",
    "free",
    "service",
    "worst",
    "waiting",
    "deadlines",
    "giants",
    "levels",
    "level_free",
    "service_place",
    "worst_place",
    "waiting_place",
    "deadline_place",
    "giant_place",
    "order",
    "scratch",
)


def pack(memory: Memory) -> Floats:
    """Return a copy of a memory's state as one array; every field of it is eight bytes long."""
    return np.concatenate([getattr(memory, name).reshape(-1).view(np.float64) for name in _STATE])


def unpack(buffer: Floats, like: Memory) -> Memory:
    """Return a memory whose state lies in the buffer; the rest is shared with the one it is like, of as many slots."""
    views, place = {}, 0
    for name in _STATE:
        array = getattr(like, name)
        length = array.nbytes // 8
        views[name] = buffer[place : place + length].view(array.dtype).reshape(array.shape)
        place += length
    return like._replace(**views)


def enlarged(buffer: Floats, like: Memory) -> Floats:
    """Return a buffer with the same content and twice the slots."""
    return pack(enlarge(unpack(buffer.copy(), like)))


def allocate_work(tasks: Array, marks: int, pool: int, chunk: int, snapshot: Floats) -> Work:
    """Allocate the arrays of a call.

    Args:
        tasks: `(tasks,)` of `TASK`.
        marks: number of marks.
        pool: random numbers of a kind at a time.
        chunk: most jobs in a stretch of a run.
        snapshot: `(k,)`; the buffer that lies under the memory begins as its copy.
    """
    return Work(
        buffer=snapshot.copy(),
        snapshot=snapshot,
        tasks=tasks,
        found=np.zeros((len(tasks), marks + 1)),
        drive=np.zeros(1, DRIVE),
        gap_pool=np.zeros(pool),
        size_pool=np.zeros(pool),
        coin_pool=np.zeros(pool),
        arrivals=np.zeros(chunk),
        sizes=np.zeros(chunk),
    )


def no_work() -> Work:
    """Return arrays of the right types, for a signature."""
    return allocate_work(np.zeros(1, TASK), 1, 1, 1, np.zeros(1))
