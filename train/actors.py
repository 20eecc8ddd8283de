"""Networks of PyTorch that see what the networks of the kernel see, and how they become such networks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, MlpExtractor
from stable_baselines3.sac.policies import Actor, SACPolicy
from torch import nn

from queue_env.network import Network
from train.envs import EXTRAS

__all__ = ["AnchorFeatures", "AnchorPPOPolicy", "AnchorSACPolicy", "network_of_ppo", "network_of_sac"]

SYSTEM, ROW = 5, 5  # numbers of the compact view: of the system, and of each row
NUMBER, WORK, ANCHOR_SIZE, _, SPARE = range(SYSTEM)
REMAINING, _, AGE, ANCHOR, PRESENT = range(ROW)
INPUT_SCALE = 0.3  # of features, which go up to about ten, so that tanh has something to tell apart


class AnchorFeatures(BaseFeaturesExtractor):
    """The features of `queue_env.network.FEATURES`, times `INPUT_SCALE`, from compact observations.

    After them comes whether more jobs than servers are present, and, where the observation has it, the weight of costs.
    Where no more jobs than servers are present, no rate depends on the features; then there may be no next job, which
    has the features 0.

    Args:
        observation_space: that of the compact view, or of `train.envs.Logits`.
        names: of the features.
        servers: n; None where the observation has it.
    """

    def __init__(self, observation_space: spaces.Box, names: Sequence[str], servers: int | None = None) -> None:
        extras = EXTRAS if servers is None else 0
        super().__init__(observation_space, len(names) + 1 + (servers is None))
        self.names, self.servers = tuple(names), servers
        self.rows = (observation_space.shape[0] - extras - SYSTEM) // ROW

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the features, shape (B, features)."""
        seen = observations.double()  # the others' work may be a small difference
        rows = seen[:, SYSTEM : SYSTEM + ROW * self.rows].reshape(-1, self.rows, ROW)
        servers = seen[:, -EXTRAS] if self.servers is None else torch.full_like(seen[:, 0], self.servers)
        number = torch.expm1(seen[:, NUMBER]).round()
        values = self._of_jobs(seen, rows, servers, number)
        values |= {
            "anchor_size": seen[:, ANCHOR_SIZE],
            "crowd": torch.log(number.clamp(min=1.0) / servers),
            "servers": torch.log(servers),
            "load": 1.0 - seen[:, SPARE] / servers,
            "spare": seen[:, SPARE],
        }
        columns = [INPUT_SCALE * values[name] for name in self.names]
        columns.append((number > servers).double())
        if self.servers is None:
            columns.append(seen[:, -1])
        return torch.stack(columns, dim=1).float()

    @staticmethod
    def _of_jobs(
        seen: torch.Tensor, rows: torch.Tensor, servers: torch.Tensor, number: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Return the features of the anchor and of the others, whose rows are in the order of what remains."""
        anchor, others = rows[:, 0], rows[:, 1:]
        other = others[:, :, PRESENT] * (1.0 - others[:, :, ANCHOR])
        place = torch.cumsum(other, dim=1) * other
        first, following = place == 1.0, place == servers[:, None]
        work = torch.expm1(others[:, :, REMAINING]) * other
        shown_work = work.sum(dim=1)
        hidden_work = torch.expm1(seen[:, WORK]) - torch.expm1(anchor[:, REMAINING])
        all_shown = place.amax(dim=1) + 1.0 >= number
        others_work = torch.where(all_shown, shown_work, torch.maximum(hidden_work, shown_work))
        return {
            "anchor_remaining": anchor[:, REMAINING],
            "anchor_age": anchor[:, AGE],
            "next_remaining": (others[:, :, REMAINING] * following).sum(dim=1),
            "next_age": (others[:, :, AGE] * following).sum(dim=1),
            "least_remaining": (others[:, :, REMAINING] * first).sum(dim=1),
            "others_work": torch.log1p(others_work),
        }


class _ActorAndCritic(MlpExtractor):
    """The actor sees the first `seen` features, the critic all.

    Where no more jobs than servers are present, the actor's last hidden layer is zero: the action is without effect
    there, and its noise is not to change the weights.
    """

    def __init__(self, seen: int, features: int, net_arch: dict[str, list[int]], activation: type[nn.Module]) -> None:
        super().__init__(features, net_arch, activation, "cpu")
        self.seen = seen
        self.policy_net = MlpExtractor(seen, {"pi": net_arch["pi"], "vf": []}, activation, "cpu").policy_net

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        crowded = features[:, self.seen : self.seen + 1]
        hidden: torch.Tensor = self.policy_net(features[:, : self.seen]) * crowded
        return hidden


class AnchorPPOPolicy(ActorCriticPolicy):
    """The policy of PPO: the logit of the anchor's rate, over the gain, is Gaussian around what a network gives."""

    def _build_mlp_extractor(self) -> None:
        assert isinstance(self.features_extractor, AnchorFeatures)
        assert isinstance(self.net_arch, dict)
        seen = len(self.features_extractor.names)
        self.mlp_extractor = _ActorAndCritic(seen, self.features_dim, self.net_arch, self.activation_fn)


class _SeenByActor(AnchorFeatures):
    """The features without what only critics see."""

    def __init__(self, observation_space: spaces.Box, names: Sequence[str]) -> None:
        super().__init__(observation_space, names)
        self._features_dim = len(names)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return super().forward(observations)[:, : len(self.names)]


class AnchorSACPolicy(SACPolicy):
    """The policy of SAC: the logit of the anchor's rate is the limit times tanh of a Gaussian."""

    def make_actor(self, features_extractor: BaseFeaturesExtractor | None = None) -> Actor:
        """Make the actor, which does not see all that critics see."""
        assert isinstance(self.observation_space, spaces.Box)
        return super().make_actor(_SeenByActor(self.observation_space, self.features_extractor_kwargs["names"]))


# ---- as networks of the kernel -------------------------------------------------------------------


def network_of_ppo(policy: ActorCriticPolicy, names: Sequence[str], gain: float) -> Network:
    """Return the gain times the mean of the Gaussian as a network of the kernel."""
    return _network([*policy.mlp_extractor.policy_net, policy.action_net], names, gain)


def network_of_sac(policy: SACPolicy, names: Sequence[str]) -> Network:
    """Return the limit times tanh of the mean of the Gaussian as a network of the kernel."""
    assert isinstance(policy.action_space, spaces.Box)
    limit = float(policy.action_space.high[0])
    mean = policy.actor.mu
    assert isinstance(mean, nn.Linear)
    return _network([*policy.actor.latent_pi, mean], names, 1.0, last=[(np.array([[limit]]), np.zeros(1))])


def _network(
    modules: Iterable[Any], names: Sequence[str], gain: float, last: Sequence[tuple[Any, Any]] = ()
) -> Network:
    """Return the linear layers among modules, with tanh between them and a gain after them, and further layers."""
    layers = [
        (module.weight.detach().double().numpy(), module.bias.detach().double().numpy())
        for module in modules
        if isinstance(module, nn.Linear)
    ]
    layers[0] = layers[0][0] * INPUT_SCALE, layers[0][1]
    layers[-1] = layers[-1][0] * gain, layers[-1][1] * gain
    weights, biases = zip(*layers, *last, strict=True)
    return Network(tuple(names), weights, biases, "tanh")
