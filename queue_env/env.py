"""The queue as a Gymnasium environment: `QueueEnv`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from queue_env.batch import BatchOfSystems
from queue_env.config import RENDER_MODES, make_config
from queue_env.distributions.checks import refuse
from queue_env.infos import info_of_one
from queue_env.kernel import env_layout as layout
from queue_env.pictures import draw, picture_of
from queue_env.snapshot import Snapshot
from queue_env.starts import read_options

__all__ = ["QueueEnv", "new_seed"]

_SEED_WORDS = 4


def new_seed(rng: np.random.Generator) -> np.random.SeedSequence:
    """Draw the seed of a stream of jobs from an environment's generator."""
    return np.random.SeedSequence(rng.integers(2**32, size=_SEED_WORDS).tolist())


class QueueEnv(gym.Env[Any, Any]):
    """Schedule an M/G/n queue: say at every event what rate each job is served at.

    ## Description
    Jobs arrive at a queue with n servers of speed one. Each has a size, the work it needs, and possibly a patience,
    after which it leaves unserved. At every event (an arrival, a completion, an abandonment) the agent sets the rate
    v_j of each job, with 0 <= v_j <= 1 and a sum of at most n; preemption loses no work. What counts is the response
    time of the jobs, by default its tail: the cost of a job is that of the tail score, whose mean over jobs is
    1/ln(t1/t0) ∫ P[T>t]/P[S>ct] dt/t over t0 <= t <= t1, and c = min(1, n(1-ρ)).

    ## Action Space
    | action | space | unit | meaning |
    |---|---|---|---|
    | `allocation` | `Box(0, 1, (K,))` | servers | desired rates of the jobs in the rows of the observation |
    | `anchor` | `Box(0, 1, (1,))` | servers | the anchor's rate; SRPT for the others |
    | `priority` | `Box(-1, 1, (K,))` | - | the n jobs of highest priority get rate one |
    | `rule` | `Discrete(rules)` | - | the reference rule that allocates until the next decision |

    Any real number is accepted; NaN is an error. Desired rates are projected (Euclidean) onto what is allowed, and what
    is left of the servers goes to the jobs in SRPT order if `work_conserving`. With `symmetric_actions` a rate is
    written as a in [-1, 1] for (a+1)/2. Of the other jobs under `anchor`, the n-1 of smallest remaining size get rate
    one and the n-th what the anchor leaves of one. The anchor is a job that arrived to an empty system and keeps the
    role until it completes; then the largest original size present takes it.

    ## Observation Space
    | feature | of | unit | min | max |
    |---|---|---|---|---|
    | `number`: jobs present | system | jobs | 0 | capacity |
    | `work`: total remaining work | system | work | 0 | 1e18 |
    | `anchor_size`: the anchor's original size | system | work | 0 | 1e18 |
    | `elapsed`: since the last decision | system | time | 0 | 1e18 |
    | `spare`: n(1-ρ) | system | servers | -1e9 | 1e9 |
    | `remaining`, `size`, `attained` service | job | work | 0 | 1e18 |
    | `age`, `patience` that is left | job | time | 0 | 1e18 |
    | `anchor`, `largest`, `served`, `present` | job | 0/1 | 0 | 1 |

    `flat` is a float32 `Box`, the system's features first, then K rows of a job each; work, time and counts are
    compressed to ln(1 + x), work and time in units of the mean size. `dict` has the same as raw float64 boxes by name.
    `compact` has the system's features, a row of the anchor and n+1 rows of the jobs of smallest remaining size, each
    with `remaining`, `size`, `age`, `anchor`, `present`. The rows are in SRPT order. If more than K jobs are present,
    the table holds the anchor, the largest, the newest, the n oldest, and then those of smallest remaining size. With
    `size_knowledge="unknown"` sizes and what tells of them are left out, and the rows are in order of arrival.

    ## Rewards
    Minus `reward_scale` times the sum of the weighted terms, paid as jobs age:
    | term | cost of a job | unit |
    |---|---|---|
    | `tail` | 1/ln(t1/t0) ∫ dt/(t P[S>ct]) up to its age | - |
    | `mean` | its time in the system | time |
    | `slowdown` | its time in the system over its size | - |
    | `moment(p)` | its time in the system to the power p | time^p |
    | `exceed(t)` | one, when it is older than t | jobs |
    | `wait` | its time at rate zero | time |
    | `abandon` | one, if it leaves unserved | jobs |

    ## Starting State
    An empty system; the first observation is at the first arrival. A `big-job` episode starts with one job, whose size
    x is log-uniform over `big_sizes`; later sizes are at most x; all costs are weighted by f(x)/q(x), with the
    densities f of sizes and q of x, and by P[S<=x] once more at every later arrival.

    ## Episode End
    Termination: in a `big-job` episode, the system is empty. Truncation: `jobs` jobs have left; `horizon` is reached;
    more than `capacity` jobs would be present; the jobs of a given workload have all left; nobody is served and nobody
    arrives. `info["reason"]` says which.

    ## Information
    `dt` since the last decision (0 on reset), `time`, `completions`, `abandonments`, `response_time` (summed over the
    completions), `cost` by term; `weight` in big-job episodes; `allocation` (executed rates by row) if
    `allocation_in_info`; `reason` and `summary` when the episode is over.

    ## Arguments
    Args:
        scenario: name of a scenario, or a mapping of its fields.
        overrides: fields of the scenario to replace, such as `{"load": 0.9}`.
        action: `"allocation"`, `"anchor"`, `"priority"` or `"rule"`.
        observation: `"flat"`, `"dict"` or `"compact"`.
        reward: a term, or a mapping of terms to weights; by default `"tail"`, in overload `"wait"`.
        reward_scale: factor of the reward.
        tail_range: t0 and t1 of the tail score [mean service times].
        episode: `"jobs"`, `"horizon"` or `"big-job"`.
        jobs: departures in an episode of kind `jobs`.
        horizon: length of an episode of kind `horizon` [mean service times].
        big_sizes: range of the first job's size in a `big-job` episode [mean sizes].
        slots: rows of the job table K; by default max(16, 2n+3), which is the least for actions by job.
        capacity: most jobs present.
        decision_interval: time between decisions [mean service times]; by default every event is one.
        work_conserving: whether unused capacity goes to the jobs present.
        symmetric_actions: whether rates are written on the scale [-1, 1].
        size_knowledge: `"known"` or `"unknown"`.
        rules: policies for the action `rule`; by default all that can run.
        allocation_in_info: whether `info` has the executed rates.
        records: whether `records()` has a record of every job.
        render_mode: `"ansi"`, `"rgb_array"`, `"human"` or None.

    Options of `reset`: `workload` (a `Workload`, for this episode), `jobs` (jobs present at the start: mappings with
    `size` and possibly `remaining`, `age`, `patience`, `anchor`), `snapshot` (of `snapshot()`; it goes on with the same
    jobs, or with others if a seed is given), `job` (one more that arrives at the start: `size`, `patience`).

    Raises:
        ValueError: an argument is not allowed.

    ## Vectorized environment
    `gymnasium.make_vec("queue_env/MGn-v0", num_envs=B)` makes a `QueueVectorEnv` of B systems in one kernel.

    ## Version History
    * v0: initial version.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": list(RENDER_MODES),
        "render_fps": 10,
    }

    def __init__(
        self,
        scenario: str | Mapping[str, Any] = "high-load-2",
        *,
        overrides: Mapping[str, Any] | None = None,
        action: str = "allocation",
        observation: str = "flat",
        reward: str | Mapping[str, float] | None = None,
        reward_scale: float = 1.0,
        tail_range: Sequence[float] = (1.0, 1e4),
        episode: str = "jobs",
        jobs: int = 1000,
        horizon: float = 1000.0,
        big_sizes: Sequence[float] | None = None,
        slots: int | None = None,
        capacity: int | None = None,
        decision_interval: float | None = None,
        work_conserving: bool = True,
        symmetric_actions: bool = False,
        size_knowledge: str = "known",
        rules: Sequence[str] | None = None,
        allocation_in_info: bool = False,
        records: bool = False,
        render_mode: str | None = None,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name not in ("self", "scenario", "__class__")}
        self.config = make_config(scenario, **arguments)
        self.layout, self.actions = self.config.layout, self.config.actions
        self.observation_space, self.action_space = self.layout.space(), self.actions.space()
        self.render_mode = render_mode
        self.batch = BatchOfSystems(self.config, 1, layout.DISABLED)
        self._over = True
        self._painter: Any = None
        self._responses: list[float] = []
        self._total = 0.0

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: of the jobs to come; None goes on with those of the last seed.
            options: how to start; see the class.

        Raises:
            ValueError: an option is not allowed.
        """
        super().reset(seed=seed)
        start = read_options(self.config, self.batch.memory, options)
        fresh = seed is not None or not self.batch.seeded(0)
        self.batch.reset([0], {0: new_seed(self.np_random)} if fresh else {}, start)
        self._over = False
        self._responses, self._total = [], 0.0
        self._show()
        outcome = self.batch.memory.outcomes[0].tolist()
        return self._observation(), info_of_one(self.config, outcome, np.zeros(self.config.slots))

    def step(self, action: ArrayLike) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Hold an action until the next decision.

        Raises:
            ValueError: the action has a wrong shape, holds NaN, or the episode is over.
        """
        if self._over:
            refuse("step", "episode", "running: call reset first", "over")
        self.actions.put_one(action, self.batch.memory.actions)
        self.batch.step()
        memory = self.batch.memory
        outcome = memory.outcomes[0].tolist()
        terminated, truncated = outcome[layout.TERMINATED] > 0, outcome[layout.TRUNCATED] > 0
        self._over = terminated or truncated
        if self.render_mode is not None:
            self._note(outcome)
        return (
            self._observation(),
            outcome[layout.REWARD],
            terminated,
            truncated,
            info_of_one(self.config, outcome, memory.rates[0]),
        )

    def snapshot(self) -> Snapshot:
        """Return the whole state between two decisions, for `reset(options={"snapshot": ...})`."""
        return self.batch.snapshot(0)

    def records(self) -> NDArray[np.void]:
        """Return a record of each job that has arrived in this episode, by job number; needs `records=True`.

        Fields: arrival_time, size, start_time, departure_time, waiting_time, outcome (0 served, 1 abandoned,
        2 present); times count from the episode's start, NaN where there is none.
        """
        if not self.config.records:
            refuse("records", "records", "True, given to the environment", False)
        return self.batch.records(0)

    def render(self) -> Any:
        """Draw the queue as it is now: a text, a picture (height, width, 3), or a window."""
        if self.render_mode is None:
            gym.logger.warn("render() does nothing: make the environment with a render_mode")
            return None
        if self.render_mode == "human":
            return None  # drawn at every step
        return self._draw()

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._painter is not None:
            self._painter.close()
            self._painter = None
        self.batch.close()

    def _observation(self) -> Any:
        return self.layout.view(self.batch.memory.observations[0].copy())

    def _note(self, outcome: list[float]) -> None:
        served = int(outcome[layout.COMPLETIONS])
        self._responses += [outcome[layout.RESPONSE] / max(served, 1)] * served
        self._total += outcome[layout.REWARD]
        self._show()

    def _show(self) -> None:
        if self.render_mode == "human":
            self._draw()

    def _draw(self) -> Any:
        picture = picture_of(self.config, self.batch, 0, self._responses, self._total)
        self._painter, drawn = draw(self.render_mode, picture, self._painter, self.metadata["render_fps"])
        return drawn
