"""Replications and points on a Ray cluster: the same results as on threads, also when workers and drivers are killed.

The cluster has two nodes, which are processes of their own on this machine.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_cli import run, run_json

import queue_env
from queue_env.scoring.executors import cluster, open_pool
from queue_env.scoring.ray_pool import RayPool, _attempt
from tests.scoring.small import short_replications

ray = pytest.importorskip("ray", reason="needs Ray: pip install queue-env[ray]")
cluster_utils = pytest.importorskip("ray.cluster_utils")

MEMORY = 80 * 2**20  # of a node's object store
PAIR = ["srpt", "dynasplit"]
# Naps of 0.05 s, ten minutes of them. An interrupt is heard between two, as it is between two chunks of jobs.
LONG = 12_000
HUNDRED: dict[str, Any] = {"load": [0.5, 0.6, 0.7, 0.8, 0.9], "servers": [1, 2, 3, 4, 8], "alpha": [1.2, 1.5, 2.0, 3.0]}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A head without cores and a node with two, to which this process is nodes."""
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": MEMORY}
    found = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    found.add_node(num_cpus=2, object_store_memory=MEMORY)
    ray.init(found.address, log_to_driver=False, logging_level=logging.ERROR)
    yield found
    ray.shutdown()
    found.shutdown()


