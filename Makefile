# Every target sets itself up: a virtual environment in .venv, made anew when the pins change.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
OUT ?= out
TESTS ?= tests
# What starts servers, clusters and kills, reads real tables, or runs every page: some ten minutes.
SLOW := tests/process tests/server tests/cluster tests/docs tests/data tests/research \
	tests/operate/test_delivery.py tests/queries/test_kinds.py tests/noise/test_channels.py \
	tests/noise/test_answer_integer.py tests/planning/test_targets.py tests/spec/test_row_local.py \
	tests/noise/test_linear.py tests/noise/test_answer_laws.py tests/queries/test_attribute.py \
	tests/queries/test_statement.py tests/operate/test_two_copies.py tests/budget/test_claims.py \
	tests/verification/test_forgeries.py tests/budget/test_rules.py tests/noise/tables \
	tests/planning/test_together.py tests/planning/test_unused_budget.py \
	tests/noise/composed/test_share.py tests/exact/tables/test_least_squares.py \
	tests/exact/statistics/test_joint_quantiles.py tests/verification/test_standalone.py \
	tests/verification/test_tabulation_forgeries.py tests/planning/tabulations \
	tests/cli/test_tabulations.py tests/queries/tabulations tests/bundle/test_drawn.py
# One more than there are cores: some tests wait for servers.
WORKERS ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-slow lint types check check-all mutants bench year site clean

demo: .venv/ready
	@rm -rf $(OUT)/demo $(OUT)/demo.key && mkdir -p $(OUT)
	@echo "A utility publishes the peak load of 12 circuits, 1,416 homes, without giving one home away."
	@$(BIN)/dp-release ledger key new $(OUT)/demo.key
	@$(BIN)/dp-release ledger init --out $(OUT)/demo --key $(OUT)/demo.key --origin example.org/demo \
		--scope lcl-2013:4:0.001 | sed -n 's/^key *//p' > $(OUT)/demo.pub
	@$(BIN)/python -m flows.release data/ami.yaml --out $(OUT)/demo --key $(OUT)/demo.key
	@echo "Anybody who has the curator's key checks it again:"
	@$(BIN)/dp-release verify $(OUT)/demo --trust $(OUT)/demo.pub

# Hundreds of processes import this package; without byte code each would compile it anew.
test test-slow: export PYTHONDONTWRITEBYTECODE :=
test test-slow: export OPENBLAS_NUM_THREADS := 1
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist load --maxschedchunk 1
test: .venv/complete
	$(PYTEST) $(TESTS) $(if $(filter tests,$(TESTS)),$(addprefix --ignore=,$(SLOW)))

test-slow: .venv/complete
	$(PYTEST) $(SLOW)

lint: .venv/complete
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/complete
	$(BIN)/mypy
	$(BIN)/mypy tests benchmarks data

check: lint types test

check-all: check test-slow

# About an hour for all; SAMPLE=400 takes so many at random, MODULES=release/budget those of a room.
mutants: export OPENBLAS_NUM_THREADS := 1
mutants: .venv/ready
	@$(BIN)/python -m tests.mutants $(MODULES) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

# The wheel leaves research/ out; a benchmark measures the papers' program from it.
bench: export PYTHONPATH := $(CURDIR)
bench: .venv/complete
	@$(INSTALL) '.[bench]'
	@for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

year: .venv/complete
	@echo "A year of nightly releases, with kills and a machine that is put back in time: some minutes."
	@$(BIN)/python -m tests.year $(RULE)

site: .venv/ready
	@$(INSTALL) '.[site]'
	@$(BIN)/python -m mkdocs build --strict --quiet
	@echo "out/site/index.html"

clean:
	rm -rf .venv out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("dp-release needs Python 3.11 or later; say make PYTHON=...") if sys.version_info < (3, 11) else None'
	@echo "Setting up .venv (once; about a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(INSTALL) '.[fast,flows,dev]'
	@touch $@

# What the demo can do without: a cluster.
.venv/complete: .venv/ready
	@echo "Adding Spark for the tests (once; about two minutes) ..."
	@$(INSTALL) '.[spark]'
	@touch $@
