"""``python -m train.dqn``: learn which reference rule allocates until the next event, by deep Q-learning."""

from __future__ import annotations

import typer

from queue_env.cli.app import reporting_errors
from train import rl_options as options

__all__ = ["app", "main"]


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
    """Learn to choose among the reference rules after every event, by DQN on big-job episodes of one scenario.

    The model of the best evaluation is `policy.zip` in the directory, and `queue-env score SCENARIO --policy
    dqn:DIRECTORY/policy.zip` scores it; it holds pickles. The evaluations are in `curve.csv`, the end in `result.json`.

    Example: python -m train.dqn --scenario high-load-2 --minutes 10 --out dqn
    """
    with options.needed("dqn"):
        from stable_baselines3 import DQN

        from queue_env.distributions.checks import refuse
        from queue_env.sb3 import TimeAwareReplayBuffer
        from train.actors import AnchorFeatures
        from train.envs import make_training_env
        from train.judge import AGENT_RANGE
        from train.products import AgentProduct
        from train.run import Run
        from train.schedules import falling

    asked = options.Asked(scenarios, out, settings_file, steps, minutes, seed, resume, threads, tensorboard)
    settings, further = asked.checked("dqn", DQN)
    if len(settings.models) > 1:
        refuse("train.dqn", "--scenario", "one scenario, for the rules differ between them", list(settings.scenarios))
    training = make_training_env(
        settings.models,
        settings.systems,
        limit=None,
        beta=settings.beta,
        most_steps=settings.most_steps,
        decision_interval=settings.decision_interval,
        tail_range=AGENT_RANGE,
    )
    arguments = dict(settings.algorithm)
    if settings.beta is not None:
        arguments["replay_buffer_class"] = TimeAwareReplayBuffer

    def make() -> DQN:
        return DQN(
            "MlpPolicy",
            training.env,
            learning_rate=falling(settings.learning_rate),
            policy_kwargs={
                "features_extractor_class": AnchorFeatures,
                "features_extractor_kwargs": {"names": settings.features, "servers": settings.models[0].servers},
                "net_arch": list(settings.critic),
            },
            seed=settings.seed,
            device="cpu",
            **arguments,
        )

    run = Run("dqn", settings, out, training, AgentProduct(DQN), **further)
    options.report("dqn", out, run.learn(make, DQN), as_json)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(main)

if __name__ == "__main__":
    app(prog_name="python -m train.dqn")
