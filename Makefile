# `make demo` and `make test` do all of their own set-up: a virtual environment in .venv, made anew only when
# pyproject.toml changes.
PYTHON ?= python3
JOBS ?= 1e7
OUT ?= demo
BIN := .venv/bin

.PHONY: demo test check docs bench clean

demo: .venv/demo-ready
	$(BIN)/queue-env simulate high-load-2 --policy srpt --policy all --jobs $(JOBS) --out $(OUT)
	@echo
	@echo "The table is in $(OUT)/table.md, the figure in $(OUT)/tail.png."

test: check
	$(BIN)/python -m pytest

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
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

# PyTorch first and by itself, so that its build for the CPU is taken where there is one.
.venv/test-ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@ .venv/demo-ready

clean:
	rm -rf .venv demo site
