"""Schedule a queue with n servers, and be scored on the tail of response time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from queue_env._version import __version__
from queue_env.registration import register_when_gymnasium_is_there

if TYPE_CHECKING:
    from queue_env.comparison import Comparison
    from queue_env.distributions import Law, law
    from queue_env.env import QueueEnv
    from queue_env.result import Result
    from queue_env.scenarios import SCENARIOS, Scenario, scenario
    from queue_env.scoring.agent_blocks import agent_policy
    from queue_env.scoring.curve import TailCurve, tail_curve
    from queue_env.scoring.score import Score, Scores, score, score_all
    from queue_env.scoring.sweep import Sweep, sweep
    from queue_env.simulation import Simulation
    from queue_env.simulator import simulate
    from queue_env.trace import load_trace
    from queue_env.user_policies import allocation_policy, anchor_policy, index_policy
    from queue_env.vector_env import QueueVectorEnv
    from queue_env.workload import Workload

__all__ = [
    "SCENARIOS",
    "Comparison",
    "Law",
    "QueueEnv",
    "QueueVectorEnv",
    "Result",
    "Scenario",
    "Score",
    "Scores",
    "Simulation",
    "Sweep",
    "TailCurve",
    "Workload",
    "__version__",
    "agent_policy",
    "allocation_policy",
    "anchor_policy",
    "index_policy",
    "law",
    "load_trace",
    "scenario",
    "score",
    "score_all",
    "simulate",
    "sweep",
    "tail_curve",
]

# Where each public name lives. They are loaded when first used, so that `import queue_env` stays quick.
_HOMES = {
    "SCENARIOS": "scenarios",
    "Comparison": "comparison",
    "Law": "distributions",
    "QueueEnv": "env",
    "QueueVectorEnv": "vector_env",
    "Result": "result",
    "Scenario": "scenarios",
    "Score": "scoring.score",
    "Scores": "scoring.score",
    "Simulation": "simulation",
    "Sweep": "scoring.sweep",
    "TailCurve": "scoring.curve",
    "Workload": "workload",
    "agent_policy": "scoring.agent_blocks",
    "allocation_policy": "user_policies",
    "anchor_policy": "user_policies",
    "index_policy": "user_policies",
    "law": "distributions",
    "load_trace": "trace",
    "scenario": "scenarios",
    "score": "scoring.score",
    "score_all": "scoring.score",
    "simulate": "simulator",
    "sweep": "scoring.sweep",
    "tail_curve": "scoring.curve",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'queue_env' has no attribute {name!r}")
    value = getattr(import_module(f"queue_env.{_HOMES[name]}"), name)
    # Kept, so that it is looked up once.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


register_when_gymnasium_is_there()
