"""Plain runs of policies and agents, for the means and quantiles beside its score."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from queue_env.by_size import size_edges
from queue_env.kernel.layout import ABANDONED, BINS, SERVED, SIZE_BINS, STATS
from queue_env.result import Result
from queue_env.scenarios import Scenario
from queue_env.scoring.lanes import AgentPolicy
from queue_env.simulator import simulate
from queue_env.tail import bin_edges
from queue_env.vector_env import QueueVectorEnv

__all__ = ["AGENT_JOBS", "plain_run", "run_agent"]

AGENT_JOBS = 400_000  # at most, for an agent decides at every event
_STREAMS = 20
_WARMUP = 0.1  # of the counted jobs of a stream
_PATIENCE = 3  # times the jobs of a stream, after which those that are still there count as present


def plain_run(
    model: Scenario, policy: Any, *, jobs: int, seed: int, threads: int | None, progress: bool | None
) -> Result:
    """Run a policy plainly: by `simulate`, or if it is an agent by `run_agent`, for `AGENT_JOBS` at most."""
    if isinstance(policy, AgentPolicy):
        return run_agent(model, policy, min(jobs, AGENT_JOBS), seed)
    result: Result = simulate(model, policy, jobs=jobs, seed=seed, threads=threads, progress=progress)
    return result


def run_agent(model: Scenario, policy: AgentPolicy, jobs: int, seed: int) -> Result:
    """Run an agent over independent streams, side by side, and return the statistics as `simulate` does.

    Args:
        model: the scenario.
        policy: the agent and its environment.
        jobs: to count, in all streams.
        seed: of the streams.
    """
    began = time.perf_counter()
    each = max(jobs // _STREAMS, 10)
    first = int(_WARMUP * each)
    envs = QueueVectorEnv(_STREAMS, **policy.environment(model, records=True))
    observations, _ = envs.reset(seed=seed)
    start, state = np.ones(_STREAMS, np.bool_), None
    while not _all_left(envs, first, first + each):
        actions, state = policy.agent.predict(observations, state, start, deterministic=True)
        observations, _, terminated, truncated, infos = envs.step(actions)
        start = np.zeros(_STREAMS, np.bool_)
        if np.any(terminated | truncated):
            reason = next(text for text in infos["reason"] if text)
            raise ValueError(
                f"agent {policy.label}: an endless episode has ended ({reason}); allowed: one that goes on"
            )
    result = _result(model, policy.label, envs, (first, first + each), seed, began)
    envs.close()
    return result


def _all_left(envs: QueueVectorEnv, first: int, last: int) -> bool:
    systems = envs.batch.memory.systems
    if systems["arrived"].min() < last:
        return False
    if systems["arrived"].max() > _PATIENCE * last:
        return True
    return not any(np.any(_between(envs.batch.present(b)["number"], first, last)) for b in range(envs.num_envs))


def _between(numbers: NDArray[Any], first: int, last: int) -> NDArray[np.bool_]:
    return np.asarray((numbers >= first) & (numbers < last))


def _result(
    model: Scenario, label: str, envs: QueueVectorEnv, counted: tuple[int, int], seed: int, began: float
) -> Result:
    stats = np.zeros(_STREAMS, STATS)
    responses, slowdowns = (np.zeros((_STREAMS, BINS), np.int64) for _ in range(2))
    sizes = np.zeros((_STREAMS, 2, SIZE_BINS), np.int64)
    systems, served_work = envs.batch.memory.systems, np.zeros(_STREAMS)
    for b in range(_STREAMS):
        records = envs.records(b)
        rows = records[counted[0] : counted[1]]
        served = _served(rows)
        served_work[b] = _served(records)["size"].sum()
        response = served["departure_time"] - served["arrival_time"]
        slowdown = response / served["size"]
        _fill(stats[b], rows, served, response, slowdown)
        responses[b], slowdowns[b] = _histogram(response, bin_edges()), _histogram(slowdown, bin_edges())
        sizes[b, SERVED] = _histogram(served["size"], size_edges())
        sizes[b, ABANDONED] = _histogram(_abandoned(rows)["size"], size_edges())
    now = systems["origin"] + systems["now"]
    return Result(
        policy=label,
        scenario=model.to_dict(),
        servers=model.servers,
        spare=model.spare,
        load=model.load,
        seed=seed,
        jobs=int(stats["counted"].sum() + stats["present"].sum()),
        simulated=int(systems["arrived"].sum()),
        streams=_STREAMS,
        seconds=time.perf_counter() - began,
        interrupted=False,
        sizes=model.sizes,
        stats=stats,
        response_counts=responses,
        slowdown_counts=slowdowns,
        size_counts=sizes,
        window=now.astype(float),
        number_area=systems["number_area"].astype(float),
        busy_area=served_work,
        served_in_window=systems["completed"].astype(float),
        little_gaps=np.zeros(_STREAMS),
    )


def _served(records: NDArray[np.void]) -> NDArray[np.void]:
    return np.asarray(records[records["outcome"] == SERVED])


def _abandoned(records: NDArray[np.void]) -> NDArray[np.void]:
    return np.asarray(records[np.isfinite(records["departure_time"]) & (records["outcome"] != SERVED)])


def _fill(
    row: Any, rows: NDArray[np.void], served: NDArray[np.void], response: NDArray[Any], slowdown: NDArray[Any]
) -> None:
    gone = rows[np.isfinite(rows["departure_time"])]
    row["counted"], row["served"], row["present"] = len(gone), len(served), len(rows) - len(gone)
    row["abandoned"] = len(gone) - len(served)
    row["response_sum"], row["response_square_sum"] = response.sum(), (response**2).sum()
    row["slowdown_sum"], row["slowdown_square_sum"] = slowdown.sum(), (slowdown**2).sum()
    row["response_max"], row["slowdown_max"] = response.max(initial=0.0), slowdown.max(initial=0.0)
    row["waiting_sum"], row["waiting_square_sum"] = gone["waiting_time"].sum(), (gone["waiting_time"] ** 2).sum()
    row["waited"], row["size_sum"] = int((gone["waiting_time"] > 0).sum()), served["size"].sum()
    lost = _abandoned(rows)
    row["abandoned_time_sum"] = (lost["departure_time"] - lost["arrival_time"]).sum()


def _histogram(values: NDArray[Any], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    bins = len(edges) - 1
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, bins - 1)
    return np.bincount(places, minlength=bins)
