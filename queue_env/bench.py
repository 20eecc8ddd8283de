"""How fast the simulator is: jobs a second by policy and number of servers, workload and statistics included."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from queue_env.plan import CHUNK
from queue_env.result import Result
from queue_env.scenarios import Scenario, scenario
from queue_env.simulator import simulate

__all__ = ["run_bench"]


@dataclass(frozen=True)
class Case:
    """One line of the benchmark."""

    model: str
    policy: str
    scenario: Scenario


def _scenario(servers: int, load: float, alpha: float | None, patience: bool = False) -> Scenario:
    sizes = {"law": "exponential", "mean": 1} if alpha is None else {"law": "pareto", "alpha": alpha, "mean": 1}
    overrides = {"servers": servers, "load": load, "sizes": sizes}
    if patience:
        overrides["patience"] = {"law": "exponential", "mean": 1}
    return scenario("light-2", **overrides)


def _cases(quick: bool) -> Iterator[Case]:
    yield Case("M/M/1, load 0.9", "fcfs", _scenario(1, 0.9, None))
    for policy in ("srpt", "split", "dynasplit", "fcfs"):
        yield Case("M/G/4, load 0.9, Pareto 2.2", policy, _scenario(4, 0.9, 2.2))
    if quick:
        return
    for policy in ("backlog-split", "thresh-split", "psjf", "las", "ps"):
        yield Case("M/G/2, load 0.8, Pareto 1.5", policy, scenario("high-load-2"))
    for servers in (1, 2, 8, 32, 100, 1000, 10_000):
        yield Case(f"M/G/{servers}, load 0.9, Pareto 2.2", "srpt", _scenario(servers, 0.9, 2.2))
    yield Case("M/M/100+M, load 1.2", "fcfs", _scenario(100, 1.2, None, patience=True))
    yield Case("M/M/1000+M, load 1.2", "srpt", _scenario(1000, 1.2, None, patience=True))


def run_bench(jobs: int = 2_000_000, quick: bool = False) -> list[dict[str, Any]]:
    """Measure the simulator on this machine.

    Jobs a second are of one thread, from making the workload to the statistics, warm-up jobs included; compilation is
    not counted.

    Args:
        jobs: counted jobs of each line.
        quick: the first few lines only.

    Returns:
        One row a line: ``model``, ``policy``, ``jobs_per_second``, ``workload_share`` (of the time, for making jobs),
        ``mean_response``; then one with ``threads`` 2 and its ``speed_up``; then cimba's M/M/1, where it is installed.

    Raises:
        ValueError: jobs is not allowed.
    """
    rows = [_measure(case, jobs) for case in _cases(quick)]
    rows.append(_two_threads(jobs))
    return rows + _cimba(jobs)


def _run(source: Scenario, policy: str, **options: Any) -> Result:
    result = simulate(source, policy, progress=False, **options)
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def _measure(case: Case, jobs: int) -> dict[str, Any]:
    result = _run(case.scenario, case.policy, jobs=jobs, threads=1, streams=1)
    made = _workload_seconds(case.scenario, result.simulated)
    return {
        "model": case.model,
        "policy": case.policy,
        "threads": 1,
        "jobs_per_second": result.simulated / result.seconds,
        "workload_share": min(made / result.seconds, 1.0),
        "mean_response": result.mean_response,
    }


def _workload_seconds(source: Scenario, jobs: int) -> float:
    stream = source.stream(np.random.SeedSequence(0))
    began = time.perf_counter()
    for _ in range(-(-jobs // CHUNK)):
        stream.chunk(CHUNK)
    return time.perf_counter() - began


def _two_threads(jobs: int) -> dict[str, Any]:
    source = _scenario(4, 0.9, 2.2)
    one, two = (_run(source, "srpt", jobs=4 * max(jobs, 1000), streams=8, threads=threads) for threads in (1, 2))
    return {
        "model": "M/G/4, load 0.9, Pareto 2.2",
        "policy": "srpt",
        "threads": 2,
        "jobs_per_second": two.simulated / two.seconds,
        "speed_up": one.seconds / two.seconds,
        "mean_response": two.mean_response,
    }


def _cimba(jobs: int) -> list[dict[str, Any]]:
    if find_spec("cimba") is None:
        return []
    command = [sys.executable, "-m", "queue_env.bench_cimba", str(jobs)]
    return [json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)]
