# Everything needs only Python >= 3.11 and make: the environment is made here, in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Data sets that are already here: beside the checkout, unless another folder is named.
LONGTERM_DATA ?= $(abspath $(wildcard ../shared/data))
ifneq ($(LONGTERM_DATA),)
export LONGTERM_DATA
endif

.PHONY: help reproduce pacing test test-all quick lint tables bench bench-live bench-linear bench-models clean

help:
	@echo "make reproduce   two of the paper's experiments: tables, figures, and a page, results/report.html"
	@echo "make test        the whole suite: style, types, tests, doctests"
	@echo "make test-all    and the full cross of learners, problems and engines"
	@echo "make quick       the part of the tests to run while working"
	@echo "make pacing      spend a budget over real auctions (or invented ones): a table, and a figure in results/"
	@echo "make bench       rounds beside hand-written NumPy, one engine beside the other, memory, projecting, the rows of docs/choose.md"
	@echo "make bench-live  time ask and tell in a service, and fleets of up to a million learners"
	@echo "make bench-linear  streaming linear models beside C, SGDClassifier, River and Vowpal Wabbit; regret on real data"
	@echo "make bench-models  linear models with default settings beside scikit-learn, River and Vowpal Wabbit: losses, non-zeros, time"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "longterm needs Python >= 3.11; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dask,experiments,jax,linear,test]"
	touch $@

reproduce: $(READY)
	$(BIN)/longterm reproduce dsm sample --out results

pacing: $(READY)
	$(BIN)/python examples/pacing.py --out results

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy examples
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -n 2 -m "not cross"

test-all: lint
	$(BIN)/python -m pytest -n 2

quick: $(READY)
	$(BIN)/python -m pytest -n 2 -q -m "not slow and not cross"

tables: $(READY)
	$(BIN)/python docs/generate.py

bench: $(READY)
	$(BIN)/python benchmarks/rounds.py
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/memory.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/psd.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/choose.py

bench-live: $(READY)
	$(BIN)/python benchmarks/live.py
	$(BIN)/python benchmarks/fleet.py

bench-linear: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/linear.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/linear_regret.py

bench-models: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	mkdir -p results
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/models.py --figure results/models.png

clean:
	rm -rf $(VENV) results build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
