# Every target makes what it needs in .venv, with nothing but a Python from 3.11 on; another one: make PYTHON=python3.12 test

PYTHON ?= python3
# One more than a small machine has cores: some tests wait for a process, a server or a clock.
WORKERS ?= 3
BIN := .venv/bin
DEMO := .[demo]
DEV := .[dev,demo,dbt]
SPARK := .[dev,demo,dbt,dbt-spark,spark]
# uv installs in a third of the time; where it can't be had, or does not find what pip's own settings point at, pip does.
INSTALL = $(1)/python -m pip install --quiet uv && $(1)/uv pip install --quiet --python $(1)/python $(2) \
  || $(1)/python -m pip install --quiet $(2)
# DuckDB plans thousands of short statements with small objects: if more freed ones are kept, a run takes a tenth less.
export GLIBC_TUNABLES ?= glibc.malloc.tcache_count=127

# What is tried with the lowest versions that pyproject.toml allows: both engines and every type that they hand out, the
# catalog and its migrations, and as commands a tree, a lattice, a drafted policy, a wrong one and a job.
LOWEST := .venv-lowest/bin
SMOKE := tests/engines/test_adapters.py tests/test_catalog.py \
  tests/cli/test_run.py::test_a_run_prints_one_object_with_every_documented_key \
  tests/cli/test_run.py::test_init_writes_a_policy_that_runs \
  tests/cli/test_run.py::test_wrong_policies_end_with_2_and_the_remedy \
  tests/methods/generalization/test_lattice_command.py::test_the_summary_tells_levels_score_and_proof \
  tests/cli/test_jobs.py::test_a_job_from_freezing_to_a_violation

.PHONY: demo test test-without-a-method test-lowest lint pictures clean

demo: .venv/installed-demo
	$(BIN)/sqlanon demo

# the fast tier; with SQLANON_TEST_ALL=1 every test
test: .venv/installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder --durations 12

# the program without the method whose turn it is today: the fast tier of all other tests
test-without-a-method: .venv/installed-dev
	$(BIN)/python -m tests.without_method --of-the-day -n $(WORKERS) --dist loadscope --no-loadscope-reorder

test-lowest: .venv-lowest/installed
	$(LOWEST)/python -m pytest -n $(WORKERS) $(SMOKE)

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# those of the README and the documentation; takes Chromium
pictures: .venv/installed-dev
	$(BIN)/python -m docs.make_pictures

clean:
	rm -rf .venv .venv-lowest build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/installed-demo: pyproject.toml | $(BIN)/pip
	$(call INSTALL,$(BIN),--editable '$(DEMO)')
	@touch $@

.venv/installed-dev: pyproject.toml | $(BIN)/pip
	$(call INSTALL,$(BIN),--editable '$(DEV)')
	@touch $@

# half a gigabyte, and it takes Java: the tests of Spark are left out without it
.venv/installed-spark: pyproject.toml | $(BIN)/pip
	$(call INSTALL,$(BIN),--editable '$(SPARK)')
	@touch .venv/installed-dev $@

.venv-lowest/installed: pyproject.toml tests/lowest.py
	$(PYTHON) -m venv .venv-lowest
	$(LOWEST)/python tests/lowest.py > .venv-lowest/constraints.txt
	$(call INSTALL,$(LOWEST),--constraint .venv-lowest/constraints.txt --editable . hypothesis pytest pytest-timeout pytest-xdist)
	@touch $@

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is missing or older than 3.11; name another one: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) can't make virtual environments: it lacks ensurepip." >&2; \
	  echo "On Debian and Ubuntu: apt-get install python3-venv; or name another one: make PYTHON=/path/to/python3.11 ..." >&2; \
	  exit 1; }
	$(PYTHON) -m venv .venv
