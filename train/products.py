"""What becomes of a model of Stable-Baselines3: a network of the kernel, or an agent."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from stable_baselines3.common.base_class import BaseAlgorithm

from queue_env.network import Network, network_policy, read_network, write_network
from queue_env.scoring.agent_blocks import agent_policy

__all__ = ["AgentProduct", "NetworkProduct", "Product"]


class Product(Protocol):
    """What becomes of a model.

    Attributes:
        is_agent: whether its policy is an agent.
    """

    is_agent: ClassVar[bool]

    def policy(self, model: BaseAlgorithm) -> Any:
        """Return a model's policy, as the judge takes it."""

    def plain_policy(self, model: BaseAlgorithm) -> Any:
        """Return the policy of the kernel whose plain runs give starting states."""

    def save(self, model: BaseAlgorithm, directory: Path, about: Mapping[str, Any]) -> None:
        """Write a model's policy into a directory, with what is to be said of it."""

    def saved(self, directory: Path) -> Any:
        """Return the policy that was saved there."""

    def note(self, directory: Path, about: Mapping[str, Any]) -> None:
        """Write what else is to be said of the policy that was saved there."""


@dataclass(frozen=True)
class NetworkProduct:
    """A network of the kernel, in `policy.json`.

    Attributes:
        export: makes it of a model.
    """

    is_agent: ClassVar[bool] = False
    export: Callable[[Any], Network]

    def policy(self, model: BaseAlgorithm) -> Any:
        """Return the model's policy in the kernel."""
        return network_policy(self.export(model.policy), name="learned")

    plain_policy = policy

    def save(self, model: BaseAlgorithm, directory: Path, about: Mapping[str, Any]) -> None:
        """Write the network."""
        write_network(directory / "policy.json", self.export(model.policy), about)

    def saved(self, directory: Path) -> Any:
        """Return the policy of the network in the file."""
        network, _ = read_network(directory / "policy.json")
        return network_policy(network, name="learned")

    def note(self, directory: Path, about: Mapping[str, Any]) -> None:
        """Write the file anew, with what is to be said."""
        network, _ = read_network(directory / "policy.json")
        write_network(directory / "policy.json", network, about)


@dataclass(frozen=True)
class AgentProduct:
    """A model that chooses a rule from the compact view, in `policy.zip`; such a file holds pickles.

    Attributes:
        algorithm: its class.
    """

    is_agent: ClassVar[bool] = True
    algorithm: type[BaseAlgorithm]

    def policy(self, model: Any) -> Any:
        """Return the model as an agent."""
        return agent_policy(model, label="learned", action="rule", observation="compact")

    def plain_policy(self, model: BaseAlgorithm) -> Any:
        """Return srpt: the kernel does not run agents."""
        return "srpt"

    def save(self, model: BaseAlgorithm, directory: Path, about: Mapping[str, Any]) -> None:
        """Write the model."""
        beside = directory / "policy.part.zip"
        model.save(beside)
        os.replace(beside, directory / "policy.zip")

    def saved(self, directory: Path) -> Any:
        """Return the agent in the file."""
        return self.policy(self.algorithm.load(directory / "policy.zip", device="cpu"))

    def note(self, directory: Path, about: Mapping[str, Any]) -> None:
        """Nothing: the file of a model has no room for it."""
