# Needs Python >= 3.11 and make only. The environment is created in .venv.
PYTHON ?= python3
VENV := .venv
SHELL := /bin/bash
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Data sets that are on this machine: beside the checkout, unless LONGTERM_DATA names another folder.
LONGTERM_DATA ?= $(abspath $(wildcard ../shared/data))
ifneq ($(LONGTERM_DATA),)
export LONGTERM_DATA
endif

# Tests start Python hundreds of times, so compiled sources are kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help reproduce pacing routing test tests soaked test-all test-processors coverage quick lint docs package soak bench bench-live bench-linear bench-models bench-calibration bench-router bench-scale bench-gpu test-engines test-gpu clean

help:
	@echo "make reproduce   two of the paper's experiments: tables, figures, and a page, results/report.html"
	@echo "make test        the whole suite: style, types, tests, doctests"
	@echo "make test-all    and the full cross of learners, problems and engines, and runs at full size"
	@echo "make quick       the part of the tests to run while working"
	@echo "make test-processors  the tests that compute, under other instruction sets, BLAS kernels and hash seeds"
	@echo "make test-engines  install Ray and Spark, and run their tests: workers, driver and JVM are killed (4 minutes; Java 17)"
	@echo "make pacing      spend a budget over auctions (real where LONGTERM_DATA has them, else invented): tables, figures in results/"
	@echo "make routing     route prompts to language models under a budget: every method on two tables, figures in results/"
	@echo "make coverage    the share of lines that the tests run, and a page that shows the others: build/coverage"
	@echo "make soak        kills, signals, full disks, second processes, hostile files: SECONDS=600 of them, and what was lost"
	@echo "make docs        the site, docs/_build/html: a warning is an error; doctests included"
	@echo "make package     wheel and sdist, checked, and tried in an empty environment"
	@echo "make bench       rounds beside hand-written NumPy, one engine beside the other, memory, projecting, the rows of docs/benchmarks/choosing.md"
	@echo "make bench-live  time ask and tell in a service, fleets of up to a million learners, decisions under a budget"
	@echo "make bench-linear  streaming linear models beside C, SGDClassifier, River and Vowpal Wabbit; regret on real data"
	@echo "make bench-models  linear models with default settings beside scikit-learn, River and Vowpal Wabbit: losses, non-zeros, time"
	@echo "make bench-calibration  coverage and sharpness of calibration rules on real series"
	@echo "make bench-router  the router beside ParetoBandit, PORT and MESS+: reward, bill, drift, time"
	@echo "make bench-scale many learners at once: paths of budgets, memory, pacing of whole logs; what docs/benchmarks/what_it_costs.md quotes"
	@echo "make bench-gpu   the part of it that wants a GPU; make test-gpu: the tests that do"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "longterm needs Python >= 3.11; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dask,experiments,jax,linear,metrics,onnx,optax,parquet,river,server,test]"
	touch $@

reproduce: $(READY)
	$(BIN)/longterm reproduce dsm sample --out results

pacing: $(READY)
	$(BIN)/python examples/pacing.py --out results
	$(BIN)/python examples/auctions.py --out results

routing: $(READY)
	$(BIN)/python examples/routing.py --out results

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/ruff format --check --line-length 88 README.md $(wildcard docs/*.md docs/*/*.md)
	$(BIN)/mypy
	$(BIN)/mypy examples
	$(BIN)/lint-imports
	$(BIN)/python docs/docstrings.py

# A file's tests stay together: what it compiles and makes for all of them is made once. Two processes, two threads.
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# Style and types beside the tests: they have use for one core only. So does the minute of soaking, most of which waits.
test: $(READY)
	$(MAKE) --no-print-directory --jobs=3 lint soaked tests

SOAKED := tests/storage/test_soak.py
soaked: $(READY)
	$(BIN)/python -m pytest -q $(SOAKED)

tests: $(READY)
	$(PYTEST) -m "not cross" --ignore=$(SOAKED)

test-all: lint
	$(PYTEST)

