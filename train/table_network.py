"""A policy for the action "allocation" that treats all jobs alike: permuting the rows permutes the rates.

Every job present is embedded by the same network, looks at all others by attention, and gets a rate from its own
embedding and what is pooled over all. Rows without a job change nothing, and get the action zero. For PPO and A2C of
Stable-Baselines3.

Sources: M. Zaheer et al., Deep Sets (2017), for the pooling; A. Vaswani et al., Attention Is All You Need (2017).
"""

from __future__ import annotations

from typing import Any, Self

import torch
from gymnasium import spaces
from stable_baselines3.common.distributions import DiagGaussianDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from queue_env.distributions.checks import refuse, whole
from queue_env.observation import SYSTEM_FEATURES

__all__ = ["JobTable", "TablePolicy"]

_SYSTEM = len(SYSTEM_FEATURES)
_FIRST_GAIN = 0.01  # of the last layer of the actor, as in Stable-Baselines3: first all jobs have nearly the same rate


class JobTable(BaseFeaturesExtractor):
    """Embeds the jobs of an observation, each in view of all others.

    Args:
        observation_space: of the view "flat" or "dict".
        slots: rows K of the job table.
        width: numbers of an embedding W.
        heads: of the attention; they share the width.

    Returns:
        Of a batch, shape (B, K (W + 1) + 2 W + system features): the embeddings row by row, which rows hold a job, the
        mean and the maximum of the embeddings over these, and the features of the system.

    Raises:
        ValueError: the observation has no such table, or the heads cannot share the width.
    """

    def __init__(self, observation_space: spaces.Space[Any], slots: int, width: int = 64, heads: int = 4) -> None:
        columns = _columns(observation_space, slots)
        whole("TablePolicy", "width", width, 1)
        if width % whole("TablePolicy", "heads", heads, 1):
            refuse("TablePolicy", "heads", f"a divisor of the width, {width}", heads)
        super().__init__(observation_space, slots * (width + 1) + 2 * width + _SYSTEM)
        self.slots, self.width = slots, width
        self._raw = _unbounded(observation_space) if isinstance(observation_space, spaces.Dict) else {}
        self.embed = nn.Sequential(nn.Linear(columns + _SYSTEM, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.attend = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, observations: Any) -> Tensor:
        """Return the embeddings and what is pooled, shape (B, features)."""
        system, rows = self._split(observations)
        present = rows[..., -1]
        everywhere = system[:, None].expand(-1, self.slots, -1)
        own = self.embed(torch.cat([rows, everywhere], dim=-1))
        # Attention needs something to look at also where the system is empty; the result is not used there.
        absent = (present < 0.5) & (present > 0.5).any(dim=1, keepdim=True)
        seen, _ = self.attend(own, own, own, key_padding_mask=absent, need_weights=False)
        rows_out = (own + seen) * present[..., None]
        mean = rows_out.sum(dim=1) / present.sum(dim=1, keepdim=True).clamp(min=1.0)
        most = rows_out.masked_fill(present[..., None] < 0.5, -torch.inf).amax(dim=1)
        most = torch.where(torch.isfinite(most), most, 0.0)
        return torch.cat([rows_out.flatten(1), present, mean, most, system], dim=1)

    def _split(self, observations: Any) -> tuple[Tensor, Tensor]:
        """Return the features of the system, shape (B, system), and of the rows, (B, K, columns), `present` last."""
        if not isinstance(observations, dict):
            return observations[:, :_SYSTEM], observations[:, _SYSTEM:].reshape(len(observations), self.slots, -1)
        parts = {name: observations[name] for name in self._raw}  # in the same order, whoever made the mapping
        small = {name: _compressed(part) if self._raw[name] else part for name, part in parts.items()}
        present = small.pop("present")
        system = [small.pop(feature.name) for feature in SYSTEM_FEATURES]
        return torch.cat(system, dim=1), torch.stack([*small.values(), present], dim=-1)


def _columns(space: spaces.Space[Any], slots: int) -> int:
    """Return the features of a row; a ValueError if the observation has no table of so many rows."""
    allowed = f"'flat' or 'dict', with a job table of as many rows as the action names, {slots}"
    if isinstance(space, spaces.Dict):
        if "present" not in space.spaces or space["present"].shape != (slots,):
            refuse("TablePolicy", "observation", allowed, space)
        return len(space.spaces) - _SYSTEM
    columns, rest = divmod(space.shape[0] - _SYSTEM, slots) if isinstance(space, spaces.Box) else (0, 1)
    if rest or columns < 1:
        refuse("TablePolicy", "observation", allowed, space)
    return columns


def _unbounded(space: spaces.Dict) -> dict[str, bool]:
    """Which parts of a dict view are in raw units."""
    return {name: bool(box.high.max() > 1.0) for name, box in space.spaces.items() if isinstance(box, spaces.Box)}


def _compressed(values: Tensor) -> Tensor:
    return torch.sign(values) * torch.log1p(torch.abs(values))


class _Heads(nn.Module):
    """From what `JobTable` gives to the rates of all rows, and to what the value is a linear function of."""

    def __init__(self, table: JobTable) -> None:
        super().__init__()
        self.slots, self.width = table.slots, table.width
        pooled = 2 * self.width + _SYSTEM
        self.latent_dim_pi, self.latent_dim_vf = 2 * self.slots, self.width
        self.actor = nn.Sequential(nn.Linear(self.width + pooled, self.width), nn.Tanh(), nn.Linear(self.width, 1))
        self.critic = nn.Sequential(nn.Linear(pooled, self.width), nn.Tanh())

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: Tensor) -> Tensor:
        """Return the rates and which rows hold a job, side by side, shape (B, 2 K)."""
        rows, present, pooled = self._split(features)
        everywhere = pooled[:, None].expand(-1, self.slots, -1)
        rates = self.actor(torch.cat([rows, everywhere], dim=-1)).squeeze(-1)
        return torch.cat([rates * present, present], dim=1)

    def forward_critic(self, features: Tensor) -> Tensor:
        """Return numbers for the value, shape (B, W)."""
        return torch.as_tensor(self.critic(self._split(features)[2]))

    def _split(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        size = self.slots * self.width
        rows, present, pooled = features.tensor_split((size, size + self.slots), dim=1)
        return rows.reshape(-1, self.slots, self.width), present, pooled


class _PresentRows(DiagGaussianDistribution):
    """Independent normal numbers for the rows that hold a job, and zero for the others, which count for nothing."""

    present: Tensor

    def proba_distribution(self, mean_actions: Tensor, log_std: Tensor, present: Tensor | None = None) -> Self:
        super().proba_distribution(mean_actions, log_std)
        self.present = torch.ones_like(mean_actions) if present is None else present
        return self

    def log_prob(self, actions: Tensor) -> Tensor:
        return self._over_present(self.distribution.log_prob(actions))  # type: ignore[no-untyped-call]

    def entropy(self) -> Tensor:
        return self._over_present(self.distribution.entropy())  # type: ignore[no-untyped-call]

    def sample(self) -> Tensor:
        return super().sample() * self.present

    def _over_present(self, values: Tensor) -> Tensor:
        return (values * self.present).sum(dim=1)


class TablePolicy(ActorCriticPolicy):
    """A policy over the job table for PPO and A2C, with the observation "flat" or "dict" and the action "allocation".

    All jobs have one standard deviation, so that the distribution is equivariant too.

    Args:
        observation_space: of the environment.
        action_space: of the environment; "priority" has one of the same form.
        lr_schedule: given by the algorithm.
        **arguments: those of `ActorCriticPolicy`; `net_arch` and `activation_fn` have no effect, and
            `features_extractor_kwargs` are `width` and `heads` of `JobTable`.

    Raises:
        ValueError: a space is of another form, or `use_sde` is true.

    Example:
        >>> from stable_baselines3 import PPO
        >>> from queue_env.sb3 import make_sb3_env
        >>> env = make_sb3_env(num_envs=8, action="allocation", symmetric_actions=True)
        >>> model = PPO(TablePolicy, env, policy_kwargs={"features_extractor_kwargs": {"width": 32}})
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        **arguments: Any,
    ) -> None:
        if not isinstance(action_space, spaces.Box) or len(action_space.shape) != 1 or action_space.shape[0] < 2:
            refuse("TablePolicy", "action", "'allocation' or 'priority', a number for each row", action_space)
        if arguments.get("use_sde"):
            refuse("TablePolicy", "use_sde", "False", True)
        given = arguments.pop("features_extractor_kwargs", None) or {}
        arguments["features_extractor_class"] = JobTable
        kwargs = {**given, "slots": action_space.shape[0]}
        super().__init__(observation_space, action_space, lr_schedule, features_extractor_kwargs=kwargs, **arguments)

    def _build_mlp_extractor(self) -> None:
        assert isinstance(self.features_extractor, JobTable)
        self.mlp_extractor: Any = _Heads(self.features_extractor)

    def _build(self, lr_schedule: Schedule) -> None:
        assert self.action_space.shape is not None
        self.action_dist = _PresentRows(self.action_space.shape[0])
        super()._build(lr_schedule)
        nn.init.orthogonal_(self.mlp_extractor.actor[-1].weight, _FIRST_GAIN)
        self.action_net: Any = nn.Identity()  # the actor gives the rates themselves
        self.log_std = nn.Parameter(torch.full((1,), float(self.log_std_init)))
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def _get_action_dist_from_latent(self, latent_pi: Tensor) -> _PresentRows:
        rates, present = latent_pi.chunk(2, dim=1)
        assert isinstance(self.action_dist, _PresentRows)
        return self.action_dist.proba_distribution(rates, self.log_std, present)
