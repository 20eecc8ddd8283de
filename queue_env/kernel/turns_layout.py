"""What the threads of a step have in common: which blocks of systems are whose, and what is done."""

import numpy as np

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