def busy(nodes: Any) -> list[int]:
    """Process ids of the workers of this cluster that run a task."""
    raylets = {entry.process.pid for node in nodes.list_all_nodes() for entry in node.all_processes["raylet"]}
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            name = (place / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if parent in raylets and name.startswith(b"ray::_attempt"):
            found.append(int(place.name))
    return found


def command(
    *arguments: str, stdout: int = subprocess.DEVNULL, stderr: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """A command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "queue_env", *arguments],
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Wait until something is so, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)
    return found


# ---- the same results -----------------------------------------------------------------------------


def test_a_hundred_points_are_the_same_on_a_cluster_and_on_one_thread(nodes: Any) -> None:
    there = queue_env.sweep("high-load-2", PAIR, HUNDRED, jobs=2000, ray=True).to_list()
    assert len(there) == 200
    assert there == queue_env.sweep("high-load-2", PAIR, HUNDRED, jobs=2000, threads=1).to_list()


def small_score(**options: Any) -> Any:
    with short_replications():
        return queue_env.score(
            "srpt", "high-load-2", tail_range=(1, 100), rel_half_width=0.5, plain_jobs=10_000, most_jobs=2e6, **options
        )


def assert_same(one: Any, other: Any) -> None:
    """To the bit."""
    assert one.curve.tobytes() == other.curve.tobytes()
    assert (one.score, one.low, one.high, one.jobs) == (other.score, other.low, other.high, other.jobs)


def test_a_score_is_the_same_on_a_cluster_and_on_one_thread(nodes: Any) -> None:
    assert_same(small_score(ray=True), small_score(threads=1))


def test_the_commands_take_a_cluster(nodes: Any, tmp_path: Path) -> None:
    arguments = ("sweep", "high-load-2", "--over", "load=0.5,0.6", "--jobs", "2000")
    assert run_json(*arguments, "--ray")["rows"] == run_json(*arguments)["rows"]
    with short_replications():
        arguments = (
            "score",
            "high-load-2",
            "--policy",
            "srpt",
            "--range",
            "1",
            "10",
            "--width",
            "0.9",
            "--jobs",
            "2e4",
        )
        rows = [run_json(*arguments, *more)["rows"][0] for more in ((), ("--ray", "auto"))]
    assert rows[0] | {"seconds": 0} == rows[1] | {"seconds": 0}


def test_a_connection_that_was_there_stays(nodes: Any) -> None:
    with cluster(True):
        pass
    assert ray.is_initialized()


def test_own_policies_and_learned_ones_travel(nodes: Any) -> None:
    policy = queue_env.index_policy(lambda size, remaining, number, parameters: size, name="mine")
    policies = [policy, "learned-high-load-2"]
    over = {"load": [0.7]}
    there = queue_env.sweep("high-load-2", policies, over, jobs=1000, ray=True)
    assert there.to_list() == queue_env.sweep("high-load-2", policies, over, jobs=1000).to_list()


# ---- what goes wrong ------------------------------------------------------------------------------


def test_errors_come_back_as_they_were(nodes: Any) -> None:
    with RayPool() as pool, pytest.raises(ValueError, match=r"^invalid literal for int\(\) with base 10: 'x'$"):
        pool.submit(int, "x").result()


def test_what_has_missed_an_interrupt_ends(nodes: Any, tmp_path: Path) -> None:
    began, begun = time.monotonic(), tmp_path / "begun"

    def stubborn() -> None:
        try:
            begun.touch()
            for _ in range(LONG):
                time.sleep(0.05)
        except KeyboardInterrupt:
            for _ in range(LONG):
                time.sleep(0.05)

    with RayPool() as pool:
        pool.submit(stubborn)
        wait_for(begun.exists)
        pool.shutdown(cancel_futures=True)
    wait_for(lambda: not busy(nodes))
    assert time.monotonic() - began < 300


def test_what_is_cancelled_ends(nodes: Any) -> None:
    began = time.monotonic()
    with RayPool() as pool:
        futures = [pool.submit(lambda: [time.sleep(0.05) for _ in range(LONG)]) for _ in range(3)]
        wait_for(lambda: len(busy(nodes)) == 2)
        pool.shutdown(cancel_futures=True)
    assert all(future.cancelled() for future in futures)
    wait_for(lambda: not busy(nodes))
    assert time.monotonic() - began < 300


def test_interrupts_are_heard_where_ray_was_started_in_the_background() -> None:
    """A script gives its background processes SIGINT ignored, and they their children."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert _attempt(signal.getsignal, (signal.SIGINT,), {}) == (signal.default_int_handler, None)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_worker_killed_in_mid_run_costs_nothing_but_time(nodes: Any) -> None:
    killed: list[int] = []

    def kill() -> None:
        for _ in range(2):
            pid = wait_for(lambda: busy(nodes))[0]
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            wait_for(lambda pid=pid: pid not in busy(nodes))

    over = {"load": [0.5, 0.6, 0.7, 0.8], "alpha": [1.5, 2.0]}
    killer = threading.Thread(target=kill)
    killer.start()
    there = queue_env.sweep("high-load-2", PAIR, over, jobs=1_000_000, ray=True).to_list()
    killer.join()
    assert len(set(killed)) == 2
    assert there == queue_env.sweep("high-load-2", PAIR, over, jobs=1_000_000).to_list()


def test_a_node_killed_in_mid_run_costs_nothing_but_time(nodes: Any) -> None:
    other = nodes.add_node(num_cpus=1, object_store_memory=MEMORY)
    raylet = other.all_processes["raylet"][0].process.pid
    over = {"load": [0.5, 0.6, 0.7, 0.8], "alpha": [1.5, 2.0]}

    def kill() -> None:
        wait_for(lambda: len(busy(nodes)) == 3)
        nodes.remove_node(other, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    there = queue_env.sweep("high-load-2", PAIR, over, jobs=1_000_000, ray=True).to_list()
    killer.join()
    assert not Path(f"/proc/{raylet}/cmdline").exists() or not Path(f"/proc/{raylet}/cmdline").read_bytes()
    assert there == queue_env.sweep("high-load-2", PAIR, over, jobs=1_000_000).to_list()


def test_a_driver_killed_in_mid_run_loses_no_finished_point(nodes: Any, tmp_path: Path) -> None:
    arguments = ("sweep", "high-load-2", "--over", "load=0.5:0.9:40", "--jobs", "3e5", "--out", str(tmp_path))
    process = command(*arguments, "--ray", nodes.address)
    points = tmp_path / "points"
    wait_for(lambda: len(list(points.glob("*.json"))) >= 3)
    process.kill()
    process.wait()
    finished = {file.name: file.stat().st_mtime_ns for file in points.glob("*.json")}
    assert 3 <= len(finished) < 40
    again = command(*arguments, "--resume", "--json", "--ray", nodes.address, stdout=subprocess.PIPE)
    rows = json.loads(again.communicate(timeout=120)[0])["rows"]
    assert {name: (points / name).stat().st_mtime_ns for name in finished} == finished
    assert rows == run_json(*arguments[:-2])["rows"]


def test_a_cluster_that_is_not_there() -> None:
    arguments = ("sweep", "high-load-2", "--over", "load=0.5", "--jobs", "1000", "--ray", "127.0.0.1:1")
    done = command(*arguments, stderr=subprocess.PIPE).communicate(timeout=60)[1].decode()
    assert done.startswith("error: there is no Ray cluster at 127.0.0.1:1")
    assert done.count("\n") == 1


@pytest.mark.parametrize("address", ["there", 5])
def test_what_is_no_address(address: Any) -> None:
    with pytest.raises(ValueError, match="ray: address must be True, 'auto', 'local', HOST:PORT or ray://HOST:PORT"):
        queue_env.sweep("high-load-2", "srpt", {"load": [0.5]}, jobs=10, ray=address)


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"needs Ray: install queue-env\[ray\]"), open_pool(None, True):
        pass
    for command in (("sweep", "high-load-2", "--over", "load=0.5"), ("score", "high-load-2")):
        result = run(*command, "--ray")
        assert (result.exit_code, result.stderr) == (2, "error: a cluster needs Ray: install queue-env[ray]\n")
