# The only list of commands. `make` alone prints it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# Python keeps what it compiles, whatever the shell says: a server is seven processes, a test may start twenty, and each
# would compile our modules anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup console run test unit system lint types simulate fuzz openapi chaos bench fmt lock docs sdks dist clean

help: ## list the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# What a server needs, and no more: `make run` waits for this. pip would compile every module; Python compiles
# those that a server imports.
$(BIN)/corvo: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Corvo needs Python 3.11 or newer: make PYTHON=python3.11"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing what a server needs into $(VENV)"
	@$(PIP) --no-compile --require-hashes -r requirements.lock
	@$(PIP) --no-build-isolation --no-deps -e .
	@touch $(BIN)/corvo

# The tools of developers, and what is by choice on a server, on top of it.
$(VENV)/with-tools: $(BIN)/corvo requirements-dev.lock
	@echo "installing the tools for tests, lint and types into $(VENV)"
	@$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@

setup: console ## build .venv and the console: all that the commands below need

# Nothing to do unless its sources or the API have changed.
console: $(VENV)/with-tools ## build the console (gateway/console/web); `setup` does it too
	@$(BIN)/python -m gateway.console.build $(CONSOLE)

run: $(BIN)/corvo ## start a server on http://localhost:8080 with its data in ./data
	@exec $(BIN)/corvo server

# Workers share the tests (tests/sharing.py).
PYTEST := $(BIN)/python -m pytest -n $(or $(WORKERS),2)

test: setup ## every test; WORKERS=0 for one after another
	@$(PYTEST)

unit: setup ## the tests that start no process
	@$(PYTEST) -m "not system"

system: setup ## the tests that start real processes
	@$(PYTEST) -m system

lint: setup ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup ## mypy, strict
	@$(BIN)/mypy

simulate: setup ## whole Raft clusters from seeds: SEEDS=10000, or SEED=4711 to replay one
	@$(BIN)/python -m tests.simulation.run $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),1000))

fuzz: setup ## look for inputs that break a parser: FUZZ_SECONDS=3600 each, FUZZ="jq http" for some of them
	@$(PIP) --require-hashes -r requirements-fuzz.lock
	@$(BIN)/python -m tests.fuzz.run $(FUZZ) --seconds $(or $(FUZZ_SECONDS),3600)

openapi: setup ## requests made from /openapi.json, with a key of each role: EXAMPLES=100 for each endpoint
	@OPENAPI_EXAMPLES=$(or $(EXAMPLES),100) $(BIN)/python -m pytest tests/system/test_openapi_calls.py

chaos: setup ## kill processes of a server under load and check every promise
	@$(BIN)/python -m chaos.kill_shards

bench: setup ## measure this product and the prototype in one run
	@$(BIN)/python -m benchmarks.run

fmt: setup ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: setup ## write docs/reference, client methods and plain commands anew from the code
	@$(BIN)/python -m corvo.cli.derive_client
	@$(BIN)/python -m corvo.cli.derive
	@$(BIN)/python -m docs.generate

# Each lock keeps to the versions of the one before it: dev holds image, and image holds what a server needs.
LOCK := $(BIN)/pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-emit-index-url \
	--no-emit-find-links --build-deps-for editable pyproject.toml --output-file

lock: setup ## write the lock files anew from pyproject.toml
	@$(PIP) pip-tools
	@$(LOCK) requirements.lock
	@$(LOCK) requirements-image.lock --constraint requirements.lock --extra fast --extra postgres
	@$(LOCK) requirements-dev.lock --constraint requirements-image.lock --extra dev
	@$(LOCK) requirements-fuzz.lock --constraint requirements-dev.lock --extra fuzz

sdks: setup ## build the libraries of every language whose toolchain is here, and play every scenario with each
	@$(BIN)/python -m sdk.conformance

# Each wheel is built from its own sdist, so the sdists are complete too.
dist: setup ## build wheels and sdists of corvo-server and corvo-client into ./dist
	@rm -rf dist
	@for project in . sdk/python; do $(BIN)/python -m build --no-isolation --outdir dist $$project > build.log 2>&1 || { cat build.log; exit 1; }; done
	@rm -f build.log
	@$(BIN)/twine check --strict dist/*

clean: ## remove what the other commands made
	@rm -rf $(VENV) data build dist *.egg-info gateway/console/built gateway/console/web/node_modules gateway/console/web/src/generated sdk/python/build sdk/python/*.egg-info .mypy_cache .ruff_cache .hypothesis
