# Vedette. `make demo` and `make test` do all the set-up that they need: Python 3.11 or newer, make
# and a package index are enough.
PYTHON ?= python3
PORT ?= $(or $(VEDETTE_PORT),8000)

VENV := .venv
PY := $(VENV)/bin/python
UV := $(VENV)/bin/uv
NPM := $(PY) -m webapp.platform.node

FRONTEND_SOURCES := $(shell find frontend -name node_modules -prune -o -type f ! -name openapi.json -print 2>/dev/null)

API_SOURCES := $(shell find webapp engine -name '*.py' 2>/dev/null)

ENGINE_SOURCES := $(shell find engine -name '*.py' 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help setup demo up cluster test test-frontend check docs bench clean
.DELETE_ON_ERROR:

help:  ## this text
	@echo "Vedette: continuous queries over streams of moving things."
	@echo
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "%-22s %s\n", $$1, $$2}'

setup: $(VENV)/synced  ## install everything the project needs into .venv and frontend/node_modules
	@$(MAKE) -s --no-print-directory -j3 $(VENV)/kernels $(VENV)/classes static/build/built

demo: setup  ## run everything on this machine with live demo feeds; prints the address and a log-in
	VEDETTE_PORT=$(PORT) $(PY) -m webapp.platform.demo

up: setup  ## the same without demo feeds; RESTORE=FILE begins with a backup
	VEDETTE_PORT=$(PORT) $(PY) -m webapp.platform.demo --no-feeds $(if $(RESTORE),--restore "$(RESTORE)")

cluster: setup  ## as on several machines: Spark master and four workers, Kafka, S3 store, two web servers, two ingests
	VEDETTE_PORT=$(PORT) VEDETTE_VAR=$(or $(VEDETTE_VAR),$(CURDIR)/var/cluster) $(PY) -m webapp.platform.cluster

test: setup test-frontend  ## all tests, with real PostgreSQL, Redis, Spark and a browser; PYTEST=... runs those alone
	$(PY) -m $(if $(PYTEST),pytest $(PYTEST),tests.side_by_side)

test-frontend: setup frontend/openapi.json  ## the front end's own tests
	$(NPM) test

check: setup  ## ruff, mypy, tsc, eslint; known vulnerabilities of both locks; writes the SBOM to var/sbom
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(NPM) run check
	$(PY) -m webapp.platform.dependencies

docs: setup  ## the pages of docs/ as a site in var/docs, with the API's reference
	VIRTUAL_ENV= UV_PROJECT_ENVIRONMENT=$(CURDIR)/$(VENV) $(UV) sync --locked --inexact --group docs --python $(CURDIR)/$(PY)
	SECRET_KEY=$$($(PY) -c 'import secrets; print(secrets.token_hex(32))') $(PY) manage.py spectacular --file docs/openapi.yaml
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet

bench: setup  ## the measurements that docs/ and README.md quote
	$(PY) -m bench

clean:  ## remove what set-up and running made; var/ holds the demo's data
	rm -rf $(VENV) frontend/node_modules static/build static/collected var .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find engine webapp tests bench -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(UV):
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Vedette needs Python 3.11 or newer; $(PYTHON) is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV) || { echo "The module venv is missing: install it (Debian: python3-venv), or name another Python: make PYTHON=..." >&2; exit 1; }
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check uv

# --inexact leaves uv itself in place.
$(VENV)/synced: pyproject.toml uv.lock | $(UV)
	VIRTUAL_ENV= UV_PROJECT_ENVIRONMENT=$(CURDIR)/$(VENV) $(UV) sync --locked --inexact --python $(CURDIR)/$(PY)
	@touch $@

$(VENV)/kernels: $(ENGINE_SOURCES) $(VENV)/synced
	@echo "Compiling the engine's kernels: two to three minutes, once."
	@$(PY) -m webapp.demo.kernels
	@touch $@

$(VENV)/classes: engine/runtime/spark_classes.py webapp/demo/spark_classes.py $(VENV)/synced
	@echo "Writing Spark's classes as jobs read them: half a minute, once."
	@$(PY) -m webapp.demo.spark_classes
	@touch $@

frontend/node_modules/installed: frontend/package.json frontend/package-lock.json | $(VENV)/synced
	$(NPM) ci --no-audit --no-fund
	@touch $@

# Its tests compare what pages read with what the server says it sends.
frontend/openapi.json: $(API_SOURCES) $(VENV)/synced
	SECRET_KEY=$$($(PY) -c 'import secrets; print(secrets.token_hex(32))') $(PY) manage.py spectacular --validate --fail-on-warn --format openapi-json --file $@

static/build/built: $(FRONTEND_SOURCES) frontend/node_modules/installed
	$(NPM) run build
	@mkdir -p $(@D) && touch $@
