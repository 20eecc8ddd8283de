"""Threads that share a call: each does its part, faults reach the caller, and threads end."""

from __future__ import annotations

import gc
import os
import signal
import threading

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

import queue_env
from queue_env.crew import Crew
from queue_env.kernel.turns import exchange

THREADS = 4


def crews() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "queue-env"}


@njit(nogil=True)
def take_up(turns: NDArray[np.int64], turn: int, first: int, taken: NDArray[np.int64]) -> int:
    """Count every block that nobody has taken up in this turn."""
    count = 0
    for k in range(len(turns)):
        block = (first + k) % len(turns)
        if exchange(turns, block, turn) != turn:
            taken[block] += 1
            count += 1
    return count


def test_every_block_is_taken_up_once_a_turn() -> None:
    crew, turns, taken = Crew(THREADS), np.zeros(1000, np.int64), np.zeros(1000, np.int64)
    for turn in range(1, 201):
        calls = [(turns, turn, first * 250, taken) for first in range(THREADS)]
        assert crew.total(take_up, *calls) == 1000
    np.testing.assert_array_equal(taken, 200)
    crew.dismiss()


def test_exchange_returns_what_was_there() -> None:
    @njit
    def swap(array: NDArray[np.int64], index: int, value: int) -> int:
        return exchange(array, index, value)

    array = np.array([5, 6, 7])
    assert swap(array, 1, 9) == 6
    assert array.tolist() == [5, 9, 7]


def test_every_thread_does_its_own_part() -> None:
    crew, meeting = Crew(THREADS), threading.Barrier(THREADS, timeout=30)

    def part(value: int) -> int:
        meeting.wait()  # passed only if all are at it together
        return value

    assert crew.total(part, (1,), (10,), (100,), (1000,)) == 1111
    crew.dismiss()


def test_a_fault_in_a_thread_reaches_the_caller() -> None:
    crew = Crew(2)

    def fail(fails: bool) -> int:
        if fails:
            raise KeyError("mine")
        return 0

    with pytest.raises(KeyError, match="mine"):
        crew.total(fail, (False,), (True,))
    assert crew.total(fail, (False,), (False,)) == 0
    crew.dismiss()


def test_a_fault_of_the_caller_leaves_no_result_behind() -> None:
    crew = Crew(2)

    def count(value: int) -> int:
        if value < 0:
            raise KeyError("caller")
        return value

    with pytest.raises(KeyError, match="caller"):
        crew.total(count, (-1,), (3,))
    assert crew.total(count, (1,), (2,)) == 3
    crew.dismiss()


@pytest.mark.parametrize("close", [True, False])
def test_threads_end_with_the_environment_closed_or_forgotten(close: bool) -> None:
    before = crews()
    env = queue_env.QueueVectorEnv(8, threads=3, jobs=10)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    own = crews() - before
    assert len(own) == 2
    if close:
        env.close()
    del env
    gc.collect()
    for thread in own:
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")  # which is what is tested
def test_an_environment_goes_on_in_a_forked_process() -> None:
    env = queue_env.QueueVectorEnv(8, threads=2, jobs=10)
    env.reset(seed=0)
    action = env.action_space.sample()
    env.step(action)
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends a child that waits for ever for threads that are not there
        env.step(action)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    env.close()
