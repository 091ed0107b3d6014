# Every target sets up what it needs in .venv; Python 3.11 or later and make are enough.
PYTHON ?= python3
BIN := .venv/bin
SUPPORTED = "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "Python 3.11 or later is needed; name it with: make PYTHON=python3.12 …"; exit 1; }
INSTALL := PYTHON="$(PYTHON)" sh tools/install.sh
# Always let Python write byte code, because the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

# The quick tests of computations: see `make test-fast`.
FAST := src tests/problems tests/theory tests/plots tests/stopping tests/test_golden.py \
  tests/test_fit.py tests/test_public.py tests/policies/test_contract.py tests/studies/test_events.py

# These tests spend most of their time waiting for browsers, databases, servers and signals.
WAITING := tests/studies/storage tests/test_cli.py tests/test_client.py tests/test_examples.py tests/server

# Run targets one after the other, even with --jobs, because they share environments. Targets that
# can run in parallel do so in their own make.
ifeq ($(MAKELEVEL),0)
.NOTPARALLEL:
endif

.PHONY: help paper serve check test tests tests-waiting beside beside-box test-fast test-box test-oldest dist bench compare validate \
  release docs docs-figures clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

paper: .venv/ready ## set up everything and reproduce the paper
	$(BIN)/rank1 paper

# Live studies over HTTP, on 127.0.0.1. The terminal shows the address and a token.
serve: .venv/ready ## live studies over HTTP
	$(BIN)/rank1 serve $(FLAGS)

# pre-commit runs these checks, too.
check: .venv/ready ## lint, format, types, layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Makes both environments in parallel, and tests in each as soon as it is ready. If a part fails, the
# others still run.
test: ## set up everything and test it
	@$(SUPPORTED)
	@$(MAKE) --no-print-directory --jobs=3 --keep-going tests beside beside-box

# Each of the two processes gets neighbouring tests, which share compiled code ("worksteal").
tests: .venv/ready
	$(BIN)/pytest -n 2 --dist worksteal -m "not validate" $(WAITING:%=--ignore %)

tests-waiting: .venv/ready
	$(BIN)/pytest -n 2 --dist worksteal -m "not validate" $(WAITING)

# What runs alongside most of the tests shows the output of each part when it has finished.
beside: PARTS := check tests-waiting
beside-box: PARTS := test-box
beside: .venv/ready
beside-box: .venv-box/ready
beside beside-box:
	@log=$$(mktemp); end=0; for part in $(PARTS); do \
	  $(MAKE) --no-print-directory $$part > $$log 2>&1 || end=1; cat $$log; done; \
	rm $$log; exit $$end

test-fast: check ## for daily work: lint, types, and the quick tests of what is computed
	$(BIN)/pytest -n 2 --dist worksteal -m "not validate" $(FAST)

test-box: .venv-box/ready ## the wheel, in an environment of its own
	.venv-box/bin/pytest -m "not validate" tests/installed.py

dist: dist/.ready ## wheel and sdist

dist/.ready: .venv/ready $(shell find src -type f -not -name '*.pyc') pyproject.toml README.md
	rm -rf dist
	$(BIN)/python -m build --no-isolation > .venv/build.log || { cat .venv/build.log; exit 1; }
	$(BIN)/twine check --strict dist/*
	touch $@

# Installs the wheel's dependencies before the wheel exists, by installing from the source. The
# wheel then replaces that, installed as users do it.
.venv-box/filled: pyproject.toml
	@$(SUPPORTED)
	rm -rf .venv-box
	$(INSTALL) .venv-box "pytest>=9.0" hypothesis .
	touch $@

.venv-box/ready: .venv-box/filled dist/.ready
	.venv-box/bin/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	touch $@

release: test validate docs ## all that comes before an upload
	cd js && npm ci --no-audit --no-fund && npm pack
	$(BIN)/python tools/release.py

# Runs the tests with the lowest version of everything that pyproject.toml allows. Ignores
# deprecation warnings, because old packages use parts of their dependencies that are deprecated now.
test-oldest: .venv-oldest/ready ## the tests with the oldest packages that are allowed
	.venv-oldest/bin/pytest -n 2 -m "not validate" -W ignore::DeprecationWarning

validate: .venv/ready .venv/extras .venv-box/ready ## what takes long: statistics, and rarer ways to fail
	HYPOTHESIS_PROFILE=many $(BIN)/pytest -n 2 -m validate tests
	HYPOTHESIS_PROFILE=many $(BIN)/pytest -n 2 -m "hypothesis and not validate" tests
	.venv-box/bin/pytest -m validate tests/installed.py

bench: .venv/ready ## speed, beside others'
	for file in benchmarks/bench_*.py; do \
	  $(BIN)/python -m benchmarks.$$(basename $$file .py) || exit 1; done

# Runs the usual alternatives, each in its own environment, two at a time, and writes docs/compare.md.
# Each result is saved at once: `make compare FLAGS="--only with_river"` repeats one of them.
compare: .venv/ready ## beside other packages: writes docs/compare.md
	$(BIN)/python -m benchmarks.compare $(FLAGS)

# Builds the site in site/: open site/index.html. It works without a network and without a server.
docs: .venv-docs/ready ## the site, into site/
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

.venv-docs/ready: pyproject.toml
	@$(SUPPORTED)
	$(INSTALL) .venv-docs --group docs
	touch $@

docs-figures: .venv/ready ## draw the figures of the docs anew
	$(BIN)/python docs/figures.py

.venv/ready: pyproject.toml
	@$(SUPPORTED)
	$(INSTALL) .venv --editable . --group dev
	touch $@

# What only `make validate` uses: large, and not for every machine.
.venv/extras: .venv/ready
	if command -v java > /dev/null; then $(INSTALL) .venv --group spark; \
	else echo "Spark is left out: there is no Java"; fi
	if $(INSTALL) .venv --editable ".[ray]"; then touch $@; else echo "Ray is left out, as above"; fi

.venv-oldest/ready: pyproject.toml tools/oldest.py
	@$(SUPPORTED)
	$(INSTALL) .venv-oldest
	"$(PYTHON)" tools/oldest.py > .venv-oldest/constraints.txt
	$(INSTALL) .venv-oldest --editable . --group dev --constraint .venv-oldest/constraints.txt
	touch $@

clean: ## remove what make has made
	rm -rf .venv .venv-box .venv-docs .venv-oldest dist .mypy_cache .ruff_cache report report-quick site
