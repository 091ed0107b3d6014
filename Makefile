# Every target sets up what it needs in .venv; Python 3.11 or later and make are enough.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: paper serve test test-oldest test-ray bench compare validate docs-figures clean

paper: .venv/ready
	$(BIN)/rank1 paper

# Live studies over HTTP, on 127.0.0.1: the terminal shows the address and a token.
serve: .venv/ready
	$(BIN)/rank1 serve $(FLAGS)

# Each of the two has neighbouring tests, which share compiled code ("worksteal").
test: .venv/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -n 2 --dist worksteal -m "not validate"
	@$(MAKE) --no-print-directory test-ray

# Ray is large, and not for every Python: it has an environment of its own.
test-ray: .venv-ray/ready
	@if [ -s $< ]; then cat $<; else .venv-ray/bin/pytest tests/simulation/test_ray.py; fi

.venv-ray/ready: pyproject.toml
	$(PYTHON) -m venv .venv-ray
	.venv-ray/bin/python -m pip install --quiet --upgrade pip
	@if .venv-ray/bin/python -m pip install --quiet --dry-run --no-deps --only-binary ray ray \
	  2> .venv-ray/why; then \
	  .venv-ray/bin/python -m pip install --quiet --editable '.[ray]' 'pytest>=9.0' psutil && : > $@; \
	else echo "Ray is left out: it has no package for this Python ($$(tail -1 .venv-ray/why))" > $@; fi

# The tests again, with the lowest version of everything that pyproject.toml allows. That old code
# uses what its own dependencies have deprecated since is no fault of ours.
test-oldest: .venv-oldest/ready
	.venv-oldest/bin/pytest -n 2 -m "not validate" -W ignore::DeprecationWarning

validate: .venv/ready
	$(BIN)/pytest -n 2 -m validate tests

bench: .venv/ready
	for file in benchmarks/bench_*.py; do \
	  $(BIN)/python -m benchmarks.$$(basename $$file .py) || exit 1; done

# What people use instead, each in an environment of its own: writes docs/compare.md. It takes ten
# minutes, and five more at first, to install them.
compare: .venv/ready
	$(BIN)/python -m benchmarks.compare

docs-figures: .venv/ready
	$(BIN)/python docs/figures.py

.venv/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed; name it with: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

.venv-oldest/ready: pyproject.toml tools/oldest.py
	$(PYTHON) -m venv .venv-oldest
	$(PYTHON) tools/oldest.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --upgrade pip
	.venv-oldest/bin/python -m pip install --quiet --editable . --group dev \
	  --constraint .venv-oldest/constraints.txt
	touch $@

clean:
	rm -rf .venv .venv-oldest .venv-ray .mypy_cache .ruff_cache report
