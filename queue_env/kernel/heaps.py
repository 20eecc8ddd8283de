"""Indexed binary heaps of `ENTRY` records, ordered by (key, tie), smallest first.

``place[slot]`` holds the position of a slot in the heap, or -1, so that any entry can be removed in O(log n). The
caller keeps the count and passes it in. A largest-first heap stores negated keys and ties.
"""

import numpy as np
import numpy.typing as npt

from queue_env.kernel.compile import jit, jit_apart

Entries = npt.NDArray[np.void]
Places = npt.NDArray[np.int64]


@jit
def put(heap: Entries, place: Places, position: int, key: float, tie: int, slot: int) -> None:
    """Write an entry at a position, wherever it belongs."""
    here = heap[position]
    here["key"] = key
    here["tie"] = tie
    here["slot"] = slot
    place[slot] = position


@jit
def sift_up(heap: Entries, place: Places, hole: int, key: float, tie: int, slot: int) -> None:
    """Put an entry at the hole, or above it, where it belongs."""
    while hole > 0:
        parent = (hole - 1) >> 1
        above = heap[parent]
        if key < above["key"] or (key == above["key"] and tie < above["tie"]):
            put(heap, place, hole, above["key"], above["tie"], above["slot"])
            hole = parent
        else:
            break
    put(heap, place, hole, key, tie, slot)


@jit_apart
def sift_down(heap: Entries, place: Places, count: int, hole: int, key: float, tie: int, slot: int) -> None:
    """Put an entry at the hole, or below it, where it belongs, in a heap of `count` entries."""
    while True:
        child = 2 * hole + 1
        if child >= count:
            break
        low = heap[child]
        if child + 1 < count:
            other = heap[child + 1]
            if other["key"] < low["key"] or (other["key"] == low["key"] and other["tie"] < low["tie"]):
                child += 1
                low = other
        if low["key"] < key or (low["key"] == key and low["tie"] < tie):
            put(heap, place, hole, low["key"], low["tie"], low["slot"])
            hole = child
        else:
            break
    put(heap, place, hole, key, tie, slot)


@jit
def push(heap: Entries, place: Places, count: int, key: float, tie: int, slot: int) -> None:
    """Add an entry to a heap of `count` entries."""
    sift_up(heap, place, count, key, tie, slot)


@jit_apart
def remove(heap: Entries, place: Places, count: int, slot: int) -> None:
    """Take the entry of `slot` out of a heap of `count` entries."""
    hole = place[slot]
    place[slot] = -1
    last = heap[count - 1]
    if hole == count - 1:
        return
    key, tie, moved = last["key"], last["tie"], last["slot"]
    parent = heap[(hole - 1) >> 1]
    if hole > 0 and (key < parent["key"] or (key == parent["key"] and tie < parent["tie"])):
        sift_up(heap, place, hole, key, tie, moved)
    else:
        sift_down(heap, place, count - 1, hole, key, tie, moved)


@jit_apart
def restore(heap: Entries, place: Places, count: int) -> None:
    """Make a heap of `count` entries whose keys have been changed."""
    for i in range(count):
        entry = heap[i]
        sift_up(heap, place, i, entry["key"], entry["tie"], entry["slot"])
