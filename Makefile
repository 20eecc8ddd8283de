# `make demo` and `make test` do all of their own set-up: a virtual environment in .venv, made anew only when
# pyproject.toml changes.
PYTHON ?= python3
OUT ?= demo
MINUTES ?= 3
WIDTH ?= 0.1
POLICIES ?= learned-high-load-2 fcfs srpt split dynasplit
BIN := .venv/bin
# PyTorch first and by itself, so that its build for the CPU is taken where there is one.
TORCH := torch==2.13.0

.PHONY: demo test check docs bench clean

# A training that was interrupted goes on, and one that is finished is not made again.
demo: .venv/demo-ready
	test -e $(OUT)/ppo/result.json || $(BIN)/python -m train.ppo --scenario high-load-2 --minutes $(MINUTES) \
		--out $(OUT)/ppo $$(test -e $(OUT)/ppo/checkpoint.zip && echo --resume)
	$(BIN)/python -m baselines.scoreboard --scenario high-load-2 --policy learned:$(OUT)/ppo/policy.json \
		$(addprefix --policy ,$(POLICIES)) --width $(WIDTH) --jobs 1e6 --most-jobs 1e8 --out $(OUT)
	@echo
	@echo "The table and the tail curves are in $(OUT)/scoreboard.html, the policy in $(OUT)/ppo/policy.json."

test: check
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

check: .venv/test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/test-ready
	$(BIN)/mkdocs build --strict

bench: .venv/test-ready
	$(BIN)/queue-env bench

.venv/demo-ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --editable ".[plot,train]"
	touch $@

.venv/test-ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@ .venv/demo-ready

clean:
	rm -rf .venv demo site
