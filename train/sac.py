"""``python -m train.sac``: learn the anchor's rate on a scenario, or on several, by soft actor-critic."""

from __future__ import annotations

import typer

from queue_env.cli.app import reporting_errors
from train import rl_options as options

__all__ = ["app", "main"]

LIMIT = 8.0  # of the logit of the rate


@reporting_errors
def main(
    out: options.Out,
    scenarios: options.Scenarios = None,
    settings_file: options.SettingsFile = None,
    steps: options.Steps = None,
    minutes: options.Minutes = None,
    seed: options.Seed = None,
    resume: options.Resume = False,
    threads: options.Threads = None,
    tensorboard: options.TensorBoard = None,
    as_json: options.Json = False,
) -> None:
    """Learn the anchor's rate as a small network of the state, by SAC on big-job episodes.

    The network of the best evaluation is `policy.json` in the directory, and `queue-env score SCENARIO --policy
    learned:DIRECTORY/policy.json` scores it. The evaluations are in `curve.csv`, the end in `result.json`.

    Example: python -m train.sac --scenario high-load-2 --minutes 10 --out sac
    """
    with options.needed("sac"):
        from stable_baselines3 import SAC
        from torch import nn

        from queue_env.sb3 import TimeAwareReplayBuffer
        from train.actors import AnchorFeatures, AnchorSACPolicy, network_of_sac
        from train.envs import make_training_env
        from train.products import NetworkProduct
        from train.run import Run
        from train.schedules import falling

    asked = options.Asked(scenarios, out, settings_file, steps, minutes, seed, resume, threads, tensorboard)
    settings, further = asked.checked("sac", SAC)
    training = make_training_env(
        settings.models,
        settings.systems,
        limit=LIMIT,
        beta=settings.beta,
        most_steps=settings.most_steps,
        decision_interval=settings.decision_interval,
    )
    arguments = dict(settings.algorithm)
    if settings.beta is not None:
        arguments["replay_buffer_class"] = TimeAwareReplayBuffer

    def make() -> SAC:
        return SAC(
            AnchorSACPolicy,
            training.env,
            learning_rate=falling(settings.learning_rate),
            policy_kwargs={
                "features_extractor_class": AnchorFeatures,
                "features_extractor_kwargs": {"names": settings.features},
                "net_arch": {"pi": list(settings.hidden), "qf": list(settings.critic)},
                "activation_fn": nn.Tanh,
            },
            seed=settings.seed,
            device="cpu",
            **arguments,
        )

    product = NetworkProduct(lambda policy: network_of_sac(policy, settings.features))
    run = Run("sac", settings, out, training, product, **further)
    options.report("sac", out, run.learn(make, SAC), as_json)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(main)

if __name__ == "__main__":
    app(prog_name="python -m train.sac")
