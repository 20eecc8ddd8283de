"""The settings of a training by reinforcement learning: files in YAML, and what the command line changes of them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from queue_env.distributions.checks import finite, positive, refuse, whole
from queue_env.network import NAMES, check_hidden
from queue_env.scenarios import Scenario, scenario
from queue_env.scoring.strata import check_decomposable

__all__ = ["SETTINGS", "Settings", "read_settings", "settings_file"]

SETTINGS = Path(__file__).parent / "settings"
STATE_FEATURES = NAMES[:8]  # the others tell scenarios apart
NOTES = ("date", "result")  # of the training that a file was tried in


@dataclass(frozen=True)
class Settings:
    """All that decides what a training gives.

    Attributes:
        scenarios: names; one policy is trained for all of them.
        steps: decisions in all.
        seed: of everything random.
        systems: side by side, which the scenarios share.
        features: what the actor sees, names of `queue_env.network.FEATURES`.
        hidden: widths of the actor's hidden layers.
        critic: widths of the hidden layers of critics, and of the network of DQN, which has no actor.
        sizes: range of the big job's size, in mean sizes.
        first_high: where the range ends at first.
        grown: share of the steps after which it has grown to all of `sizes`.
        states: starting states, drawn anew after every evaluation from a plain run under the policy.
        most_steps: of an episode, which is then cut; None for no such end.
        beta: discount rate by time, in 1 over the mean service time; None for the algorithm's own discount by step.
        decision_interval: time between decisions in the training, in mean service times; None for one at every event.
        every: steps from one evaluation to the next, before which nothing else changes.
        replications: of an evaluation.
        learning_rate: at the start, and at the end, between which it falls linearly.
        algorithm: further arguments of the algorithm of Stable-Baselines3.
    """

    scenarios: tuple[str, ...]
    steps: int
    seed: int
    systems: int
    features: tuple[str, ...]
    hidden: tuple[int, ...]
    critic: tuple[int, ...]
    sizes: tuple[float, float]
    first_high: float
    grown: float
    states: int
    most_steps: int | None
    beta: float | None
    decision_interval: float | None
    every: int
    replications: int
    learning_rate: tuple[float, float]
    algorithm: Mapping[str, Any]

    @property
    def models(self) -> tuple[Scenario, ...]:
        """The scenarios."""
        return tuple(scenario(name) for name in self.scenarios)

    def high(self, done: int) -> float:
        """Return where the range of sizes ends after so many steps: it grows by equal factors in equal times."""
        low_end = max(self.first_high, self.sizes[0])
        share = min(done / (self.grown * self.steps), 1.0) if self.grown > 0 else 1.0
        return float(low_end * (self.sizes[1] / low_end) ** share)

    def plain(self) -> dict[str, Any]:
        """Return the settings as they are written."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def settings_file(name: str, scenarios: Sequence[str]) -> Path:
    """Return the file that comes with the package for an algorithm on scenarios: that of the scenario, or of all."""
    own = SETTINGS / f"{name}-{scenarios[0]}.yaml"
    return own if len(scenarios) == 1 and own.exists() else SETTINGS / f"{name}.yaml"


def read_settings(name: str, path: Path, changes: Mapping[str, Any], accepted: type) -> Settings:
    """Read settings and check them.

    Args:
        name: of the command, for messages.
        path: the file.
        changes: fields that replace those of the file; None changes nothing.
        accepted: the class of the algorithm, whose constructor says what `algorithm` may have.

    Raises:
        ValueError: there is no such file, a setting is missing, not known or not allowed.
    """
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"--settings: {str(path)!r} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"--settings: {str(path)!r} is not YAML: {error}") from error
    if not isinstance(found, dict):
        refuse(name, f"settings in {str(path)!r}", "a mapping", found)
    given = {key: value for key, value in changes.items() if value is not None}
    values = {key: value for key, value in found.items() if key not in NOTES} | given
    known = [field.name for field in fields(Settings)]
    for key in values:
        if key not in known:
            refuse(name, "setting", f"among {', '.join((*known, *NOTES))}", key)
    for key in known:
        if key not in values:
            raise ValueError(f"{name}: setting {key!r} is missing in {str(path)!r}")
    return _checked(name, Settings(**values), accepted)


