# Each target first sets up what it needs (git, make and Python 3.11 or later suffice); the second call is instant.

.PHONY: help setup quickstart test test-long test-faults fuzz lint docs lock

help:
	@echo "make setup       create .venv with bench in it"
	@echo "make quickstart  a real comparison table in minutes, no download of data"
	@echo "make test        the tests"
	@echo "make test-long   the tests that take minutes"
	@echo "make test-faults runs killed, cut off, out of room and damaged; takes half an hour"
	@echo "make fuzz        10,000 damaged suites, run folders and results files; takes a quarter of an hour"
	@echo "make lint        ruff and mypy"
	@echo "make docs        the pages in docs/methods again"
	@echo "make lock        resolve the versions in requirements.txt again"

setup: .venv/.stamp

.venv/.stamp: requirements.txt pyproject.toml scripts/setup.sh
	@scripts/setup.sh

quickstart: setup
	@echo "quickstart: bench run --suite quickstart --tuned"
	@.venv/bin/bench run --suite quickstart --tuned

# One thread per process, as two share the cores; loadgroup keeps tests on one MLflow database in one process.
test: setup
	@echo "test: pytest on two processes"
	@OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n 2 --dist loadgroup

test-long: setup
	@echo "test-long: the tests marked long"
	@.venv/bin/python -m pytest -m long

# What they count goes into the page if all end well; delete it to have it made anew.
test-faults: setup
	@echo "test-faults: 100 kills, lost nodes, a cut network, damaged bytes, full disks and other faults -> docs/faults.md"
	@BENCH_FAULT_REPORT=docs/faults.md OMP_NUM_THREADS=1 .venv/bin/python -m pytest -m faults tests/faults

# 2,000 inputs for each of the five tests; the usual tests have 40 of each.
fuzz: setup
	@echo "fuzz: 10,000 hostile inputs"
	@BENCH_FUZZ=2000 BENCH_FAULT_REPORT=docs/faults.md OMP_NUM_THREADS=1 .venv/bin/python -m pytest \
		tests/bench/suite/test_hostile_suites.py tests/bench/results/test_hostile_records.py

lint: setup
	@echo "lint: ruff check, ruff format, mypy"
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy

docs: setup
	@echo "docs: methods, search spaces and results -> docs/methods"
	@.venv/bin/bench docs

# Names and versions only, for every Python from 3.11 on; pins that still fit are kept.
lock: setup
	@echo "lock: pyproject.toml -> requirements.txt"
	@PATH="$(CURDIR)/.venv/bin:$$PATH" uv pip compile --quiet --universal --python-version 3.11 --extra dev \
		--no-header --no-annotate \
		pyproject.toml --output-file requirements.txt
