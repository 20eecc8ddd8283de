"""How threads share the systems of a step: each takes up the next block of them that no other has taken up.

One thread leads: it says that there is work, and waits until all of it is done. The others follow: between two steps
they look out for work in here, without Python's lock, for to be woken takes longer than their part of a step.
"""

import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from queue_env.kernel.compile import jit
from queue_env.kernel.env_layout import aligned
from queue_env.kernel.layout import Ints

# ---- columns of `shares`: a row a thread, and a last one for all; a row is a line of the processor's cache --
NEXT = 0  # the block of a thread's own to be taken up next, by whomever
FIRST = 1  # the thread's own blocks
END = 2
LEAVE = 3  # whether the thread is to look out no longer
FINISHED = 0  # blocks that are done
WAITING = 1  # systems in them that need something
BEGINS = 2  # whether this is a new step
COLUMNS = 8

LEAST_BLOCKS = 4  # of systems, for each thread
MOST_IN_BLOCK = 32
PATIENCE = 25_000  # looks for work after which a thread goes to sleep: somewhat longer than a fast agent takes
LOOKS = 10_000  # whether all is done, between two offers of the processor to those who may be at it


def divide(systems: int, threads: int) -> Ints:
    """Return the `shares` of threads, shape (threads + 1, COLUMNS): some blocks for each, so that they end together."""
    blocks = 1 if threads == 1 else min(systems, max(LEAST_BLOCKS * threads, systems // MOST_IN_BLOCK))
    shares = aligned((threads + 1, COLUMNS), np.int64)
    bounds = np.arange(threads + 1) * blocks // threads
    shares[:-1, FIRST], shares[:-1, END] = bounds[:-1], bounds[1:]
    shares[:-1, NEXT] = shares[:-1, END]
    return shares


def stay(shares: Ints) -> None:
    """Let the threads that follow look out."""
    shares[:-1, LEAVE] = 0


def leave(shares: Ints) -> None:
    """Make the threads that follow look out no longer."""
    shares[:-1, LEAVE] = 1


# ---- what no other thread can split --------------------------------------------------------------


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind = signature.args[0]
    made = context.make_array(kind)(context, builder, arguments[0])
    return cast(Any, cgutils).get_item_pointer(context, builder, kind, made, list(arguments[1:3]), wraparound=False)


def _load(typing: Any, array: Any, row: Any, column: Any) -> Any:
    """Return what is in an array of int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature, arguments), "seq_cst", 8)

    return types.int64(array, types.intp, types.intp), generate


def _store(typing: Any, array: Any, row: Any, column: Any, value: Any) -> Any:
    """Put a number into an array of int64, after all that has been written before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[3], _place(context, builder, signature, arguments), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, types.int64), generate


def _add(typing: Any, array: Any, row: Any, column: Any, value: Any) -> Any:
    """Add to a number in an array of int64, and return what was there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", _place(context, builder, signature, arguments), arguments[3], "seq_cst")

    return types.int64(array, types.intp, types.intp, types.int64), generate


load = cast("Callable[[Ints, int, int], int]", intrinsic(_load))
store = cast("Callable[[Ints, int, int, int], None]", intrinsic(_store))
add = cast("Callable[[Ints, int, int, int], int]", intrinsic(_add))
# Let another thread have the processor, if one waits for it: a function of the operating system.
offer_processor = cast(
    "Callable[[], int]",
    types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32()),
)


# ---- work ----------------------------------------------------------------------------------------


@jit
def post(shares: Ints, begins: bool) -> None:
    """Say that all blocks are there to be taken up."""
    last = len(shares) - 1
    store(shares, last, FINISHED, 0)
    store(shares, last, WAITING, 0)
    store(shares, last, BEGINS, begins)
    for i in range(last):
        store(shares, i, NEXT, shares[i, FIRST])


@jit
def new_step(shares: Ints) -> bool:
    """Return whether the work is a new step."""
    return bool(shares[len(shares) - 1, BEGINS])


@jit
def first_system(shares: Ints, block: int, systems: int) -> int:
    """Return which system is the first of a block."""
    return int(block * systems // shares[len(shares) - 2, END])


@jit
def take(shares: Ints, own: int) -> int:
    """Return a block that is this thread's to do now, one of its own if there is any left; -1 if there is none."""
    threads = len(shares) - 1
    for k in range(threads):
        i = (own + k) % threads
        if load(shares, i, NEXT) < shares[i, END]:
            block = add(shares, i, NEXT, 1)
            if block < shares[i, END]:
                return int(block)
    return -1


@jit
def look_out(shares: Ints, own: int) -> int:
    """Return a block as soon as there is one; -1 if there is none for long, or if the thread is to leave."""
    for _ in range(PATIENCE):
        block = take(shares, own)
        if block >= 0:
            return block
        if load(shares, own, LEAVE):
            break
    return -1


@jit
def finish(shares: Ints, waiting: int) -> None:
    """Say that a block is done, in which so many systems need something."""
    last = len(shares) - 1
    if waiting > 0:
        add(shares, last, WAITING, waiting)
    add(shares, last, FINISHED, 1)


@jit
def wait_for_all(shares: Ints) -> int:
    """Return when all blocks are done: how many systems need something."""
    last = len(shares) - 1
    looks = 0
    while load(shares, last, FINISHED) < shares[last - 1, END]:
        looks += 1
        if looks % LOOKS == 0:
            offer_processor()
    return int(load(shares, last, WAITING))
