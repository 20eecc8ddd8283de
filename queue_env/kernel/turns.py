"""How threads share the systems of a step: each takes up the next block of them that no other has taken up.

One thread leads: it says that there is work, and waits until all of it is done. The others follow: between two steps
they look out for work in here, without Python's lock, for to be woken takes longer than their part of a step.
"""

from queue_env.kernel.atomic import add, load, offer_processor, store
from queue_env.kernel.compile import jit
from queue_env.kernel.layout import Ints
from queue_env.kernel.turns_layout import BEGINS, END, FINISHED, FIRST, LEAVE, NEXT, WAITING

PATIENCE = 25_000  # looks for work after which a thread goes to sleep: somewhat longer than a fast agent takes
LOOKS = 10_000  # whether all is done, between two offers of the processor to those who may be at it


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
