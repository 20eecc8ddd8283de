"""Checkers of environments: what Gymnasium's own leaves open for single ones, and all of it for vector ones."""

from queue_env.checks.failures import EnvCheckError
from queue_env.checks.single import check_env
from queue_env.checks.vector import check_vector_env

__all__ = ["EnvCheckError", "check_env", "check_vector_env"]
