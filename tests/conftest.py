"""Settings that all tests share."""

from hypothesis import settings

# The same examples in every run; `pytest --hypothesis-profile=explore` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None, max_examples=80)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("same")
