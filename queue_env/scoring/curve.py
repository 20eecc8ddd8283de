"""The tail of response time from 0 to far beyond what a plain run sees: `tail_curve`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from queue_env.checkpoint import Checkpoint
from queue_env.distributions.checks import positive, refuse, whole
from queue_env.plan import make_plan, signature
from queue_env.scenarios import Scenario, scenario
from queue_env.scoring import agent_blocks
from queue_env.scoring.agent_blocks import AgentBlocks, AgentPolicy
from queue_env.scoring.blocks import Blocks
from queue_env.scoring.decomposition import Decomposition, decompose
from queue_env.scoring.executors import Cluster
from queue_env.scoring.strata import check_decomposable, make_strata
from queue_env.settings import Setting
from queue_env.tail import Estimate, check_times

__all__ = ["TailCurve", "default_times", "run_decomposition", "tail_curve"]

FloatArray: TypeAlias = NDArray[np.float64]

LEAST_TAIL = 1e-100  # of the bound, where a tail is still asked for
DEFAULT_LEAST = 1e-15
MOST_JOBS = 1e10
_WARMUP = 200_000
_SEGMENT = 1_000_000
_SNAPSHOTS = 512
_FORM = 2  # of what a checkpoint holds
_LEVELS, _AGENTS_LEVELS = (1, 2, 4), (2,)  # times the servers; an agent is slow, and a pilot of one level is enough


@dataclass(frozen=True, kw_only=True, eq=False)
class TailCurve:
    """The tail of the response time T of all jobs under a policy, with 95 % intervals.

    Attributes:
        policy: its label.
        scenario: the scenario as plain data.
        t: `(times,)` increasing [time].
        bound: `(times,)` the lower bound F̄(ct) of every policy, asymptotically, with c = min(1, n(1-ρ)).
        tail: `(times,)` P[T > t].
        normalised_tail: `(times,)` R(t) = P[T > t]/F̄(ct).
        low, high: `(times,)` ends of the intervals for R(t).
        total: estimate of P[T > 0], which is one, and its half-width: a check of the method.
        jobs: simulated.
        seconds: that it took.
        seed: of the replications.
        level: b of the blocks.
        replications: number of them.
        reached: whether the wanted relative half-width was reached at every t.
    """

    policy: str
    scenario: dict[str, Any]
    t: FloatArray
    bound: FloatArray = field(repr=False)
    tail: FloatArray
    normalised_tail: FloatArray
    low: FloatArray
    high: FloatArray
    total: tuple[float, float]
    jobs: int
    seconds: float
    seed: int
    level: int
    replications: int
    reached: bool

    @property
    def relative_half_width(self) -> FloatArray:
        """Half of each interval over its estimate, shape (times,)."""
        return (self.high - self.low) / 2 / self.normalised_tail

    @property
    def plain_jobs(self) -> FloatArray:
        """Jobs that a plain run would need for the same intervals if its jobs were independent, shape (times,).

        They are not, so it would need more.
        """
        return (1.96 / self.relative_half_width) ** 2 * (1 - self.tail) / self.tail

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        columns = ("t", "tail", "normalised_tail", "low", "high", "plain_jobs")
        values = {name: np.asarray(getattr(self, name)).tolist() for name in columns}
        keep = ("policy", "scenario", "jobs", "seconds", "seed", "level", "replications", "reached")
        return {name: getattr(self, name) for name in keep} | values | {"total": list(self.total)}


def default_times(model: Scenario) -> FloatArray:
    """Half-decades from one to a million mean service times, as far as F̄(ct) is at least 1e-15."""
    times = model.sizes.mean * 10 ** np.arange(0, 6.25, 0.5)
    return np.asarray(times[model.sizes.tail(model.c * times) >= DEFAULT_LEAST])


def tail_curve(
    policy: Any,
    source: Any,
    t_grid: ArrayLike | None = None,
    *,
    rel_half_width: float = 0.05,
    seed: int = 0,
    level: int | None = None,
    most_jobs: float = MOST_JOBS,
    threads: int | None = None,
    ray: Cluster = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
) -> TailCurve:
    """Estimate the tail of response time by the largest-job decomposition, exactly and for any policy.

    Args:
        policy: as for `simulate`; or an agent, by `agent_policy`.
        source: a scenario: its name, a mapping, or a `Scenario`; of load below 1, without patience, with sizes without
            atoms and arrivals without memory (Poisson or renewal).
        t_grid: times [time], increasing, > 0; half-decades from 1 to 10⁶ mean service times if not given.
        rel_half_width: of the 95 % intervals, at which the run stops.
        seed: the result is a function of it, whatever the threads.
        level: b of the blocks; if not given, a pilot chooses it, or for an agent it is twice the servers. The result
            does not depend on it but for noise.
        most_jobs: jobs that may be simulated; then the run stops short of the precision.
        threads: replications run at once; one for each core if not given.
        ray: a Ray cluster to run them on in place of threads, by its address, or True; see `connected`.
        progress: whether to show a bar; only on a terminal, if not given.
        checkpoint: file that keeps what is finished, and from which the same call goes on.

    Raises:
        ValueError: an argument is not allowed; or the system is not stable under the policy.
        KeyboardInterrupt: interrupted before there was enough for intervals.
    """
    model = scenario(source)
    check_run("tail_curve", seed=seed, level=level, most_jobs=most_jobs, threads=threads, ray=ray)
    check_decomposable(model, "tail_curve")
    times = check_t_grid(model, default_times(model) if t_grid is None else t_grid)
    runnable = runnable_policy(model, policy, "tail_curve")
    found = run_decomposition(
        "tail_curve",
        model,
        runnable,
        times,
        np.eye(len(times) + 1),
        np.full(len(times) + 1, positive("tail_curve", "rel_half_width", rel_half_width)),
        seed=seed,
        level=level,
        most_jobs=most_jobs,
        threads=threads,
        ray=ray,
        progress=progress,
        checkpoint=checkpoint,
    )
    estimate = Estimate(found.estimate.value[1:], found.estimate.without[:, 1:], found.estimate.used)
    bound = np.asarray(model.sizes.tail(model.c * times))
    low, high = estimate.divided_by(bound).ends()
    total = found.total
    return TailCurve(
        policy=label_of(runnable),
        scenario=model.to_dict(),
        t=times,
        bound=bound,
        tail=estimate.value,
        normalised_tail=estimate.value / bound,
        low=low,
        high=high,
        total=(float(total.value[0]), float(total.half_width()[0])),
        jobs=found.jobs,
        seconds=found.seconds,
        seed=seed,
        level=found.level,
        replications=len(found.sums),
        reached=found.reached,
    )


def check_t_grid(model: Scenario, t_grid: ArrayLike) -> FloatArray:
    """Return the times of a curve.

    Raises:
        ValueError: they are not increasing, or not within where there is a tail.
    """
    times = np.atleast_1d(check_times(t_grid))
    if times.ndim != 1 or times.size == 0 or times[0] <= 0 or not np.all(np.diff(times) > 0):
        refuse("tail_curve", "t_grid", "increasing numbers > 0", t_grid)
    if not np.isfinite(times[-1]) or model.sizes.tail(model.c * times[-1]) < LEAST_TAIL:
        last = float(model.sizes.tail_quantile(LEAST_TAIL)) / model.c
        refuse("tail_curve", "t_grid", f"at most {last:.6g}, where the bound falls to {LEAST_TAIL:g}", t_grid)
    return times


def runnable_policy(model: Scenario, policy: Any, caller: str) -> Setting | AgentPolicy:
    """Return a policy of the kernel, resolved, or the agent as it is.

    Raises:
        ValueError: there is no steady state, or the policy cannot run.
    """
    if isinstance(policy, AgentPolicy):
        policy.config(model)
        return policy
    setting = make_plan(model, [policy]).settings[0]
    if setting.note:
        refuse(caller, "policy", "one under which the system is stable", f"{setting.policy.label} ({setting.note})")
    return setting


def label_of(runnable: Setting | AgentPolicy) -> str:
    """Return the label of a policy or an agent."""
    return runnable.label if isinstance(runnable, AgentPolicy) else runnable.policy.label


def _identity(runnable: Setting | AgentPolicy) -> str:
    """Return what tells a policy from others; of an agent, its label and the arguments of its environment."""
    if isinstance(runnable, AgentPolicy):
        return f"{runnable.label} {sorted(runnable.arguments.items())}"
    return signature(runnable.policy)


def check_run(
    caller: str, *, seed: int, level: int | None, most_jobs: float, threads: int | None, ray: Cluster
) -> None:
    """Raise ValueError where an argument of a run is not allowed, in the name of the caller, or ImportError."""
    whole(caller, "seed", seed, 0)
    positive(caller, "most_jobs", most_jobs)
    if level is not None:
        whole(caller, "level", level, 0)
    if threads is not None:
        whole(caller, "threads", threads, 1)
    if ray:
        from queue_env.scoring.ray_pool import check_cluster

        check_cluster(ray)


def run_decomposition(
    caller: str,
    model: Scenario,
    runnable: Setting | AgentPolicy,
    times: FloatArray,
    columns: FloatArray,
    wanted: FloatArray,
    *,
    seed: int,
    level: int | None,
    most_jobs: float,
    threads: int | None,
    ray: Cluster,
    progress: bool | None,
    checkpoint: str | Path | None,
) -> Decomposition:
    """Run the decomposition for linear functions of the tail, shape (1 + times, columns), at 0 and at some times.

    The caller's name is for messages. The first function is the tail at 0, and `wanted` has the relative half-width of
    each; the other arguments are those of `tail_curve`, checked by `check_run`.
    """
    marks = np.concatenate([[0.0], times])
    strata = make_strata(model.sizes, model.c * float(times[-1]))

    def make(chosen: int) -> Blocks | AgentBlocks:
        if isinstance(runnable, AgentPolicy):
            lengths = (agent_blocks.WARMUP, agent_blocks.SEGMENT, agent_blocks.SNAPSHOTS)
            return AgentBlocks(model, runnable, strata, marks, chosen, *lengths, columns)
        warmup = max(_WARMUP, 1000 * model.servers)
        return Blocks(model, runnable, strata, marks, chosen, warmup, _SEGMENT, _SNAPSHOTS, columns)

    identity = {
        "form": _FORM,
        "scenario": model.to_dict(),
        "policy": _identity(runnable),
        "times": times.tolist(),
        "columns": np.asarray(columns).tolist(),
        "wanted": wanted.tolist(),
        "most_jobs": most_jobs,
        "level": level,
        "seed": seed,
    }
    kept = None if checkpoint is None else Checkpoint(Path(checkpoint), identity, caller)
    factors = _AGENTS_LEVELS if isinstance(runnable, AgentPolicy) else _LEVELS
    levels = [factor * model.servers for factor in factors] if level is None else [level]
    return decompose(
        make,
        levels,
        wanted,
        seed=seed,
        most_jobs=most_jobs,
        threads=threads,
        ray=ray,
        progress=progress,
        checkpoint=kept,
        label=label_of(runnable),
    )
