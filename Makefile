# Every target sets itself up: a virtual environment in .venv, made anew when the locks change.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
OUT ?= out
TESTS ?= tests
# What starts servers, clusters and kills, reads real tables, runs every page, or searches long: most
# of an hour.
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
	tests/cli/test_tabulations.py tests/queries/tabulations tests/bundle/test_drawn.py \
	tests/exact/composition tests/noise/test_select.py tests/verification/test_tabulation_runs.py \
	tests/verification/test_standalone_conditions.py tests/verification/test_standalone_forged.py \
	tests/operate/rehearsal tests/audit \
	tests/cli/test_sentences.py tests/planning/test_plan.py tests/bundle/tabulations \
	tests/bundle/test_nearness.py tests/analysis/test_combined.py tests/noise/test_solve.py \
	tests/verification/test_provenance.py tests/verification/test_composed.py \
	tests/noise/test_published_laws.py tests/noise/test_demands.py tests/noise/test_least.py \
	tests/operate/test_deploy.py tests/operate/test_notices.py \
	tests/verification/test_tabulation_privacy.py tests/queries/test_profiles.py \
	tests/noise/test_work.py tests/noise/test_processes.py tests/budget/test_snapshots.py \
	tests/planning/test_recommend.py tests/queries/test_on_statistic.py tests/analysis/test_unbiased.py \
	tests/tables/test_meaning.py tests/tables/test_postgresql.py tests/tables/test_bad_data.py \
	tests/verification/test_integer_files.py tests/verification/test_hostile.py \
	tests/verification/test_statistic_files.py tests/verification/test_profiles.py \
	tests/budget/test_profiles.py tests/budget/test_proportion.py tests/noise/composed/test_search.py \
	tests/spec/test_expressions.py tests/exact/statistics/test_quantile_tree.py
# One more than there are cores: some tests wait for servers.
WORKERS ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))
# The lock of the Python in .venv: each file that pip fetches has a hash there. pip does not resolve,
# because the lock holds all that each extra needs.
PIP := $(BIN)/python -m pip install --quiet --no-deps
INSTALL = $(BIN)/python -S -m supply pins $(1) > .venv/pins.txt && $(PIP) --require-hashes --requirement .venv/pins.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-slow installs lint types check check-all mutants bench year proofs site clean

demo: .venv/ready
	@rm -rf $(OUT)/demo
	@$(BIN)/dp-release demo --out $(OUT)/demo
	@echo "The census of the samples as a Prefect flow, charged to the same ledger:"
	@$(BIN)/python -m flows.run data/persons.yaml --out $(OUT)/demo/out --key $(OUT)/demo/demo.key

# Hundreds of processes import this package; without byte code each would compile it anew.
test test-slow: export PYTHONDONTWRITEBYTECODE :=
test test-slow: export OPENBLAS_NUM_THREADS := 1
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist load --maxschedchunk 1
test: .venv/complete
	$(PYTEST) $(TESTS) $(if $(filter tests,$(TESTS)),$(addprefix --ignore=,$(SLOW)))

test-slow: .venv/complete
	$(PYTEST) $(SLOW)

# Some minutes: every extra from the locks, in a fresh environment.
installs: .venv/complete
	INSTALLS=1 $(BIN)/python -m pytest tests/process/test_wheel.py

lint: .venv/complete
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/complete
	$(BIN)/mypy
	$(BIN)/mypy tests benchmarks data

check: lint types test

check-all: check test-slow

# Tests are traced first, which takes an hour of a processor; SAMPLE=400 takes so many mutants at
# random, MODULES=release/budget those of a room.
mutants: export OPENBLAS_NUM_THREADS := 1
mutants: .venv/ready
	@$(BIN)/python -m tests.mutants $(MODULES) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

# A benchmark measures the papers' program from the checkout's research/.
bench: export PYTHONPATH := $(CURDIR)
bench: .venv/complete
	@$(call INSTALL,bench)
	@for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

year: .venv/complete
	@echo "A year of nightly releases, with kills and a machine that is put back in time: some minutes."
	@$(BIN)/python -m tests.year $(RULE)

# Needs coqc (Debian's package coq), and nothing of .venv: about a minute.
proofs:
	@$(PYTHON) proofs/check.py $(OUT)/proofs

site: .venv/ready
	@$(call INSTALL,site)
	@$(BIN)/python -m mkdocs build --strict
	@echo "out/site/index.html"

clean:
	rm -rf .venv out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/ready: pyproject.toml $(wildcard supply/python*.txt)
	@$(PYTHON) -c 'import sys; sys.exit("dp-release needs Python 3.11 or later; say make PYTHON=...") if sys.version_info < (3, 11) else None'
	@echo "Setting up .venv (once; about a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(call INSTALL,fast flows dev)
	@$(PIP) --editable .
	@touch $@

# What the demo can do without: a cluster, a database, a browser.
.venv/complete: .venv/ready
	@echo "Adding Spark, a database, a browser driver and the site for the tests (once; about two minutes) ..."
	@$(call INSTALL,browser postgresql site spark)
	@touch $@
