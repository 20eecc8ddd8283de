"""Sweeps: policies on scenarios that differ in one value or several, point by point: `sweep`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.distributions.checks import positive, refuse, whole
from queue_env.interrupts import Interrupts
from queue_env.progress import job_progress
from queue_env.quantities import estimate
from queue_env.rules import OnePolicy, parse_policy
from queue_env.scenarios import scenario
from queue_env.scoring.curve import check_run
from queue_env.scoring.executors import Cluster, open_pool
from queue_env.scoring.score import score
from queue_env.scoring.sweep_points import SCORE, Measuring, Point, Value, make_points
from queue_env.simulator import simulate
from queue_env.tail import Estimate, Interval

__all__ = ["Measured", "Sweep", "measure_point", "sweep"]

FloatArray: TypeAlias = NDArray[np.float64]

DEFAULT_WIDTH, MOST_JOBS = 0.05, 2e8


@dataclass(frozen=True)
class Measured:
    """What one policy did at one point.

    Attributes:
        estimate: of the measure, by rows that are the same jobs for all policies of the point.
        jobs: simulated.
        present: counted jobs of the plain run that were still in the system at its end, and so enter nothing.
        reached: whether a score is as precise as was asked for.
    """

    estimate: Estimate
    jobs: int
    present: int
    reached: bool = True


@dataclass(frozen=True)
class Sweep:
    """One number of policies, over the values of one axis or several.

    Attributes:
        measure: what the number is: a quantity as in `Result.value`, or "score".
        scenario: that was changed, as plain data.
        axes: values by axis, in order.
        policies: labels, without what the sweep changes.
        points: combinations of the values, the last axis fastest.
        found: what each policy did, by point.
        seed: of the sweep; each point has its own.
    """

    measure: str
    scenario: dict[str, Any]
    axes: dict[str, tuple[Value, ...]]
    policies: tuple[str, ...]
    points: tuple[Point, ...] = field(repr=False)
    found: tuple[tuple[Measured, ...], ...] = field(repr=False)
    seed: int

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(len(values) for values in self.axes.values())

    def intervals(self, policy: str) -> list[Interval]:
        """The number of a policy at every point, with its 95 % interval.

        Raises:
            ValueError: there is no such policy.
        """
        index = self._index(policy)
        return [_interval(row[index].estimate) for row in self.found]

    def ratios(self, policy: str, base: str) -> list[Interval]:
        """The number of a policy over that of another at every point, with an interval over the same jobs.

        Raises:
            ValueError: there is no such policy.
        """
        first, second = self._index(policy), self._index(base)
        return [row[first].estimate.ratio_to(row[second].estimate) for row in self.found]

    def values(self, policy: str) -> FloatArray:
        """The number of a policy, shape `shape`.

        Raises:
            ValueError: there is no such policy.
        """
        return np.array([interval.value for interval in self.intervals(policy)]).reshape(self.shape)

    def to_list(self) -> list[dict[str, Any]]:
        """A row for each policy at each point, as plain data; the ratio is to the first policy."""
        values = {policy: self.intervals(policy) for policy in self.policies}
        ratios = {policy: self.ratios(policy, self.policies[0]) for policy in self.policies}
        return [
            {
                **point.place,
                "policy": policy,
                **_ends("", values[policy][k]),
                **_ends("ratio_", ratios[policy][k]),
                "jobs": row[index].jobs,
                "present": row[index].present,
                "reached": row[index].reached,
                "seed": point.seed,
            }
            for k, (point, row) in enumerate(zip(self.points, self.found, strict=True))
            for index, policy in enumerate(self.policies)
        ]

    def _index(self, policy: str) -> int:
        if policy not in self.policies:
            refuse("sweep", "policy", f"one of {', '.join(self.policies)}", policy)
        return self.policies.index(policy)


def sweep(
    source: Any,
    policies: OnePolicy | Sequence[OnePolicy],
    over: Mapping[str, Sequence[Value]],
    *,
    measure: str = "mean_response",
    jobs: int = 1_000_000,
    rel_half_width: float = DEFAULT_WIDTH,
    most_jobs: float = MOST_JOBS,
    seed: int = 0,
    threads: int | None = None,
    ray: Cluster = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
) -> Sweep:
    """Measure policies on a scenario, over all combinations of other values in some of its places.

    All policies meet the same jobs at a point. Points have seeds of their own, which depend on nothing but the scenario
    of the point and `seed`: a point has the same result in any sweep, and `simulate` gives it too.

    Args:
        source: a scenario: its name, a mapping, or a `Scenario`.
        policies: one, or several, as for `simulate`.
        over: values by axis: "load", "servers", a number of the law of sizes such as "alpha" (the mean size stays as it
            is), or a parameter of reference policies, such as "margin", for those that take it. Where the sizes and a
            policy have the same name, "sizes.shape" and "policy.shape".
        measure: a name as in `Result.value`, such as "mean_response", "quantile:0.99" or "tail:1000"; or "score".
        jobs: counted jobs at each point; for a score those of its plain run.
        rel_half_width: of a score, as for `score`.
        most_jobs: of each score, as for `score`.
        seed: the result is a function of it, whatever the threads or the cluster.
        threads: of this machine, for the streams of a point; one for each core if not given.
        ray: a Ray cluster to run the points on, by its address, or True; see `connected`.
        progress: whether to show a bar; only on a terminal, if not given.
        checkpoint: directory that keeps a file for every finished point, and from which later sweeps take theirs.

    Raises:
        ValueError: an argument is not allowed, or a policy cannot run at one of the points; before any work.
        ImportError, ConnectionError: the cluster cannot be used.
        KeyboardInterrupt: interrupted; what is finished is in the checkpoint.
    """
    model = scenario(source)
    width = positive("sweep", "rel_half_width", rel_half_width)
    measuring = Measuring(measure, whole("sweep", "jobs", jobs, 1), width, most_jobs)
    check_run("sweep", seed=seed, level=None, most_jobs=most_jobs, threads=threads, ray=ray)
    listed: list[Any] = list(policies) if isinstance(policies, list | tuple) else [policies]
    axes, points = make_points(model, listed, over, measuring, seed)
    kept = None if checkpoint is None else _Kept(Path(checkpoint), measuring)
    found = {} if kept is None else kept.load(points)
    todo = {k: point for k, point in enumerate(points) if k not in found}
    with job_progress(len(todo), "sweep", progress, "points") as advance:
        for k, row in _measure_all(todo, measuring, threads, ray):
            found[k] = row
            if kept is not None:
                kept.add(points[k], row)
            advance(1)
    return Sweep(
        measure=measure,
        scenario=model.to_dict(),
        axes={axis.name: axis.values for axis in axes},
        policies=tuple(parse_policy(policy).label for policy in listed),
        points=tuple(points),
        found=tuple(found[k] for k in range(len(points))),
        seed=seed,
    )


def _measure_all(
    todo: Mapping[int, Point], measuring: Measuring, threads: int | None, ray: Cluster
) -> Iterator[tuple[int, tuple[Measured, ...]]]:
    """Yield what was found at points as they are finished: on a cluster side by side, else one after the other."""
    if ray:
        with open_pool(None, ray) as pool:
            waiting = {pool.submit(measure_point, point, measuring, 1): k for k, point in todo.items()}
            try:
                for future in as_completed(waiting):
                    yield waiting[future], future.result()
            finally:
                for future in waiting:
                    future.cancel()
        return
    with Interrupts() as interrupts:
        for k, point in todo.items():
            row = measure_point(point, measuring, threads)
            if interrupts.seen:  # the row is of what there was by then
                raise KeyboardInterrupt
            yield k, row


def measure_point(point: Point, measuring: Measuring, threads: int | None) -> tuple[Measured, ...]:
    """Run the policies of a point on the same jobs."""
    if measuring.measure == SCORE:
        return tuple(_measured_score(point, index, measuring, threads) for index in range(len(point.policies)))
    results = simulate(
        point.scenario,
        tuple(point.policies),
        jobs=measuring.jobs,
        seed=point.seed,
        threads=threads,
        progress=False,
    )
    return tuple(
        Measured(estimate(result, measuring.measure), result.simulated, result.present) for result in results.values()
    )


def _measured_score(point: Point, index: int, measuring: Measuring, threads: int | None) -> Measured:
    found = score(
        point.policies[index],
        point.scenario,
        rel_half_width=measuring.rel_half_width,
        plain_jobs=measuring.jobs,
        most_jobs=measuring.most_jobs,
        seed=point.seed,
        threads=threads,
        progress=False,
    )
    assert found.estimate is not None  # only where jobs have patience, which is refused
    whole = found.estimate
    return Measured(
        Estimate(whole.value[1], whole.without[:, 1], whole.used), found.jobs, found.plain.present, found.reached
    )


def _interval(found: Estimate) -> Interval:
    low, high = found.ends()
    return Interval(float(found.value), float(low), float(high), 0.95)


def _ends(prefix: str, interval: Interval) -> dict[str, float]:
    return {f"{prefix}{name}": getattr(interval, name) for name in ("value", "low", "high")}


# ---- what is kept --------------------------------------------------------------------------------


class _Kept:
    """A directory with a file for every finished point, which is written beside and renamed.

    Args:
        directory: made if it is not there.
        measuring: what the points are about; files of others may lie beside.
    """

    def __init__(self, directory: Path, measuring: Measuring) -> None:
        if directory.exists() and not directory.is_dir():
            refuse("sweep", "checkpoint", "a directory", str(directory))
        self._directory, self._measuring = directory, measuring

    def load(self, points: Sequence[Point]) -> dict[int, tuple[Measured, ...]]:
        """Return what there is of these points, by their numbers."""
        there = {k: self._file(point) for k, point in enumerate(points)}
        return {k: _read(file) for k, file in there.items() if file.exists()}

    def add(self, point: Point, row: tuple[Measured, ...]) -> None:
        """Keep a point."""
        self._directory.mkdir(parents=True, exist_ok=True)
        file = self._file(point)
        beside = file.with_name(f"{file.name}.part")
        policies = [policy.label for policy in point.policies]
        rows = [_plain(measured) for measured in row]
        document = {"scenario": point.scenario.to_dict(), "policies": policies, "seed": point.seed, "found": rows}
        beside.write_text(json.dumps(document), encoding="utf-8")
        os.replace(beside, file)

    def _file(self, point: Point) -> Path:
        return self._directory / f"{point.key(self._measuring)}.json"


def _plain(measured: Measured) -> dict[str, Any]:
    found = measured.estimate
    numbers = {name: np.asarray(getattr(found, name)).tolist() for name in ("value", "without", "used", "most")}
    return numbers | {name: getattr(measured, name) for name in ("jobs", "present", "reached")}


def _read(file: Path) -> tuple[Measured, ...]:
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))["found"]
        return tuple(
            Measured(
                Estimate(
                    np.array(row["value"]),
                    np.array(row["without"], dtype=np.float64),
                    np.array(row["used"], dtype=np.bool_),
                    row["most"],
                ),
                row["jobs"],
                row["present"],
                row["reached"],
            )
            for row in rows
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"sweep: checkpoint must hold files that sweep wrote, got {str(file)!r}") from error
