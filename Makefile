# Everything runs in its own virtual environment; the first target that needs it makes it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest
# A file's tests stay together: each of the two processes starts a broker of its own when it needs one.
BESIDE := -n $(or $(JOBS),2) --dist loadfile
# These reach every branch of the core, at 18 s; with all laws under the tracer it would be 55 s.
REACH  := tests/unit/core tests/properties/test_histories.py

.PHONY: help check test sim chaos bench schemas demo dev format clean

help:
	@echo "make demo    the main job on real traces: broker, schedulers, API, workers, a fake provider"
	@echo "make test    every test, on a real broker that it starts itself"
	@echo "make check   format, lint, types, import contracts, schema drift, unit tests, laws, all branches of the core"
	@echo "make sim     simulated worlds: SEED=7, N=200        make chaos   real kills, 20 rounds"
	@echo "make bench   the table of the README; QUICK=1 in a minute and a half"
	@echo "make dev     broker and programs until Ctrl-C       make schemas regenerate the words"

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m schemas.generate --check
	$(BIN)/python -m coverage run -m pytest -q $(REACH) --doctest-modules streams/core
	$(BIN)/python -m coverage report
	$(PYTEST) -q $(BESIDE) tests/unit tests/properties $(REACH:%=--ignore=%) --doctest-modules schemas streams/shell/copies.py streams/shell/clock.py

test: $(READY)
	$(PYTEST) $(BESIDE) $(or $(TIERS),tests)

sim: $(READY)
	$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED)) $(if $(N),--count $(N))

chaos: $(READY)
	@for round in $$(seq 1 $(or $(ROUNDS),20)); do \
		seed=$${SEED:-$$round}; echo "round $$round, seed $$seed"; \
		SEED=$$seed FAULTS=$(or $(FAULTS),20) $(PYTEST) -q tests/chaos tests/integration/test_crash.py || exit 1; \
	done

bench: $(READY)
	$(BIN)/python -m tests.benchmarks $(if $(QUICK),--quick)

schemas: $(READY)
	$(BIN)/python -m schemas.generate

demo: $(READY)
	$(BIN)/evenhand demo $(DEMO)

dev: $(READY)
	$(BIN)/evenhand dev

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) out
