"""Stable-Baselines3: the native vector environment as its ``VecEnv``, and buffers that discount by time.

Names:
    `SB3VecEnv`, `make_sb3_env`: the environment.
    `TimeAwareReplayBuffer`, `TimeAwareDictReplayBuffer`: for DQN, SAC, TD3 and their like.
    `TimeAwareRolloutBuffer`, `TimeAwareDictRolloutBuffer`, `VecDiscount`: for PPO and A2C.

Raises:
    ImportError: on import, without Stable-Baselines3.
"""

try:
    import stable_baselines3  # noqa: F401
except ImportError as error:
    raise ImportError("queue_env.sb3 needs Stable-Baselines3: install queue-env[sb3]") from error

from queue_env.sb3.adapter import SB3VecEnv, make_sb3_env
from queue_env.sb3.discounts import DiscountedRewards, VecDiscount
from queue_env.sb3.replay import TimeAwareDictReplayBuffer, TimeAwareReplayBuffer
from queue_env.sb3.rollout import TimeAwareDictRolloutBuffer, TimeAwareRolloutBuffer

__all__ = [
    "DiscountedRewards",
    "SB3VecEnv",
    "TimeAwareDictReplayBuffer",
    "TimeAwareDictRolloutBuffer",
    "TimeAwareReplayBuffer",
    "TimeAwareRolloutBuffer",
    "VecDiscount",
    "make_sb3_env",
]