# Each line of PROCESSORS is one run: settings separated by commas. CI runs the first.
PROCESSORS ?= NUMBA_CPU_NAME=generic,OPENBLAS_CORETYPE=Prescott,PYTHONHASHSEED=1,XLA_FLAGS=--xla_cpu_max_isa=SSE4_2 \
	NUMBA_CPU_NAME=haswell,OPENBLAS_CORETYPE=Haswell,PYTHONHASHSEED=4,XLA_FLAGS=--xla_cpu_max_isa=AVX2 \
	NUMBA_CPU_NAME=skylake-avx512,OPENBLAS_CORETYPE=SkylakeX,PYTHONHASHSEED=0
COMPUTING := tests/linear_model tests/money tests/learners tests/calibration tests/play tests/hindsight
comma := ,
test-processors: $(READY)
	@for settings in $(PROCESSORS); do \
		case $$settings in *avx512*) grep -qs avx512f /proc/cpuinfo || { echo "skipped, no AVX-512: $$settings"; continue; };; esac; \
		echo "$$settings"; \
		env $$(echo $$settings | tr '$(comma)' ' ') $(PYTEST) -q -m "not cross" $(COMPUTING) || exit 1; \
	done

# Heavy engines. Without Java the tests of Spark are skipped.
ENGINE_TESTS := tests/compat/test_spark.py tests/data/test_group_model.py tests/lab/experiments/test_interruptions.py
test-engines: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[ray,spark]"
	$(BIN)/python -m pytest -q -n 0 $(ENGINE_TESTS) -k "test_ray or test_spark"

quick: $(READY)
	$(PYTEST) -q --thin -m "not slow and not cross"

# A figure, not a gate. Compiled kernels and other processes are not counted.
coverage: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pytest-cov
	mkdir -p build
	set -o pipefail; $(PYTEST) -q -m "not cross" --cov=longterm --cov-report=term --cov-report=html:build/coverage | tee build/test.txt
	grep TOTAL build/test.txt | awk '{ print "coverage: " $$NF }' | tee build/coverage.txt

SECONDS ?= 600
soak: $(READY)
	PYTHONPATH=tests/support OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/support/soak.py $(SECONDS)

# What runs the code of the pages; with the docstrings' these are the doctests of the site. `make test` has them, too, so
# after it DOCTESTS=no leaves them out.
RUN_PAGES := tests/docs/test_readme.py tests/docs/test_pages.py tests/learners/test_outside.py \
	tests/catalogue/test_scenarios.py \
	tests/cli/test_cli.py \
	tests/server/test_guide.py tests/compat/test_litellm_ledger.py
DOCTESTS ?= yes
docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	COLUMNS=80 JAX_PLATFORMS=cpu $(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
ifneq ($(DOCTESTS),no)
	$(BIN)/python -m pytest -n 2 -q src $(RUN_PAGES)
endif

package: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[release]"
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	rm -rf build/empty
	$(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$(ls dist/*.whl)[experiments,linear]"
	cd build/empty && bin/python ../../tests/support/readme_example.py ../../README.md

bench: $(READY)
	$(BIN)/python benchmarks/rounds.py
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/sweeps.py
	$(BIN)/python benchmarks/memory.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/psd.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/choose.py

bench-live: $(READY)
	$(BIN)/python benchmarks/live.py
	$(BIN)/python benchmarks/processes.py
	$(BIN)/python benchmarks/load.py
	$(BIN)/python benchmarks/fleet.py
	$(BIN)/python benchmarks/holds.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/decisions.py

bench-linear: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/linear.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/linear_regret.py

bench-models: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	mkdir -p results
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/models.py --figure results/models.png

bench-calibration: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/calibration.py

bench-router: $(READY)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check paretobandit==0.1.1
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/router.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/router_tables.py --out docs/_static/routing_tables.svg

bench-scale: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/scale.py

# On a machine with an NVIDIA GPU and CuPy; PYTHON names the interpreter that has them.
bench-gpu:
	PYTHONPATH=src $(PYTHON) benchmarks/scale_gpu.py

test-gpu:
	PYTHONPATH=src:tests/support $(PYTHON) -m pytest -q -o addopts= tests/play/fleet/test_on_device.py

clean:
	rm -rf $(VENV) results build dist docs/_build docs/reference/api docs/gallery_pages .mypy_cache .pytest_cache .ruff_cache .hypothesis
