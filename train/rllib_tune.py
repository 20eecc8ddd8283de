"""Ray Tune's search over the settings of RLlib's PPO: trials on the cluster, judged by their tail scores."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ray import tune
from ray.tune.search.basic_variant import BasicVariantGenerator

from queue_env.network import network_policy, write_network
from queue_env.scenarios import scenario
from train.objective import make_objective
from train.rllib_ppo import PPOSettings, learn

__all__ = ["Trial", "search"]

REPLICATIONS = 8  # of every trial, on the same jobs
RETRIES = 2  # of a trial whose worker is gone
_JUDGE = 7937  # beside the seed, so that no other command meets the same jobs
SPACE: dict[str, tuple[float, float]] = {"learning_rate": (1e-4, 3e-3), "entropy": (1e-5, 1e-2)}
CHOICES: dict[str, tuple[float, ...]] = {
    "gae_lambda": (0.9, 0.95, 0.98, 1.0),
    "clip": (0.1, 0.2, 0.3),
    "epochs": (2, 4, 8),
    "minibatches": (1, 4, 16),
}


class Trial(NamedTuple):
    """What a trial tried and found.

    Attributes:
        settings: of its training.
        score: tail score of its policy, on jobs that all trials meet.
        file: of its policy.
    """

    settings: dict[str, Any]
    score: float
    file: Path


def search(base: PPOSettings, trials: int, out: Path, *, resume: bool, done: Callable[[], None]) -> list[Trial]:
    """Draw settings at random, train with each of them, and return the trials, best first.

    A trial whose worker or node is lost begins again on another.

    Args:
        base: what the trials share.
        trials: how many.
        out: directory for the policies, and for what Ray Tune keeps.
        resume: whether to go on with a search that is kept there.
        done: called after every trial.
    """
    policies = (out / "trials").absolute()
    policies.mkdir(parents=True, exist_ok=True)
    trainable = tune.with_resources(tune.with_parameters(_try, base=base, directory=policies), {"cpu": 1})
    kept = (out / "tune").absolute()
    if resume and tune.Tuner.can_restore(str(kept)):
        tuner = tune.Tuner.restore(str(kept), trainable, resume_errored=True)
    else:
        tuner = tune.Tuner(
            trainable,
            param_space=_space(),
            tune_config=tune.TuneConfig(num_samples=trials, search_alg=_drawn(base)),
            run_config=tune.RunConfig(
                name="tune",
                storage_path=str(out.absolute()),
                failure_config=tune.FailureConfig(max_failures=RETRIES),
                callbacks=[_Counting(done)],
                verbose=0,
            ),
        )
    found = []
    results = tuner.fit()
    for result in (results[k] for k in range(len(results))):
        if result.error is not None:
            raise RuntimeError(f"a trial has failed: {result.error}")
        metrics: Any = result.metrics
        found.append(Trial(metrics["settings"], float(metrics["score"]), Path(metrics["file"])))
    return sorted(found, key=lambda trial: trial.score)


def _space() -> dict[str, Any]:
    ranges = {name: tune.loguniform(*ends) for name, ends in SPACE.items()}
    return ranges | {name: tune.choice(values) for name, values in CHOICES.items()}


def _drawn(base: PPOSettings) -> BasicVariantGenerator:
    """Draws that depend on the seed only; the first trial has the settings of the base."""
    own = {name: getattr(base, name) for name in (*SPACE, *CHOICES)}
    return BasicVariantGenerator(points_to_evaluate=[own], random_state=base.seed)


def _try(config: dict[str, Any], *, base: PPOSettings, directory: Path) -> None:
    """Train with the settings of a trial, and report the score of what came of it."""
    settings = replace(base, **config)
    network = learn(settings, None, lambda *_: None)
    objective = make_objective(scenario(settings.scenario))
    seeds = np.random.SeedSequence([base.seed, _JUDGE]).spawn(REPLICATIONS)
    with ThreadPoolExecutor(1) as pool:
        found = objective.measures([network_policy(network, name="trial")], seeds, pool, lambda: None)
    file = directory / f"{tune.get_context().get_trial_id()}.json"
    score = float(found[:, :, 0].mean())
    write_network(file, network, settings.plain() | {"score": score})
    tune.report({"score": score, "settings": config, "file": str(file)})


class _Counting(tune.Callback):
    """Says when a trial is over."""

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Count it."""
        self._done()