def _checked(name: str, raw: Settings, accepted: type) -> Settings:
    scenarios = tuple(_listed(name, "scenarios", raw.scenarios))
    if not scenarios or len(set(scenarios)) < len(scenarios):
        refuse(name, "scenarios", "names, each once, at least one", list(scenarios))
    sizes = _pair(name, "sizes", raw.sizes, rising=True)
    for model in (scenario(place) for place in scenarios):
        check_decomposable(model, name)
        ends = np.array(sizes) * model.sizes.mean
        if not np.all(model.sizes.pdf(ends) > 0):
            refuse(name, "sizes", f"where sizes of {model.name} have a density, in mean sizes", list(sizes))
    features = tuple(_listed(name, "features", raw.features)) + _told_apart(scenarios, raw.features)
    if not features or not set(features) <= set(NAMES) or len(set(features)) < len(features):
        refuse(name, "features", f"names among {', '.join(NAMES)}, each once", list(features))
    algorithm = raw.algorithm
    arguments = [key for key in inspect.signature(accepted).parameters if key not in _OURS and key[0] != "_"]
    if not isinstance(algorithm, dict) or not set(algorithm) <= set(arguments):
        refuse(name, "algorithm", f"a mapping of arguments among {', '.join(arguments)}", algorithm)
    return replace(
        raw,
        scenarios=scenarios,
        features=features,
        hidden=check_hidden(name, _listed(name, "hidden", raw.hidden)),
        critic=tuple(whole(name, "critic", width, 1) for width in _listed(name, "critic", raw.critic)),
        sizes=sizes,
        learning_rate=_pair(name, "learning_rate", raw.learning_rate),
        steps=whole(name, "steps", raw.steps, 1),
        seed=whole(name, "seed", raw.seed, 0, 2**32 - 1),
        systems=whole(name, "systems", raw.systems, len(scenarios)),
        first_high=positive(name, "first_high", raw.first_high),
        grown=_share(name, "grown", raw.grown),
        states=whole(name, "states", raw.states, 0),
        most_steps=None if raw.most_steps is None else whole(name, "most_steps", raw.most_steps, 1),
        beta=_positive_or_none(name, "beta", raw.beta),
        decision_interval=_positive_or_none(name, "decision_interval", raw.decision_interval),
        every=whole(name, "every", raw.every, 1),
        replications=whole(name, "replications", raw.replications, 1),
    )


_OURS = ("policy", "env", "learning_rate", "seed", "device", "verbose", "tensorboard_log", "policy_kwargs")


def _told_apart(scenarios: Sequence[str], features: Sequence[str]) -> tuple[str, ...]:
    """Return the features that differ between scenarios, and are not named yet."""
    models = [scenario(name) for name in scenarios]
    differ = [name for name in ("servers", "load", "spare") if len({getattr(model, name) for model in models}) > 1]
    return tuple(name for name in differ if name not in features)


def _listed(name: str, key: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        refuse(name, key, "a list", value)
    return list(value)


def _pair(name: str, key: str, value: Any, *, rising: bool = False) -> tuple[float, float]:
    ends = [positive(name, f"{key}[{i}]", end) for i, end in enumerate(_listed(name, key, value))]
    if len(ends) != 2 or (rising and ends[0] >= ends[1]):
        refuse(name, key, "two numbers, 0 < first < second" if rising else "two numbers > 0", value)
    return ends[0], ends[1]


def _positive_or_none(name: str, key: str, value: Any) -> float | None:
    return None if value is None else positive(name, key, value)


def _share(name: str, key: str, value: Any) -> float:
    share = finite(name, key, value)
    if not 0 <= share <= 1:
        refuse(name, key, "0 to 1", value)
    return share
