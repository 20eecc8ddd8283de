"""RLlib's PPO for the anchor's rate: its settings, the algorithm, and the network that comes of it."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune import register_env

from queue_env.network import Network
from train.inputs_env import make_inputs_env, network_of_layers

__all__ = ["PPOSettings", "learn", "make_algorithm", "network_of_module"]

ENV = "queue-env-big-jobs"


@dataclass(frozen=True)
class PPOSettings:
    """What decides a training; `learning_rate` to `minibatches` is what a search changes.

    Attributes:
        scenario: a name.
        steps: decisions in all, in whole iterations.
        seed: of everything random.
        learning_rate: of Adam, constant.
        gae_lambda: of the advantages.
        clip: of the ratio of probabilities.
        entropy: coefficient of the entropy.
        epochs: over the decisions of an iteration.
        minibatches: gradients of an epoch, each by as many of the decisions.
        systems: side by side.
        rollout: decisions of each system in an iteration.
        hidden: width of both hidden layers, of actor and critic.
        big_sizes: range of the big job's size [mean sizes].
        most_steps: of an episode, after which it is cut.
    """

    scenario: str = "high-load-2"
    steps: int = 500_000
    seed: int = 0
    learning_rate: float = 1e-3
    gae_lambda: float = 0.98
    clip: float = 0.2
    entropy: float = 0.0
    epochs: int = 4
    minibatches: int = 4
    systems: int = 64
    rollout: int = 128
    hidden: int = 16
    big_sizes: tuple[float, float] = (1.0, 1000.0)
    most_steps: int = 20_000

    @property
    def batch(self) -> int:
        """Decisions of an iteration."""
        return self.systems * self.rollout

    @property
    def minibatch(self) -> int:
        """Decisions of a gradient."""
        return self.batch // self.minibatches

    def plain(self) -> dict[str, Any]:
        """The settings as they are written into files."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def make_algorithm(settings: PPOSettings) -> Any:
    """Build PPO of the new API stack on the native vector environment, with runner and learner in this process.

    The mode is NEXT_STEP, the only one that RLlib handles.
    """
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)  # it says at every start that there is an older stack
    register_env(ENV, _make_env)
    fresh: Any = PPOConfig  # whose constructor has no types
    config = fresh().environment(ENV, env_config=settings.plain(), disable_env_checking=True)
    config.env_runners(
        num_env_runners=0,
        num_envs_per_env_runner=settings.systems,
        rollout_fragment_length=settings.rollout,
        gym_env_vectorize_mode="vector_entry_point",
    )
    config.learners(num_learners=0).debugging(seed=settings.seed, log_level="ERROR")
    hidden = [settings.hidden] * 2
    model = DefaultModelConfig(fcnet_hiddens=hidden, fcnet_activation="tanh", vf_share_layers=False, free_log_std=True)
    config.rl_module(model_config=model)
    config.training(
        lr=settings.learning_rate,
        gamma=1.0,
        lambda_=settings.gae_lambda,
        clip_param=settings.clip,
        vf_clip_param=float("inf"),
        vf_loss_coeff=0.5,
        entropy_coeff=settings.entropy,
        use_kl_loss=False,
        grad_clip=0.5,
        grad_clip_by="global_norm",
        train_batch_size_per_learner=settings.batch,
        minibatch_size=settings.minibatch,
        num_epochs=settings.epochs,
    )
    # The action is the logit itself; RLlib would take the network's output for a share of its range.
    config.normalize_actions, config.clip_actions = False, True
    return config.build_algo()


def _make_env(context: Any) -> Any:
    """Make the environment; RLlib puts the number of systems among the arguments."""
    given = dict(context)
    return make_inputs_env(
        given["scenario"], given["num_envs"], big_sizes=given["big_sizes"], most_steps=given["most_steps"]
    )


def network_of_module(module: Any) -> Network:
    """Return the mean of PPO's action as a network of the kernel."""
    parts = [*module.encoder.actor_encoder.modules(), *module.pi.modules()]
    layers = [
        (part.weight.detach().numpy(), part.bias.detach().numpy())
        for part in parts
        if isinstance(part, torch.nn.Linear)
    ]
    return network_of_layers(layers)


def learn(settings: PPOSettings, checkpoint: Path | None, after: Callable[[int, float], None]) -> Network:
    """Train, and return the network.

    Args:
        settings: of the training.
        checkpoint: directory that keeps the algorithm after every iteration, and from which it goes on if it is there;
            the systems begin anew then, so the result is another than that of an unbroken run.
        after: called after every iteration with the decisions so far and the mean return of episodes.
    """
    torch.set_num_threads(1)  # small networks: several threads wait for each other
    with _algorithm(settings) as algorithm:
        done = 0
        if checkpoint is not None and checkpoint.exists():
            algorithm.restore_from_path(str(checkpoint.absolute()))
            done = algorithm.iteration * settings.batch
        while done < settings.steps:
            result = algorithm.train()
            done = algorithm.iteration * settings.batch
            if checkpoint is not None:
                _keep(algorithm, checkpoint)
            after(done, float(result["env_runners"].get("episode_return_mean") or float("nan")))
        return network_of_module(algorithm.get_module())


@contextmanager
def _algorithm(settings: PPOSettings) -> Iterator[Any]:
    algorithm = make_algorithm(settings)
    try:
        yield algorithm
    finally:
        algorithm.stop()


def _keep(algorithm: Any, checkpoint: Path) -> None:
    """Write the algorithm beside, and rename."""
    beside, before = checkpoint.with_name("checkpoint.part"), checkpoint.with_name("checkpoint.before")
    for leftover in (beside, before):
        shutil.rmtree(leftover, ignore_errors=True)
    algorithm.save_to_path(str(beside.absolute()))
    if checkpoint.exists():
        checkpoint.rename(before)
    beside.rename(checkpoint)
    shutil.rmtree(before, ignore_errors=True)
