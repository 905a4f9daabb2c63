# On a fresh machine with Python 3.10 or newer, `make demo` and `make test` do everything themselves.
# Another interpreter: make test PYTHON=python3.13

PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11 python3.10 python,\
	$(shell $(name) -c 'import sys; sys.version_info >= (3, 10) and print("$(name)")' 2>/dev/null)))
BIN := .venv/bin
DEMO := build/demo
# What tests start again and again is compiled once.
unexport PYTHONDONTWRITEBYTECODE
CASES ?= momentum_loop weight_decay schedule_made_late traversal_two_rates

.PHONY: demo test test-all coverage parity docs lint format clean

# Rewrite a copy of shipped legacy code: as a diff, then for real, then again, which changes nothing.
demo: .venv/core
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	@for case in $(CASES); do cp fixtures/$$case/before.py $(DEMO)/$$case.py; done
	$(BIN)/optim2optax rewrite --diff $(DEMO) || test $$? -eq 1
	$(BIN)/optim2optax rewrite $(DEMO)
	$(BIN)/optim2optax rewrite --check $(DEMO)

# Lint, check types, run all tests but those that take long for what they can find beside the others.
test: lint
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --durations=30 -m "not thorough"

# All tests.
test-all: lint
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --durations=30

# Prove every optimizer and scenario of the fixtures, and write the table anew.
parity: .venv/full
	@mkdir -p docs
	$(BIN)/optim2optax parity --platform cpu --devices 8 --jobs 2 --markdown docs/parity.md fixtures

# The documentation as a site, in build/docs. Whatever Sphinx warns of is an error, links to nowhere within the site included.
docs: .venv/full
	$(BIN)/sphinx-build --fail-on-warning --keep-going --nitpicky --quiet docs build/docs

# All tests, with the branches that none of them takes.
coverage: .venv/full
	$(BIN)/coverage run -m pytest -q -n 2
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

lint: .venv/full
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell

format: .venv/full
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf .venv build dist

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.10 or newer is needed: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

.venv/core: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

ALL := '.[parity,dev,docs]'
# uv installs in seconds what takes pip minutes; where it finds no index, pip does it.
.venv/full: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.5'
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable $(ALL) || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable $(ALL)
	@touch $@ .venv/core
