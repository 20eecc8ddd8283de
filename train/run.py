"""A training by reinforcement learning, whatever the algorithm: its directory, its evaluations, and how it goes on."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure

from queue_env.distributions.checks import refuse
from train.bar import Bar, search_bar
from train.curves import Curves
from train.envs import TrainingEnv
from train.es import LEARNED, compared
from train.judge import REFERENCES, Judge
from train.kept import read_model, read_progress, write_kept
from train.products import Product
from train.run_settings import Settings
from train.starts import plain_states

__all__ = ["CHECKPOINT", "CURVE", "RESULT", "Run"]

Model = TypeVar("Model", bound=BaseAlgorithm)

CHECKPOINT, CURVE, RESULT = "checkpoint.zip", "curve.csv", "result.json"
_STATES = 3  # spawn key of the seeds of starting states
_LOGGED = 10  # rollouts, or episodes, from one line of the algorithm's own curves to the next


class _Finished(Exception):  # noqa: N818 (no error: it leads out of the library's loop)
    """The time is over."""


class Run:
    """One training in its directory.

    Args:
        name: of the command.
        settings: what is trained, and how.
        directory: for all that it writes.
        training: the environment; it is brought to where it was, if the run is resumed.
        product: what becomes of a model.
        resume: whether to go on from what is kept in the directory.
        minutes: after which the run ends, at the next evaluation; None for no such end.
        threads: for evaluations.
        tensorboard: directory for curves, or None.

    Attributes:
        rows: of the curve, one for each evaluation: steps, value, and the score on each scenario.
        references: scores of the reference policies on the same runs, shape (policies, scenarios).

    Raises:
        ValueError: the training to be resumed is of another command or of other settings; or a scenario is none of
            which the tail score can be found.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        directory: Path,
        training: TrainingEnv,
        product: Product,
        *,
        resume: bool = False,
        minutes: float | None = None,
        threads: int = 1,
        tensorboard: Path | None = None,
    ) -> None:
        self.name, self.settings, self.directory = name, settings, directory
        self.training, self.product = training, product
        self.rows: list[list[float]] = []
        self._resumed, self._interrupted = resume, False
        self._until = math.inf if minutes is None else time.monotonic() + 60 * minutes
        self._tensorboard = tensorboard
        self._curves = None if tensorboard is None else Curves(tensorboard)
        kept = self._read_kept() if resume else None
        pool = ThreadPoolExecutor(threads)
        self._judge = Judge(settings.models, settings.replications, settings.seed, pool, product.is_agent)
        if kept is None:
            for part in training.parts:
                part.sizes = settings.sizes[0], settings.high(0)
            return
        self.rows, self.references = kept["rows"], kept["references"]
        for part, state in zip(training.parts, kept["parts"], strict=True):
            part.restore(state)

    def learn(self, make: Callable[[], Model], algorithm: type[Model]) -> dict[str, Any]:
        """Train, and score the best policy on jobs that had no part in it; returns what `result.json` says.

        Args:
            make: makes the model of a training that begins.
            algorithm: its class.

        Raises:
            ValueError: a setting of the algorithm is not allowed.
            KeyboardInterrupt: interrupted; what is done is kept.
        """
        torch.set_num_threads(1)  # networks this small gain nothing by more, and results are to depend on none
        if self._resumed:
            model = read_model(self.directory / CHECKPOINT, algorithm, self.training.env)
        else:
            model = self._begin(make)
        model.set_logger(self._logger())
        left = max(self.settings.steps - model.num_timesteps, 0)
        with self._noting_interrupts(), search_bar(left // self.settings.systems, self._describe()) as bar:
            if left > 0:
                with suppress(_Finished):
                    model.learn(left, _Evaluations(self, bar), log_interval=_LOGGED, reset_num_timesteps=False)
        try:
            return self._result()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._how_to_go_on()) from None

    def _begin(self, make: Callable[[], Model]) -> Model:
        """Make the model, and then the directory, and score the reference policies."""
        try:
            model = make()
        except (AssertionError, TypeError, ValueError) as error:
            raise ValueError(f"train.{self.name}: algorithm has a setting that is not allowed: {error}") from error
        self.directory.mkdir(parents=True, exist_ok=True)
        runs = len(REFERENCES) * len(self.settings.models) * self.settings.replications
        with search_bar(runs, f"{self.name}: scores of {', '.join(REFERENCES)}") as bar:
            self.references = self._judge.check(REFERENCES, bar.advance)
        return model

    # ---- on the way ------------------------------------------------------------------------------

    def before_rollout(self, model: BaseAlgorithm, bar: Bar) -> None:
        """Evaluate and renew what depends on the policy, when that is due; keep it all then, and when interrupted."""
        due = self._due(model.num_timesteps)
        if due:
            self._evaluate(model)
            self._renew(model)
            bar.describe(self._describe())
        if due or self._interrupted:
            self._keep(model)
        if self._interrupted:
            raise KeyboardInterrupt(self._how_to_go_on())
        if due and time.monotonic() > self._until:
            raise _Finished

    def at_the_end(self, model: BaseAlgorithm) -> None:
        """Evaluate after the last step."""
        self._evaluate(model)
        self._keep(model)

    def _due(self, steps: int) -> bool:
        """Whether a multiple of `every` has been passed since the last evaluation."""
        every = self.settings.every
        return not self.rows or steps // every > self.rows[-1][0] // every

    def _evaluate(self, model: BaseAlgorithm) -> None:
        scores = self._judge.check([self.product.policy(model)])[0]
        self.rows.append([model.num_timesteps, self._value(scores), *scores.tolist()])
        self._write_curve()
        if self.rows[-1] is self._best:
            self.product.save(model, self.directory, self._about())
        if self._curves is not None:
            self._curves.add_values(self._values(), model.num_timesteps)

    def _renew(self, model: BaseAlgorithm) -> None:
        """Take new starting states from the policy, and widen the range of sizes."""
        settings, parts = self.settings, self.training.parts
        policy = self.product.plain_policy(model)
        seeds = np.random.SeedSequence(settings.seed, spawn_key=(_STATES, len(self.rows))).spawn(len(parts))
        for part, place, seed in zip(parts, settings.models, seeds, strict=True):
            part.states = plain_states(place, policy, seed, settings.states) if settings.states else ()
            part.sizes = settings.sizes[0], settings.high(model.num_timesteps)

    @property
    def _best(self) -> list[float]:
        return min(self.rows, key=lambda row: row[1])

    def _value(self, scores: Any) -> float:
        return self._judge.value(scores, self.references[0])

    def _values(self) -> dict[str, float]:
        """Return the last value, and those of the references."""
        beside = {name: self._value(scores) for name, scores in zip(REFERENCES, self.references, strict=True)}
        return {LEARNED: self.rows[-1][1], **beside}

    def _describe(self) -> str:
        if not self.rows:
            return self.name
        values = self._values()
        beside = ", ".join(f"{name} {values[name]:.3f}" for name in REFERENCES)
        return f"score {values[LEARNED]:.3f}, best {self._best[1]:.3f} ({beside})"

    # ---- what is written -------------------------------------------------------------------------

    def _read_kept(self) -> dict[str, Any]:
        kept = read_progress(self.directory / CHECKPOINT)
        if kept.get("name") != self.name:
            refuse(f"train.{self.name}", "--resume", "of a training by the same command", f"train.{kept.get('name')}")
        for key, value in self.settings.plain().items():
            if key != "steps" and kept["settings"].get(key) != value:
                allowed = f"{kept['settings'].get(key)}, that of the training in {str(self.directory)!r}"
                refuse(f"train.{self.name}", key, allowed, value)
        return kept

    def _keep(self, model: BaseAlgorithm) -> None:
        progress = {
            "name": self.name,
            "settings": self.settings.plain(),
            "rows": self.rows,
            "references": self.references,
            "parts": [part.state() for part in self.training.parts],
        }
        write_kept(self.directory / CHECKPOINT, model, progress)

    def _write_curve(self) -> None:
        """Write all evaluations, and the references in each row, to be drawn beside them."""
        text, values = io.StringIO(), self._values()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["steps", LEARNED, *REFERENCES, *(f"score:{name}" for name in self.settings.scenarios)])
        for steps, value, *scores in self.rows:
            writer.writerow([steps, value, *(values[name] for name in REFERENCES), *scores])
        _write(self.directory / CURVE, text.getvalue())

    def _about(self) -> dict[str, Any]:
        """Return what is to be said of the best policy."""
        words = [word for word in sys.argv[1:] if word != "--resume"]
        return {
            "command": shlex.join(["python", "-m", f"train.{self.name}", *words]),
            "date": datetime.now(UTC).date().isoformat(),
            "scenarios": list(self.settings.scenarios),
            "settings": self.settings.plain(),
            "steps": self._best[0],
            "validation": {**self._values(), LEARNED: self._best[1]},
        }

    def _result(self) -> dict[str, Any]:
        """Score the best policy and the references on fresh jobs."""
        policies = {LEARNED: self.product.saved(self.directory), **{name: name for name in REFERENCES}}
        runs = 2 * len(policies) * len(self.settings.models) * self.settings.replications
        with search_bar(runs, f"{self.name}: scores on fresh jobs") as bar:
            scores = self._judge.fresh(policies, bar.advance)
        about = self._about() | {"fresh": {name: compared(found) for name, found in scores.items()}}
        self.product.note(self.directory, about)
        _write(self.directory / RESULT, json.dumps(about, indent=1) + "\n")
        return about

    def _logger(self) -> Any:
        """Return the logger of the algorithm's own curves, which writes nothing without a directory for them."""
        if self._tensorboard is None:
            return configure(None, [])
        return configure(str(self._tensorboard / "training"), ["tensorboard"])

    # ---- interrupts ------------------------------------------------------------------------------

    def _how_to_go_on(self) -> str:
        if not (self.directory / CHECKPOINT).exists():
            return "nothing was kept"
        return f"the same command with --resume goes on from {self.directory}"

    @contextmanager
    def _noting_interrupts(self) -> Iterator[None]:
        """Let the first interrupt end the run before its next rollout, and a second one at once."""

        def note(number: int, frame: FrameType | None) -> None:
            if self._interrupted:
                raise KeyboardInterrupt(self._how_to_go_on())
            self._interrupted = True

        before = signal.getsignal(signal.SIGINT)
        if not callable(before):  # where interrupts are ignored, in the background, they stay so
            yield
            return
        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


class _Evaluations(BaseCallback):
    """Gives a run its turns."""

    def __init__(self, run: Run, bar: Bar) -> None:
        super().__init__()
        self._run, self._bar = run, bar

    def _on_rollout_start(self) -> None:
        self._run.before_rollout(self.model, self._bar)

    def _on_step(self) -> bool:
        self._bar.advance()
        return True

    def _on_training_end(self) -> None:
        self._run.at_the_end(self.model)


def _write(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)
