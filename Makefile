# Each target sets up what it needs; a fresh clone needs only Python 3.11 or newer and make.
PYTHON ?= python3
# More arguments for pytest or the benchmark, for example: make test ARGS="-k hold tests/unit"
ARGS ?=
# Test processes: two more than the two cores of CI, because many tests wait for other processes.
WORKERS ?= 4

SHELL := /bin/sh
PY := .venv/bin/python
SETUP := $(PYTHON) tools/setup.py

# Tests and the demo start many processes: let Python keep its compiled files whatever the caller's shell says.
unexport PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONHOME

.DEFAULT_GOAL := help
.PHONY: help demo web test slow check soak partners bench docs format lock clean setup-runtime setup-dev

help:  ## show this list
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z]*\):.*  ## /  \1\t/p' Makefile

demo: setup-runtime  ## a flow is killed, resumes, asks you and finishes; then the web app with runs in every state
	@$(PY) tools/web.py
	@$(PY) -m holdfast.demo

web: setup-runtime  ## the web app, into src/holdfast/_ui
	@$(PY) tools/web.py build

test: setup-dev  ## all tests but the slow ones and the soak, with the minutes of each folder
	@$(PY) -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

slow: setup-dev  ## whole forms of tests that take seconds each (tests/slow.py); CI runs them too
	@$(PY) -m pytest -n $(WORKERS) --dist loadgroup -m "slow and not soak" $(ARGS)

check: setup-dev  ## format, lint, types, imports and names; changes nothing
	@$(PY) tools/check.py

soak: setup-dev  ## hundreds of crashes at random moments, and long property tests
	@$(PY) -m pytest -n $(WORKERS) --dist loadgroup -m "soak or slow" --timeout 3600 --hypothesis-profile soak $(ARGS)

partners: setup-dev  ## integrations with partners outside the lock and with the lowest versions allowed
	@$(PY) tools/partners.py run $(ARGS)

bench: setup-dev  ## the core's benchmark, as ratios to a floor measured in the same run
	@$(PY) -m bench $(ARGS)

docs: setup-dev  ## the documentation as a site, in build/docs/site
	@$(PY) tools/docs.py build

format: setup-dev  ## format, and apply the linter's safe repairs
	@$(PY) -m ruff check --fix-only --quiet .
	@$(PY) -m ruff format .

lock:  ## write requirements/*.lock anew; ARGS=--upgrade takes the newest versions
	@$(SETUP) lock $(ARGS)

clean:  ## remove the environment, caches and build output
	rm -rf .venv .tools .partners .setup.lock .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage build dist web/node_modules src/holdfast/_ui
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

setup-runtime:
	@$(SETUP) runtime

setup-dev:
	@$(SETUP) dev
