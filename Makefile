# Needs Python 3.11 or newer (with venv) and make; everything else is set up here, in .venv.
#   make demo [SECONDS=20 SEED=7]    the whole product in one process
#   make test                        lint, types, tests: what CI runs
#   make bench                       figures of every stage, also as bench.json
#   make chaos [KILLS=100 BROKER_KILLS=20 FUZZ=100000 SEED=7]    workers and brokers killed under load; also as chaos.json
#   make kafka-image                 a real Kafka for the tests, as a Docker image (docs/kafka.md)
#   make image [BASE_IMAGE=…]        the product as a Docker image
#   make screenshots                 the pictures of the operator's page in docs/images, in a Chromium
#   make compose-check               docker-compose.yml built, brought up, checked, taken down (docs/compose.md)

PYTHON ?= python3
SECONDS = 20
SEED = 7
KILLS = 100
BROKER_KILLS = 20
FUZZ = 100000

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := test
.PHONY: demo test bench chaos kafka-image image compose-check screenshots lint types

demo: $(STAMP)
	$(BIN)/wirelessops demo --seconds $(SECONDS) --seed $(SEED)

test: lint types
	$(BIN)/python -m pytest -m "not live" --numprocesses auto --dist loadfile
	$(BIN)/python -m pytest -m live

bench: $(STAMP)
	$(BIN)/wirelessops bench

chaos: $(STAMP)
	$(BIN)/wirelessops chaos --kills $(KILLS) --broker-kills $(BROKER_KILLS) --fuzz $(FUZZ) --seed $(SEED)

kafka-image: $(STAMP)
	PYTHON=$(abspath $(BIN)/python) deploy/kafka/build-image.sh

image:
	docker build -f deploy/image/Dockerfile $(if $(BASE_IMAGE),--build-arg BASE_IMAGE=$(BASE_IMAGE)) -t wirelessops:0.1.0 .

compose-check: $(STAMP)
	PYTHON=$(abspath $(BIN)/python) deploy/compose/check.sh

screenshots: $(STAMP)
	WIRELESSOPS_PICTURES=docs/images $(BIN)/python -m pytest tests/test_page_pictures.py

lint: $(STAMP)
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

# Made anew whenever pyproject.toml is newer; the stamp is written last, so that a broken set-up is never taken for a whole one.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "wirelessops needs Python 3.11 or newer, and '$(PYTHON)' is not: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "'$(PYTHON) -m venv' failed: Python's venv module is needed (Debian: python3-venv)" >&2; exit 1; }
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")' > $(VENV)/dev.txt
	$(PIP) install --editable . --requirement $(VENV)/dev.txt
	@touch $(STAMP)
