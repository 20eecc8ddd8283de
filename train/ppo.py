"""``python -m train.ppo``: learn the anchor's rate on a scenario, or on several, by proximal policy optimization."""

from __future__ import annotations

import typer

from queue_env.cli.app import reporting_errors
from train import rl_options as options

__all__ = ["app", "main"]

LIMIT = 12.0  # of the logit of the rate: 1/(1 + e^-12) is 6e-6 short of one
GAIN = 3.0  # of the logit over the action, whose noise has at first the deviation 1


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
    """Learn the anchor's rate as a small network of the state, by PPO on big-job episodes.

    The network of the best evaluation is `policy.json` in the directory, and `queue-env score SCENARIO --policy
    learned:DIRECTORY/policy.json` scores it. The evaluations are in `curve.csv`, the end in `result.json`.

    Example: python -m train.ppo --scenario high-load-2 --minutes 3 --out ppo
    """
    with options.needed("ppo"):
        from stable_baselines3 import PPO

        from queue_env.sb3 import TimeAwareRolloutBuffer, VecDiscount
        from train.actors import AnchorFeatures, AnchorPPOPolicy, network_of_ppo
        from train.envs import make_training_env
        from train.products import NetworkProduct
        from train.run import Run
        from train.schedules import falling

    asked = options.Asked(scenarios, out, settings_file, steps, minutes, seed, resume, threads, tensorboard)
    settings, further = asked.checked("ppo", PPO)
    training = make_training_env(
        settings.models,
        settings.systems,
        limit=LIMIT,
        gain=GAIN,
        beta=settings.beta,
        most_steps=settings.most_steps,
        decision_interval=settings.decision_interval,
    )
    arguments = dict(settings.algorithm)
    if settings.beta is not None:
        training = training._replace(env=VecDiscount(training.env))
        arguments |= {"gamma": 1.0, "rollout_buffer_class": TimeAwareRolloutBuffer}

    def make() -> PPO:
        return PPO(
            AnchorPPOPolicy,
            training.env,
            learning_rate=falling(settings.learning_rate),
            policy_kwargs={
                "features_extractor_class": AnchorFeatures,
                "features_extractor_kwargs": {"names": settings.features},
                "net_arch": {"pi": list(settings.hidden), "vf": list(settings.critic)},
            },
            seed=settings.seed,
            device="cpu",
            **arguments,
        )

    product = NetworkProduct(lambda policy: network_of_ppo(policy, settings.features, GAIN))
    run = Run("ppo", settings, out, training, product, **further)
    options.report("ppo", out, run.learn(make, PPO), as_json)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(main)

if __name__ == "__main__":
    app(prog_name="python -m train.ppo")
