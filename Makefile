# Everything a fresh machine needs is set up by the targets themselves, in .venv.
# It takes Python 3.11 or newer; choose another one with `make PYTHON=python3.12 …`.

PYTHON ?= python3
UV_VERSION := 0.13.7
BIN := .venv/bin
READY := .venv/.ready
# uv if it is there; otherwise the one that pip puts into .venv
UV := $(shell command -v uv 2>/dev/null || echo $(BIN)/uv)

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-vld tour test test-spark coverage test-all bench bench-spark lint format docs lock clean

help:
	@echo "make setup     virtual environment and dependencies (.venv), jars for Spark"
	@echo "make demo      an application on Spark whose load doubles, kept in its target (build/demo)"
	@echo "make demo-vld  logos found in video on Spark, while the frame rate doubles (build/demo-vld)"
	@echo "make tour      plan, simulate and control the examples, without Spark (build/tour)"
	@echo "make test      lint, types, import rules, doctests, all tests without Spark and one on it"
	@echo "make test-spark  the other tests that start Spark"
	@echo "make coverage  both again, and the part of the code that they run"
	@echo "make test-all  both, with the slow tests"
	@echo "make bench     speed and accuracy, printed"
	@echo "make bench-spark  latency, faults, throughput and more on Spark: an hour and a half, nothing else running"
	@echo "make lint      lint, types and import rules alone"
	@echo "make format    let ruff format the code"
	@echo "make docs      run the commands shown in the pages, and write what they print"
	@echo "make lock      pin the dependencies anew (requirements.txt)"

setup: $(READY)

$(READY): requirements.txt pyproject.toml papers/pyproject.toml trial/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is too old or missing: sojourn needs Python 3.11 or newer."; \
	  echo "Install one, or name it: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv .venv
	@command -v uv >/dev/null || $(BIN)/python -m pip install --quiet uv==$(UV_VERSION)
	$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . -e papers -e trial
	@$(BIN)/python -m compileall -q src papers/src trial/src  # where bytecode is not written on the way, commands start faster
	@$(BIN)/python -m sojourn.spark.driver.jvm.jars || \
	  echo "warning: what runs on Spark will not work until this does; all else will"
	@touch $@

demo: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh build/demo

demo-vld: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo_vld.sh build/demo-vld

tour: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/tour.sh build/tour

# Tests without Java run in as many processes as there are cores. Spark takes all cores by
# itself, so its tests run one at a time.
PLAIN_TESTS = $(BIN)/pytest --session-timeout $(LIMIT_S) --numprocesses auto --dist worksteal
SPARK_TESTS = $(BIN)/pytest --session-timeout $(LIMIT_S)
COVERED := --cov --cov-report= --cov-fail-under=0

test: LIMIT_S := 1500
test: lint
	$(PLAIN_TESTS) -m "not slow and not spark"
	$(SPARK_TESTS) -m smoke tests/spark

test-spark: LIMIT_S := 2700
test-spark: $(READY)
	$(SPARK_TESTS) -m "spark and not slow and not smoke"

# Each child process leaves a data file of its own; those of a run are combined at its end.
coverage: LIMIT_S := 3600
coverage: $(READY)
	@rm -f .coverage .coverage.*
	$(PLAIN_TESTS) -m "not slow and not spark" $(COVERED)
	$(SPARK_TESTS) -m "spark and not slow" $(COVERED) --cov-append
	$(BIN)/coverage report

test-all: LIMIT_S := 10800
test-all: lint
	$(PLAIN_TESTS) -m "not spark"
	$(SPARK_TESTS) -m spark

bench: $(READY)
	$(BIN)/python benchmarks/planning.py
	$(BIN)/python benchmarks/turns.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/simulator.py
	$(BIN)/python benchmarks/fpd_figures.py

bench-spark: $(READY)
	$(BIN)/python benchmarks/host_alone.py
	$(BIN)/python benchmarks/encryption.py
	$(BIN)/python benchmarks/node_waits.py
	$(BIN)/python benchmarks/node_measures.py
	$(BIN)/python benchmarks/state_size.py
	$(BIN)/python benchmarks/due_together.py
	@for name in chain rescale batches steps faults kills cases commits allocations loop fpd traffic vld_bulk overhead throughput network recovery once peers wordcount nodes node_death nodes_steps; do \
	  echo; echo "benchmarks/spark_$$name.py"; $(BIN)/python benchmarks/spark_$$name.py || exit 1; done

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	$(BIN)/python tests/documents.py

lock:
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@command -v uv >/dev/null || $(BIN)/python -m pip install --quiet uv==$(UV_VERSION)
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-find-links --no-emit-index-url --extra avro --extra databases --extra encrypt --extra parquet --extra plot --extra simulate --extra spark --extra vld \
	  --group dev \
	  pyproject.toml -o requirements.txt

clean:
	rm -rf .venv build dist .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis
