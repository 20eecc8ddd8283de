"""Threads that share the work of a step: each block is done once, whoever does it, and threads end."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

import queue_env
from queue_env.crew import Crew
from queue_env.kernel.atomic import add, load, store
from queue_env.kernel.turns import finish, look_out, post, take, wait_for_all
from queue_env.kernel.turns_layout import COLUMNS, divide, leave, stay

THREADS = 4
SYSTEMS = 3200  # 100 blocks


def crews() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "queue-env"}


@njit(nogil=True)
def lead(shares: NDArray[np.int64], done: NDArray[np.int64]) -> int:
    """Count every block that is done; one system of each needs something."""
    post(shares, True)
    block = take(shares, 0)
    while block >= 0:
        done[0, block] += 1
        finish(shares, 1)
        block = take(shares, 0)
    return wait_for_all(shares)


@njit(nogil=True)
def follow(shares: NDArray[np.int64], done: NDArray[np.int64], own: int) -> int:
    count = 0
    block = look_out(shares, own)
    while block >= 0:
        done[own, block] += 1
        finish(shares, 1)
        count += 1
        block = look_out(shares, own)
    return count


@contextmanager
def followers(part: Callable[[int], int], shares: NDArray[np.int64]) -> Iterator[Crew]:
    crew = Crew([partial(part, i) for i in range(1, THREADS)], partial(leave, shares))
    yield crew
    crew.dismiss()


def test_every_block_is_done_once_a_step() -> None:
    shares, done = divide(SYSTEMS, THREADS), np.zeros((THREADS, 100), np.int64)
    with followers(lambda own: follow(shares, done, own), shares) as crew:
        for _ in range(200):
            crew.wake()
            assert lead(shares, done) == 100
    np.testing.assert_array_equal(done.sum(axis=0), 200)


def test_who_sleeps_is_waited_for_by_nobody() -> None:
    shares, done = divide(SYSTEMS, THREADS), np.zeros((THREADS, 100), np.int64)
    assert lead(shares, done) == 100
    np.testing.assert_array_equal(done[0], 1)


def test_a_thread_looks_out_until_there_is_work() -> None:
    shares, done = divide(SYSTEMS, 2), np.zeros((2, 100), np.int64)

    def helped() -> bool:
        crew.wake()
        lead(shares, done)
        return bool(done[1].any())

    crew = Crew([partial(follow, shares, done, 1)], partial(leave, shares))
    deadline = time.monotonic() + 60
    while not helped():
        assert time.monotonic() < deadline
    crew.dismiss()


def test_who_finds_no_work_is_woken_less_often() -> None:
    found = iter([0, 0, 0, 0, 5, 0, 0])
    seen = threading.Event()

    def part() -> int:
        seen.wait(60)
        return next(found)

    crew = Crew([part], lambda: None)
    woken = []
    for call in range(33):
        crew.wake()
        if not all(crew._asleep):
            woken.append(call)
        seen.set()
        deadline = time.monotonic() + 60
        while not all(crew._asleep):
            assert time.monotonic() < deadline
            time.sleep(1e-4)
        seen.clear()
    crew.dismiss()
    assert woken == [0, 1, 3, 7, 15, 31, 32]


def test_who_is_to_leave_does_until_it_may_stay() -> None:
    shares = divide(SYSTEMS, 2)
    leave(shares)
    assert shares[0, :].tolist().count(1) == 1
    stay(shares)
    np.testing.assert_array_equal(shares, divide(SYSTEMS, 2))


@pytest.mark.parametrize(("systems", "threads"), [(1, 1), (5, 2), (1024, 2), (1000, 3), (7, 7)])
def test_blocks_belong_to_one_thread_each(systems: int, threads: int) -> None:
    shares = divide(systems, threads)
    owned = [block for row in shares[:-1] for block in range(row[1], row[2])]
    assert owned == list(range(len(owned)))
    assert threads <= len(owned) <= systems
    assert shares.shape == (threads + 1, COLUMNS)
    assert shares.ctypes.data % 64 == 0


def test_numbers_that_threads_share() -> None:
    @njit
    def use(array: NDArray[np.int64]) -> tuple[int, int]:
        store(array, 0, 1, 6)
        return add(array, 0, 1, 3), load(array, 0, 1)

    array = np.array([[5, 0, 7]])
    assert use(array) == (6, 9)
    assert array.tolist() == [[5, 9, 7]]


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
