.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test test-here test-cluster test-plain test-slow test-gpu torture lint types format docs hooks clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Recollect needs Python 3.11 or later; name one with make PYTHON=python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing what is missing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY) ## Train on bundled photographs, damage, recover, score, report (about three minutes)
	@$(BIN)/recollect demo

test: $(READY) ## Run the tests
	@$(MAKE) --no-print-directory --keep-going --jobs 2 test-here test-cluster

test-here test-cluster: export PYTHONDONTWRITEBYTECODE := # compiling tests and package takes seconds a process

test-here: $(READY)
	@$(BIN)/python -m pytest -n 2 --dist worksteal --ignore tests/distributed

test-cluster: $(READY) # mostly waits for Ray; one cluster at a time
	@log=$$(mktemp) && { $(BIN)/python -m pytest tests/distributed >$$log 2>&1; code=$$?; cat $$log; rm $$log; exit $$code; }

test-plain: $(READY) ## Run the tests of methods, engine and audits with recollect/accelerate removed
	@$(BIN)/python -m tests.without_acceleration

test-slow: $(READY) ## Run the tests that take minutes, or those of a folder (ONLY=tests/benchmarks)
	@$(BIN)/python -m pytest -m slow $(ONLY)

test-gpu: $(READY) ## Run the tests that need a CUDA device
	@$(BIN)/python -m pytest -m gpu

torture: $(READY) ## Kill, fuzz, edit and starve for MINUTES (60), from a SEED that is printed; failures go to torture/
	@$(BIN)/python -m tests.torture --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED)) $(if $(RECORD),--record)

lint: $(READY) ## Check style
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(READY) ## Check types
	@$(BIN)/mypy

format: $(READY) ## Format the code
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

docs: $(READY) ## Run notebooks and tutorials, and build all pages as a site, in site/
	@$(BIN)/python docs/notebook_runs.py
	@$(BIN)/python docs/page_runs.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict && echo "The site: site/index.html. Its search needs a server: python3 -m http.server -d site"

hooks: $(READY) ## Have git check style and types before each commit
	@$(BIN)/pre-commit install

clean: ## Remove the virtual environment, caches and the site
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build site *.egg-info
