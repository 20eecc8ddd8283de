"""Run policies on a scenario or a workload: `simulate`."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Event
from typing import Any, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from queue_env.checkpoint import Checkpoint
from queue_env.comparison import Comparison
from queue_env.distributions.checks import refuse, whole
from queue_env.kernel.layout import RECORD
from queue_env.plan import Plan, Source, make_plan
from queue_env.progress import Advance, job_progress
from queue_env.result import Result
from queue_env.rules import OnePolicy
from queue_env.system import System, compile_for
from queue_env.workload import Chunk

__all__ = ["simulate"]

_MEASURES = ("window", "number_area", "busy_area", "served_in_window", "little_gaps")
Finished = dict[str, Any]  # what one policy did on one stream: arrays by name, and records


class _StoppedError(Exception):
    """The run was interrupted before this stream had ended."""


class Options(TypedDict, total=False):
    """The keyword arguments of `simulate`, for its signatures with one policy and with several."""

    jobs: int | None
    seed: int
    servers: int | None
    records: bool
    clock: str | None
    warmup: int | None
    streams: int | None
    threads: int | None
    horizon: float | None
    progress: bool | None
    checkpoint: str | Path | None


@overload
def simulate(source: Source, policy: OnePolicy = "srpt", **options: Unpack[Options]) -> Result: ...
@overload
def simulate(
    source: Source, policy: list[str] | list[OnePolicy] | tuple[OnePolicy, ...], **options: Unpack[Options]
) -> Comparison: ...
def simulate(
    source: Source,
    policy: OnePolicy | list[str] | list[OnePolicy] | tuple[OnePolicy, ...] = "srpt",
    *,
    jobs: int | None = None,
    seed: int = 0,
    servers: int | None = None,
    records: bool = False,
    clock: str | None = None,
    warmup: int | None = None,
    streams: int | None = None,
    threads: int | None = None,
    horizon: float | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
) -> Result | Comparison:
    """Simulate one policy or several on the same jobs.

    A scenario runs as independent streams, whatever the number of threads. Each begins empty; after its warm-up come
    its counted jobs, and arrivals go on until all of these have left, so that large jobs are not cut off at the end. A
    workload runs once, from its first arrival until the last job has left.

    Args:
        source: a scenario (its name, a mapping, or a `Scenario`), or a `Workload`.
        policy: a name with parameters (``"thresh-split:d=2"``), a mapping, a policy of your own, or a list of these.
        jobs: counted jobs of a scenario, 1,000,000 if not given.
        seed: of the streams; the same seed gives the same jobs for every policy, and the same result to the bit.
        servers: number of servers; needed for a workload.
        records: whether to keep a record of every job, in ``result.records``: arrays in job order ``arrival_time``,
            ``size``, ``patience``, ``start_time`` (when it first got service), ``departure_time``,
            ``waiting_time`` (time at rate zero), ``outcome`` (0 served, 1 abandoned or lost, 2 still present); NaN
            where there is none. One stream, no warm-up.
        clock: patience clock: ``"queue"``, ``"fractional"`` or ``"sojourn"``; the scenario's own if not given.
        warmup: jobs of each stream before the counted ones. If not given, a tenth of them, and at least those of 20
            mean service times.
        streams: independent streams. If not given, 20 from 400,000 jobs on (more on many servers, where each stream
            needs a longer warm-up), else one, cut into 20 batches.
        threads: streams run at once; one for each core if not given. Does not change the result.
        horizon: time at which every stream ends at the latest.
        progress: whether to show a bar; only on a terminal, if not given.
        checkpoint: file that keeps the finished streams, and from which a run with the same arguments goes on.

    Returns:
        A `Result`, or for a list of policies a `Comparison`, which maps labels to results.

    Raises:
        ValueError: an argument is not allowed; says which, its value, and what is.
        KeyboardInterrupt: interrupted before a stream had ended; otherwise the result is of the streams that had.
    """
    plan = make_plan(
        source,
        policy if isinstance(policy, list | tuple) else [policy],
        jobs=jobs,
        seed=seed,
        servers=servers,
        clock=clock,
        records=records,
        warmup=warmup,
        streams=streams,
        horizon=horizon,
    )
    if threads is not None:
        whole("simulate", "threads", threads, 1)
    if checkpoint is not None and records:
        refuse("simulate", "checkpoint", "None with records, which are not kept in it", checkpoint)
    if checkpoint is not None and not isinstance(checkpoint, str | Path):
        refuse("simulate", "checkpoint", "a path, or None", checkpoint)
    kept = None if checkpoint is None else Checkpoint(Path(checkpoint), plan.identity())
    for setting in plan.settings:
        compile_for(setting, plan.clock)
    began = time.perf_counter()
    with job_progress(plan.total, "simulating", progress) as advance:
        finished = _run_streams(plan, threads or os.cpu_count() or 1, advance, kept)
    seconds = time.perf_counter() - began + (0.0 if kept is None else kept.seconds)
    results = [_result(plan, i, finished, seconds) for i in range(len(plan.settings))]
    return Comparison(results) if isinstance(policy, list | tuple) else results[0]


# ---- streams -------------------------------------------------------------------------------------


def _run_streams(plan: Plan, threads: int, advance: Advance, kept: Checkpoint | None) -> dict[int, list[Finished]]:
    """Run the streams that are not in the checkpoint; returns what each policy did on each stream."""
    finished = {} if kept is None else kept.load()
    began, stop = time.perf_counter(), Event()
    with ThreadPoolExecutor(threads) as pool:
        todo = {
            pool.submit(_run_stream, plan, stream, advance, stop): stream
            for stream in range(len(plan.lengths))
            if stream not in finished
        }
        try:
            for future in as_completed(todo):
                finished[todo[future]] = future.result()
                if kept is not None:
                    kept.save(finished, time.perf_counter() - began)
        except BaseException as error:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            if not isinstance(error, KeyboardInterrupt) or not finished:
                raise
        finally:
            if kept is not None and finished:
                kept.save(finished, time.perf_counter() - began, last=True)
    return dict(sorted(finished.items()))


def _run_stream(plan: Plan, stream: int, advance: Advance, stop: Event) -> list[Finished]:
    """Run every policy over one stream."""
    systems = [plan.system(setting, stream) for setting in plan.settings]
    running = list(systems)
    jobs, seen = [], 0
    for chunk in plan.chunks(stream):
        if stop.is_set():
            raise _StoppedError
        seen += len(chunk.sizes)
        advance(len(chunk.sizes) * len(running))
        running = [system for system in running if not system.feed(chunk)]
        if plan.workload is None:
            running = [system for system in running if seen < plan.most_jobs(system.setting, stream)]
        if plan.records:
            jobs.append(chunk)
        if not running:
            break
    if plan.workload is not None:
        for system in running:
            system.drain()
    return [_finish(plan, system, stream, jobs) for system in systems]


def _finish(plan: Plan, system: System, stream: int, jobs: list[Chunk]) -> Finished:
    memory = system.memory
    memory.stats["present"] = system.counted_present()
    measures = system.measures()
    finished: Finished = {
        "stats": memory.stats,
        "response_counts": memory.response_counts,
        "slowdown_counts": memory.slowdown_counts,
        "size_counts": memory.size_counts,
        "measures": np.array([measures[name] for name in _MEASURES]),
        "simulated": memory.system["arrived"].copy(),
    }
    if plan.records:
        finished["records"] = _records(plan, memory.records, plan.warmup + plan.lengths[stream], jobs)
    return finished


def _records(plan: Plan, kernel: NDArray[np.void], count: int, jobs: list[Chunk]) -> dict[str, NDArray[Any]]:
    """Join what the kernel recorded with what it was given."""
    arrivals, origin = [], 0.0
    for chunk in jobs:
        arrivals.append(chunk.arrival_times + origin)
        if plan.workload is None:
            origin = float(arrivals[-1][-1])
    columns = {
        "arrival_time": np.concatenate(arrivals)[:count],
        "size": np.concatenate([chunk.sizes for chunk in jobs])[:count],
    }
    patience = [np.full(len(c.sizes), np.inf) if c.patience is None else c.patience for c in jobs]
    columns["patience"] = np.concatenate(patience)[:count]
    return columns | {name: kernel[name].copy() for name in RECORD.names or ()}


# ---- results -------------------------------------------------------------------------------------


def _result(plan: Plan, index: int, finished: dict[int, list[Finished]], seconds: float) -> Result:
    parts = [streams[index] for streams in finished.values()]
    measures = np.array([part["measures"] for part in parts]).T
    stats = np.concatenate([part["stats"] for part in parts])
    counts = np.concatenate([part["response_counts"] for part in parts])
    policy = plan.settings[index].policy
    return Result(
        policy=policy.label,
        scenario=None if plan.scenario is None else plan.scenario.to_dict(),
        servers=plan.servers,
        spare=plan.spare,
        load=plan.load,
        seed=None if plan.scenario is None else plan.seed,
        jobs=int(stats["counted"].sum() + stats["present"].sum()),
        simulated=int(sum(part["simulated"].sum() for part in parts)),
        streams=len(finished),
        seconds=seconds,
        interrupted=len(finished) < len(plan.lengths),
        sizes=plan.sizes,
        stats=stats,
        response_counts=counts,
        slowdown_counts=np.concatenate([part["slowdown_counts"] for part in parts]),
        size_counts=np.concatenate([part["size_counts"] for part in parts]),
        **dict(zip(_MEASURES, measures, strict=True)),
        note=_note(plan, index, stats, counts),
        records=parts[0]["records"] if plan.records else None,
    )


def _note(plan: Plan, index: int, stats: NDArray[np.void], counts: NDArray[np.int64]) -> str:
    """What a reader of a result must know."""
    notes = [plan.settings[index].note]
    if not stats["counted"].sum() + stats["present"].sum():
        notes.append(f"no job was counted: the horizon {plan.horizon:g} ends before the warm-up of {plan.warmup} jobs")
    if counts[:, [0, -1]].any():
        notes.append(
            "some response times lie outside 2^-40 to 2^60, the range of the histogram: quantiles and tails there are "
            "wrong; take another unit of time"
        )
    return "; ".join(note for note in notes if note)
