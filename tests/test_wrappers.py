"""The discount of a step is that of the time it took, in single and in vector environments."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from queue_env.wrappers import TimeDiscount, TimeDiscountVector
from tests.tickers import Ticker, as_vector, step_time, steps, tickers

BETA = 0.3
ID = "tests/Ticker-v0"


@pytest.fixture
def registered() -> Any:
    gym.register(ID, "tests.tickers:Ticker")
    yield ID
    del gym.registry[ID]


def discounts(shown: Any) -> Any:
    return np.exp(-BETA * step_time(as_vector(shown)))


# ---- one environment ---------------------------------------------------------------------------------


def test_discount_of_a_step() -> None:
    env = TimeDiscount(Ticker(), BETA)
    shown, info = env.reset()
    assert info["discount"] == 1.0
    over = False
    while not over:
        expected = discounts(shown)
        shown, _, terminated, truncated, info = env.step(env.action_space.sample())
        assert info["discount"] == pytest.approx(expected, rel=1e-15)
        over = terminated or truncated


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_gymnasium_accepts_it(registered: str) -> None:
    check_env(TimeDiscount(gym.make(registered), BETA), skip_render_check=True)


def test_spec_remakes_the_wrapper(registered: str) -> None:
    spec = TimeDiscount(gym.make(registered, index=4), BETA).spec
    assert spec is not None
    env = gym.make(EnvSpec.from_json(spec.to_json()))
    assert isinstance(env, TimeDiscount)
    assert env.beta == BETA
    assert env.unwrapped.index == 4


@pytest.mark.parametrize("beta", [0.0, -1.0, np.nan, np.inf, "1", None, True])
def test_refuses_beta(beta: Any) -> None:
    with pytest.raises(ValueError, match=r"TimeDiscount: beta must be a finite number > 0, got"):
        TimeDiscount(Ticker(), beta)
    with pytest.raises(ValueError, match=r"TimeDiscountVector: beta must be a finite number > 0, got"):
        TimeDiscountVector(tickers(), beta)


@pytest.mark.parametrize("dt", [None, -0.1, np.nan, "1"])
def test_refuses_steps_without_their_time(dt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    env = TimeDiscount(Ticker(timed=False), BETA)
    env.reset()
    if dt is not None:
        inner = env.env.step
        monkeypatch.setattr(env.env, "step", lambda action: (*inner(action)[:4], {"dt": dt}))
    with pytest.raises(ValueError, match=r"TimeDiscount: info\['dt'\] must be the time the step took"):
        env.step(env.action_space.sample())


# ---- vector environments -----------------------------------------------------------------------------


@pytest.mark.parametrize("reset_dt", [True, False])
def test_same_step(reset_dt: bool) -> None:
    venv = TimeDiscountVector(tickers(reset_dt=reset_dt), BETA)
    shown, infos = venv.reset()
    check(infos, np.ones(3))
    ends = 0
    for _ in range(30):
        expected = discounts(shown)
        shown, _, terminated, truncated, infos = venv.step(venv.action_space.sample())
        check(infos, expected)
        done = terminated | truncated
        ends += done.sum()
        assert ("final_info" in infos) == done.any()
        if done.any():
            assert infos["final_info"]["_discount"].tolist() == done.tolist()
            np.testing.assert_allclose(infos["final_info"]["discount"][done], expected[done], rtol=1e-15)
    assert ends > 10


@pytest.mark.parametrize("reset_dt", [True, False])
def test_next_step(reset_dt: bool) -> None:
    venv = TimeDiscountVector(tickers(autoreset_mode=AutoresetMode.NEXT_STEP, reset_dt=reset_dt), BETA)
    shown, infos = venv.reset()
    check(infos, np.ones(3))
    resetting = np.zeros(3, bool)
    for _ in range(30):
        expected = np.where(resetting, 1.0, discounts(shown))
        shown, _, terminated, truncated, infos = venv.step(venv.action_space.sample())
        check(infos, expected)
        resetting = terminated | truncated


def test_disabled() -> None:
    venv = TimeDiscountVector(tickers(autoreset_mode=AutoresetMode.DISABLED), BETA)
    shown, _ = venv.reset()
    for _ in range(30):
        expected = discounts(shown)
        shown, _, terminated, truncated, infos = venv.step(venv.action_space.sample())
        check(infos, expected)
        done = terminated | truncated
        if done.any():
            shown, infos = venv.reset(options={"reset_mask": done.copy()})
            assert infos["_discount"].tolist() == done.tolist()
            assert infos["discount"][done].tolist() == [1.0] * done.sum()


def test_disabled_waits_for_a_reset() -> None:
    # Environments whose episode is over may be stepped, in some implementations, and then have no time to report.
    venv = TimeDiscountVector(Frozen(), BETA)
    venv.reset()
    check(venv.step(np.zeros(2))[4], np.exp(-BETA * np.ones(2)))
    check(venv.step(np.zeros(2))[4], np.array([1.0, np.exp(-BETA)]))
    venv.reset(options={"reset_mask": np.array([False, True])})
    check(venv.step(np.zeros(2))[4], np.array([1.0, np.exp(-BETA)]))
    venv.reset()
    check(venv.step(np.zeros(2))[4], np.exp(-BETA * np.ones(2)))


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_is_as_if_each_environment_was_wrapped(mode: AutoresetMode) -> None:
    whole = TimeDiscountVector(tickers(autoreset_mode=mode), BETA)
    each = SyncVectorEnv([lambda i=i: TimeDiscount(Ticker(i), BETA) for i in range(3)], autoreset_mode=mode)
    whole.reset()
    each.reset()
    for _ in range(20):
        action = whole.action_space.sample()
        *_, terminated, truncated, infos = whole.step(action)
        other = each.step(action)[4]
        done = terminated | truncated
        here = np.ones(3, bool)
        if mode is AutoresetMode.SAME_STEP and done.any():
            # Gymnasium puts the discount of the reset beside the reward of the last step.
            here = ~done
            np.testing.assert_array_equal(infos["final_info"]["discount"], other["final_info"]["discount"])
            np.testing.assert_array_equal(infos["final_info"]["_discount"], other["final_info"]["_discount"])
        np.testing.assert_allclose(infos["discount"][here], other["discount"][here], rtol=1e-15)
        if mode is AutoresetMode.DISABLED and done.any():
            for venv in (whole, each):
                venv.reset(options={"reset_mask": done.copy()})


def test_vector_refuses_steps_without_their_time() -> None:
    venv = TimeDiscountVector(tickers(timed=False), BETA)
    venv.reset()
    with pytest.raises(ValueError, match=r"infos\['dt'\] of environment 0 must be the time the step took.*got nan"):
        venv.step(venv.action_space.sample())


def test_the_time_of_the_reset_is_not_that_of_the_last_step() -> None:
    # A last step without its time is an error, though the reset that follows at once reports dt = 0.
    venv = TimeDiscountVector(tickers(), BETA)
    inner = venv.env.step

    def step(actions: Any) -> Any:
        results = inner(actions)
        results[4].get("final_info", {}).pop("dt", None)
        return results

    venv.env.step = step
    venv.reset()
    for _ in range(steps(0, 0) - 1):
        venv.step(venv.action_space.sample())
    with pytest.raises(ValueError, match=r"infos\['dt'\] of environment 0 must be"):
        venv.step(venv.action_space.sample())


def test_vector_refuses_an_unknown_mode() -> None:
    venv = tickers()
    venv.metadata = {}
    with pytest.raises(ValueError, match="autoreset_mode'] must be an AutoresetMode, got None"):
        TimeDiscountVector(venv, BETA)


def check(infos: dict[str, Any], expected: Any) -> None:
    assert infos["_discount"].dtype == np.bool_
    assert infos["_discount"].all()
    np.testing.assert_allclose(infos["discount"], expected, rtol=1e-15)


class Frozen(gym.vector.VectorEnv[Any, Any, Any]):
    """Two environments with dt = 1; the first one's episodes last one step, and then it waits for a reset."""

    num_envs = 2
    metadata = {"autoreset_mode": AutoresetMode.DISABLED}  # noqa: RUF012

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        mask = np.ones(2, bool) if options is None else options["reset_mask"]
        self.waits = False if mask[0] else self.waits
        return np.zeros(2), {"dt": np.zeros(2), "_dt": mask}

    def step(self, actions: Any) -> Any:
        moved = np.array([not self.waits, True])
        self.waits = True
        over = np.array([True, False])
        return np.zeros(2), np.zeros(2), over & moved, ~np.ones(2, bool), {"dt": moved * 1.0, "_dt": moved}
