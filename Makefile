# Every target sets itself up: a virtual environment in .venv, made anew when the locks change.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
OUT ?= out
TESTS ?= tests
# What starts servers, clusters and kills, reads real tables, runs every page, or searches long.
SLOW := $(shell cat tests/slow.txt)
# One more than there are cores: some tests wait for servers, most of them among the slow ones.
WORKERS ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))
test-slow: WORKERS := $(shell echo $$(($(WORKERS) + 1)))
# The lock of the Python in .venv: each file that pip fetches has a hash there. pip does not resolve,
# because the lock holds all that each extra needs.
# All tests together import four in ten of the modules of the libraries: byte code is written on use.
PIP := $(BIN)/python -m pip install --quiet --no-deps --no-compile
INSTALL = $(BIN)/python -S -m supply pins $(1) > .venv/pins.txt && $(PIP) --require-hashes --requirement .venv/pins.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Hundreds of processes import this package; without byte code each would compile it anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-slow test-nightly installs lint types check check-all street bench year proofs verifier site clean

demo: .venv/ready
	@rm -rf $(OUT)/demo
	@$(BIN)/dp-release demo --out $(OUT)/demo
	@echo "The census of the samples as a Prefect flow, charged to the same ledger:"
	@$(BIN)/python -m flows.run data/persons.yaml --out $(OUT)/demo/out --key $(OUT)/demo/demo.key

test test-slow test-nightly: export OPENBLAS_NUM_THREADS := 1
# A file at a time, as tests/conftest.py orders them: what its tests share is then made once.
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
test: .venv/complete
	$(PYTEST) $(TESTS) $(if $(filter tests,$(TESTS)),$(addprefix --ignore=,$(SLOW)))

test-slow: .venv/complete
	$(PYTEST) $(SLOW)

# All of the long lists, and what takes minutes: some hours.
test-nightly: export EVERY := 1
test-nightly: test test-slow

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

# mypy has a core to itself while the tests have the others.
check-all: .venv/complete
	$(MAKE) --jobs 2 check
	$(MAKE) test-slow

# Ordinary tables and ordinary wishes, made at random: seven seconds of a core each. SEED=1 makes the same
# ones again; without it the seed is new, and printed.
CASES ?= 1000
street: export OPENBLAS_NUM_THREADS := 1
street: .venv/ready
	@$(BIN)/python -m tests.street --cases $(CASES) --workers $(shell nproc 2>/dev/null || echo 2) $(if $(SEED),--seed $(SEED))

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

# The verifier as one file of the standard library: the same bytes wherever it is made.
verifier:
	@$(PYTHON) -S -m supply verifier $(OUT)/dp-release-verify.pyz

site: .venv/ready
	@$(call INSTALL,site)
	@$(BIN)/python -m mkdocs build --strict
	@echo "out/site/index.html"

clean:
	rm -rf .venv out build *.egg-info */*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/ready: pyproject.toml dp_release_audit/pyproject.toml research/pyproject.toml $(wildcard supply/python*.txt)
	@$(PYTHON) -c 'import sys; sys.exit("dp-release needs Python 3.11 or later; say make PYTHON=...") if sys.version_info < (3, 11) else None'
	@echo "Setting up .venv (once; about a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(call INSTALL,fast flows dev)
	@$(PIP) --editable . --editable dp_release_audit --editable research
	@touch $@

# What the demo can do without: a cluster, a database, a browser.
.venv/complete: .venv/ready
	@echo "Adding Spark, a database, a browser driver and the site for the tests (once; about two minutes) ..."
	@$(call INSTALL,browser postgresql site spark)
	@touch $@
