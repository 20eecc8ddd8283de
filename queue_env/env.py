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
from queue_env.pictures import Drawings
from queue_env.snapshot import Snapshot
from queue_env.starts import new_seed, read_options

__all__ = ["QueueEnv"]


class QueueEnv(gym.Env[Any, Any]):
    """Schedule an M/G/n queue: say at every event what rate each job is served at.

    ## Description
    Jobs arrive at a queue with n servers of speed one. Each has a size, the work it needs, and possibly a patience,
    after which it leaves unserved. At every event (an arrival, a completion, an abandonment), or at regular times with
    `decision_interval`, the agent says at what rate v_j each job is served, with 0 <= v_j <= 1 and a sum of at most n;
    preemption loses no work. What counts is the response time T of the jobs, and where sizes have a heavy tail, its
    tail: the mean of the cost `tail` over jobs is the tail score, 1/ln(t1/t0) ∫ P[T>t]/P[S>ct] dt/t over t0 <= t <= t1,
    with S the size of a job and c = min(1, n(1-ρ)) at load ρ. Lower is better.

    A server does one unit of work in one unit of time; which unit that is depends on the scenario (in the ready-made
    ones the mean size is 1). "Mean sizes" and "mean service times" are multiples of the mean size; a dash is no unit.

    `import queue_env` registers `queue_env/MGn-v0`, which has the scenario `high-load-2` by default, and an id for each
    ready-made scenario: `queue_env/HighLoad2-v0`, `queue_env/HighLoad4-v0`, `queue_env/HighLoad10-v0`,
    `queue_env/LowLoad4-v0`, `queue_env/Light2-v0`, `queue_env/Impatient100-v0`, `queue_env/ImpatientDhr100-v0`,
    `queue_env/ImpatientDhrLight100-v0`.

    ## Action Space
    By the argument `action`, with K the rows of the job table (`slots`):

    | Num | Action | Min | Max | Unit |
    |---|---|---|---|---|
    | 0 to K-1 | `allocation`: desired rates of the jobs in the rows of the observation | 0 | 1 | servers |
    | 0 | `anchor`: the anchor's rate; SRPT for the others | 0 | 1 | servers |
    | 0 to K-1 | `priority`: priorities of the jobs in the rows; the n highest get rate one | -1 | 1 | - |
    | 0 | `rule`: which of `rules` allocates until the next decision | 0 | number of rules - 1 | - |
    | 0, 1 | `threshold`: the share p of the jobs, the smallest, that has priority; the order b in a class | 0 | 1 | - |

    `rule` is a `Discrete`, the others are float32 boxes, of shape (1,) `anchor`, (2,) `threshold`, else (K,). In a box
    any real number is accepted, and NaN is an error. With `symmetric_actions` the number (a+1)/2 is written as a in
    [-1, 1].
    What the agent asks for holds until the next decision; the rates that follow from it are set anew at every event. A
    job that is in no row asks for rate 0 or has the lowest priority, and empty rows do not count.

    * `allocation`: the rates are the nearest to the desired ones (Euclidean distance) that are allowed. What is left of
      the servers goes to the jobs in SRPT order, smallest remaining size first, if `work_conserving`.
    * `anchor`: of the other jobs, the n-1 of smallest remaining size get rate one, and the n-th what the anchor leaves
      of one. If `work_conserving`, all get rate one where there are at most n. The anchor is a job that arrived to an
      empty system and keeps the role until it leaves; then the largest original size present takes it.
    * `priority`: of equal priorities the job that came first goes first.
    * `threshold`: a small action for many servers, at a cost that does not grow with them. A job of size s has priority
      if P[S<=s] <= p: nobody at p = 0, everybody at 1. Those that have it go before the others and take their servers,
      first from the longest remaining size. Within a class who is in service stays; a free server goes to the oldest
      job that is not older than (1-b)/b mean service times, and without one to the newest: b = 0 is first come, first
      served, b = 1 last come, first served. Where sizes are hidden, a job has priority until its attained service x
      has P[S<=x] = p, in the midst of a step too, and the most attained service yields first. Another p changes the
      classes of all jobs present at once. (0, 0) is the policy `fcfs`, (0, 1) `lcfs`, (P[S<=tau], 0) `two-class`, whose
      throughput in overload is that of `srpt` as n grows.

    ## Observation Space
    By the argument `observation`, with R rows of F features each:

    * `flat`: float32 `Box` of shape (5 + R·F,), R = K. First the system's features, then those of row 0, of row 1, ...
    * `dict`: `Dict` of float64 boxes by the names below, shape (1,) for the system's features and (K,) for the jobs'.
    * `compact`: float32 `Box` as `flat`, with R = n+2: the anchor's row, then the n+1 jobs of smallest remaining size,
      the anchor again if it is one of them. Only with `action` `anchor` or `rule`: the others name rows of the table.
    * `summary`: float32 `Box` of shape (11,), without rows; see below. With `action` `threshold`, and only there.

    | Num | Observation | Min | Max | Unit |
    |---|---|---|---|---|
    | 0 | `number`: jobs present N | 0 | 1e18 | jobs |
    | 1 | `work`: total remaining work | 0 | 1e18 | work |
    | 2 | `anchor_size`: original size of the anchor, 0 without one | 0 | 1e18 | work |
    | 3 | `elapsed`: time since the last decision | 0 | 1e18 | time |
    | 4 | `spare`: spare capacity n(1-ρ) | -1e9 | 1e9 | servers |
    | r | `remaining`: work that is left of the job | 0 | 1e18 | work |
    | r+1 | `size`: its original size | 0 | 1e18 | work |
    | r+2 | `age`: time since its arrival | 0 | 1e18 | time |
    | r+3 | `attained`: service it has had | 0 | 1e18 | work |
    | r+4 | `patience` it has left; only where jobs have patience, else what follows is one earlier | 0 | 1e18 | time |
    | r+5 | `anchor`: it has the anchor's role | 0 | 1 | 0/1 |
    | r+6 | `largest`: it has the largest original size present | 0 | 1 | 0/1 |
    | r+7 | `served`: it has had a positive rate up to now | 0 | 1 | 0/1 |
    | r+8 | `present`: the row holds a job | 0 | 1 | 0/1 |

    Num is that of `flat`, where row i begins at r = 5 + i·F. `compact` has `remaining`, `size`, `age`, `anchor`,
    `present` in this order, F = 5. Minima, maxima and units are those of `dict`, where larger values are cut. In `flat`
    and `compact` what is in jobs, work or time is compressed to ln(1 + x), at most 41.45, with work and time in mean
    sizes; `env.unwrapped.layout.read(observation)` turns it back into raw features, with about six digits. Rows are in
    SRPT order; empty ones are 0.

    If N > K, the table holds, as far as it has rows, the anchor, the largest, the newest, the n oldest, and then the
    jobs of smallest remaining size.

    With `size_knowledge="unknown"`, `work` and `anchor_size` are 0, and `remaining`, `size`, `anchor` and `largest` are
    left out. The order of arrival takes the place of SRPT order, in `work_conserving` too; if N > K, the rows hold the
    newest, the n oldest, and then the latest of the others. The action `anchor` and `compact` are refused then.

    `summary` has these instead; those "a server" are divided by n before they are compressed. The last is left out
    where sizes are hidden. Before the first decision nobody has priority.

    | Num | Summary | Min | Max | Unit |
    |---|---|---|---|---|
    | 0 | `number`: jobs present N | 0 | 1e18 | jobs a server |
    | 1 | `busy`: part of the servers that have served up to now | 0 | 1 | 0 to 1 |
    | 2 | `priority_busy`: part of the servers that have served jobs with priority | 0 | 1 | 0 to 1 |
    | 3 | `waiting`: jobs present without a server | 0 | 1e18 | jobs a server |
    | 4 | `priority_waiting`: those of them with priority | 0 | 1e18 | jobs a server |
    | 5 | `oldest`: age of the waiting job that came first; 0 without one | 0 | 1e18 | time |
    | 6 | `elapsed`: time since the last decision | 0 | 1e18 | time |
    | 7 | `arrivals`: jobs that have come in that time | 0 | 1e18 | jobs |
    | 8 | `completions`: jobs served in that time | 0 | 1e18 | jobs |
    | 9 | `abandonments`: jobs that have left unserved in that time | 0 | 1e18 | jobs |
    | 10 | `work`: total remaining work | 0 | 1e18 | work a server |

    ## Rewards
    Minus `reward_scale` times the weighted sum of the terms in `reward`, one to eight of these, over the jobs:

    | Term | Cost of a job, by its time in the system so far | Unit |
    |---|---|---|
    | `tail` | 1/ln(t1/t0) ∫ dt/(t P[S>ct]) from t0 up to it, at most to t1; not in overload | - |
    | `mean` | the time itself | time |
    | `slowdown` | the time over the job's size | - |
    | `moment(p)` | the time to the power p, 0 < p <= 100 | time^p |
    | `exceed(t)` | one, as soon as it is more than t >= 0, in units of time | jobs |
    | `wait` | the part of it at rate zero | time |
    | `abandon` | one, when the job leaves unserved | jobs |

    Costs are paid in the step in which they arise, not at departure. Steps differ in length: see `info["dt"]`. In the
    ready-made scenarios SRPT has some -0.1 to -1 a step by default (with patience -0.01), FCFS up to 30 times that.

    By default the reward is `tail` where P[S>ct] >= 1e-9 at the t1 asked for, else `mean`, and in overload `wait`. With
    light tails and bounded or equal sizes, `tail` would cost next to nothing but for rare jobs that cost up to 1e7. If
    it is asked for there, t1 comes down to where P[S>ct] = 1e-9, and t0 must lie below that.

    ## Starting State
    An empty system, and the first observation at the first arrival (at time 0 with `decision_interval`). A seed says
    which jobs come, whatever the agent does; `reset()` without one goes on with the jobs after those.

    A `big-job` episode is about what decides the tail and is rare otherwise. It starts with a job whose size x is
    log-uniform over `big_sizes`, and no later size is above x. All costs are multiplied by f(x)/q(x), with the
    densities f of sizes and q of x, and by P[S<=x] once more from every later arrival on. It needs ρ < 1, jobs without
    patience, and a law of sizes without atoms. By default it takes thousands of steps (`high-load-2`: 11,000 in the
    mean, half of them over 2,800), up to some 1e5 for the largest x: train with narrower `big_sizes`.

    Options of `reset`, in the scenario's units of work and time:

    | Option | Value | Effect |
    |---|---|---|
    | `workload` | `Workload` | the jobs of this episode, which ends when all have left; not in `big-job` episodes |
    | `jobs` | list of mappings | present at time 0: `size`; perhaps `remaining`, `age`, `patience` left, `anchor` |
    | `job` | mapping | one more that arrives just then: `size`; perhaps `patience`. In `big-job` its size is x |
    | `snapshot` | from `snapshot()` | the state to go on from, with the same jobs to come; given a seed, with others |

    * `workload`: only the jobs; `spare`, c, t1, the mean size and default parameters of rules stay the scenario's.
    * `jobs`: by default `remaining` is `size`, `age` is `size` - `remaining` and not allowed to be less, `patience` is
      infinite, and the largest is the anchor. `response_time` includes the age at time 0, costs do not. In a `big-job`
      episode with `jobs` and no `job`, sizes have no limit and costs the weight one.
    * `job`: in `big-job` episodes the weight of an x outside `big_sizes` is by the same formula, as if q went on; an x
      of density f(x) = 0 is refused.
    * `snapshot`: of an episode that is not over, in any environment of the same scenario, `episode`, `big_sizes`,
      `decision_interval`, `tail_range` and terms. Besides it only `job` may be given.

    ## Episode End
    | End | `info["reason"]` | In episodes of kind |
    |---|---|---|
    | Termination | `empty: the system is empty again` | `big-job` |
    | Truncation | `jobs: as many as asked for have left` | `jobs`, unless a workload was given |
    | Truncation | `horizon: its time is over` | `horizon` |
    | Truncation | `capacity: more jobs than it can hold` | any, when a job arrives to `capacity` others |
    | Truncation | `workload: its last job has left` | any but `big-job`, with a workload |
    | Truncation | `stalled: nobody is served and nobody arrives` | the same; only without `decision_interval` |
    | Truncation | `steps: as many as allowed` | any, in a vector environment with `max_episode_steps` |

    Around a single environment, Gymnasium's `TimeLimit` truncates without a reason. An episode cut by `capacity` has
    cost less because it was shorter: compare such ones by what is in `summary`.

    ## Information
    | Key | Meaning | Unit |
    |---|---|---|
    | `dt` | time since the last decision; 0 on reset | time |
    | `time` | time since the episode began | time |
    | `completions` | jobs served in this step | jobs |
    | `abandonments` | jobs that left unserved in this step | jobs |
    | `response_time` | summed over the completions | time |
    | `cost` | costs of this step by term, without weights of `reward` and without `reward_scale` | as the term |
    | `weight` | of the costs from now on; in `big-job` episodes | - |
    | `allocation` | (K,) rates that the action led to, by row of the table; if `allocation_in_info` | servers |
    | `reason` | why the episode is over; at its end | - |
    | `summary` | what came of it, at its end: `served` and `abandoned` | jobs |
    | | `mean_response` and `max_response` of those served, NaN and 0 if there are none | time |
    | | `mean_slowdown` of those served, NaN if there are none | - |
    | | `mean_number`: average over time of the jobs present | jobs |
    | | `cost`: in the whole episode, by term | as the term |

    ## Arguments
    | Argument | Type | Default | Unit, or what is allowed | Meaning |
    |---|---|---|---|---|
    | `scenario` | str or mapping | `"high-load-2"` | a name, or fields of a `Scenario` | the queue and its jobs |
    | `overrides` | mapping or None | `None` | fields of a `Scenario` | values that replace its own: `{"load": 0.9}` |
    | `action` | str | `"allocation"` | `allocation`, `anchor`, `priority`, `rule`, `threshold` | what the agent says |
    | `observation` | str or None | `None` | `flat`, `dict`, `compact`, `summary` | what it sees; None: first or last |
    | `reward` | str, mapping or None | `None` | term, or weights >= 0 by term | None: `tail`, `mean` or `wait` |
    | `reward_scale` | float | `1.0` | > 0, at most 1e100 | factor of the reward |
    | `tail_range` | two floats | `(1.0, 1e4)` | mean service times | t0 < t1; t1 is lowered to P[S>ct] = 1e-9 |
    | `episode` | str | `"jobs"` | `jobs`, `horizon`, `big-job` | how episodes start and end |
    | `jobs` | int | `1000` | jobs, 1 to 1e15 | departures in an episode of kind `jobs` |
    | `horizon` | float | `1000.0` | mean service times | length of an episode of kind `horizon` |
    | `big_sizes` | two floats or None | `None` | mean sizes; `big-job` | range of x; None: 1 to 1e4, as the law has |
    | `slots` | int or None | `None` | >= 2n+3; `anchor`, `rule`: >= 4 | rows K of the job table; None: max(16, 2n+3) |
    | `capacity` | int or None | `None` | jobs, >= max(n+1, K) | most jobs present; None: max(1000, 10n, K) |
    | `decision_interval` | float or None | `None` | mean service times | None: a decision at every event |
    | `work_conserving` | bool | `True` | `allocation`, `anchor` | whether unused capacity goes to the jobs |
    | `symmetric_actions` | bool | `False` | `allocation`, `anchor`, `threshold` | whether the scale is [-1, 1] |
    | `size_knowledge` | str | `"known"` | `known`, `unknown` | whether observations tell sizes |
    | `rules` | list of str or None | `None` | only with `rule` | its policies; None: all that can run in the scenario |
    | `allocation_in_info` | bool | `False` | not with `compact` | whether `info` has the executed rates |
    | `records` | bool | `False` | | whether `records()` has a record of every job |
    | `render_mode` | str or None | `None` | `ansi`, `rgb_array`, `human` | text, picture or window |

    `slots` is at most 1e5, `capacity` 1e6. With `threshold` there is no job table, and `slots` is refused. What is not
    allowed raises a `ValueError` that says what is.

    ## Vector Environment
    `gymnasium.make_vec("queue_env/MGn-v0", num_envs=B)` makes a `QueueVectorEnv`: B systems in one kernel, system i to
    the bit a `QueueEnv` with the seed s+i. Its arguments besides: `autoreset_mode`, an `AutoresetMode` or its value
    such as `"NextStep"`, the default; `threads` (1), which change no results; `max_episode_steps` (None). Infos are
    arrays with masks, `dt` and `_dt`. With `SAME_STEP` the end of an episode is in `final_obs` and `final_info`. In all
    three modes the option `reset_mask` of `reset` says which systems to reset; a step needs all to have been reset.

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
        observation: str | None = None,
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
        self._drawings = Drawings(self.config, self.batch, self.metadata["render_fps"])
        self._over, self._closed = True, False

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: of the jobs to come; None goes on with those of the last seed.
            options: how to start; see the class.

        Raises:
            ValueError: an option is not allowed, or the environment is closed.
        """
        self._check_open("reset")
        super().reset(seed=seed)
        start = read_options(self.config, self.batch.memory, options)
        fresh = seed is not None or not self.batch.seeded(0)
        seeds = {0: new_seed(self.np_random)} if fresh else {}
        self.batch.reset([0], seeds, start, new_jobs=() if seed is None else (0,))
        self._over = False
        self._drawings.begin(0)
        if self.render_mode == "human":
            self._drawings.draw("human", 0)
        outcome = self.batch.memory.outcomes[0].tolist()
        return self._observation(), info_of_one(self.config, outcome, np.zeros(self.config.slots))

    def step(self, action: ArrayLike) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Hold an action until the next decision.

        Raises:
            ValueError: the action has a wrong shape, holds NaN, or the episode is over, or the environment is closed.
        """
        if self._over:
            self._check_open("step")
            refuse("step", "episode", "running: call reset first", "over")
        self.actions.put_one(action, self.batch.memory.actions)
        self.batch.step()
        memory = self.batch.memory
        outcome = memory.outcomes[0].tolist()
        terminated, truncated = outcome[layout.TERMINATED] > 0, outcome[layout.TRUNCATED] > 0
        self._over = terminated or truncated
        if self.render_mode is not None:
            self._drawings.note(0, outcome)
            if self.render_mode == "human":
                self._drawings.draw("human", 0)
        return (
            self._observation(),
            outcome[layout.REWARD],
            terminated,
            truncated,
            info_of_one(self.config, outcome, memory.rates[0]),
        )

    def snapshot(self) -> Snapshot:
        """Return the whole state between two decisions, for `reset(options={"snapshot": ...})`."""
        self._check_begun("snapshot")
        return self.batch.snapshot(0)

    def records(self) -> NDArray[np.void]:
        """Return a record of each job that has arrived in this episode, by job number; needs `records=True`.

        Fields: arrival_time, size, start_time, departure_time, waiting_time, outcome (0 served, 1 abandoned, 2 present,
        -1 gone before a snapshot without records); times count from the episode's start, NaN where there is none.
        """
        if not self.config.records:
            refuse("records", "records", "True, given to the environment", False)
        self._check_begun("records")
        return self.batch.records(0)

    def render(self) -> Any:
        """Draw the queue as it is now: a text, a picture (height, width, 3), or a window."""
        if self.render_mode is None:
            gym.logger.warn("render() does nothing: make the environment with a render_mode")
            return None
        if self.render_mode == "human":
            return None  # drawn at every step
        return self._drawings.draw(self.render_mode, 0)

    def close(self) -> None:
        """Close the window, if there is one; the environment can then be used no more."""
        self._over = self._closed = True
        self._drawings.close()
        self.batch.close()

    def _observation(self) -> Any:
        return self.layout.view(self.batch.memory.observations[0].copy())

    def _check_open(self, owner: str) -> None:
        if self._closed:
            refuse(owner, "environment", "open", "one that has been closed")

    def _check_begun(self, owner: str) -> None:
        if not self.batch.seeded(0):
            refuse(owner, "environment", "reset first", "no episode")
