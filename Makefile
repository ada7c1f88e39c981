# Needs make and Python >= 3.11; everything else goes into .venv. Another interpreter: make PYTHON=python3.12 test
PYTHON ?= python3
.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-lowest test-processors test-other-processor lint format docs wheel-check \
	release-check campaign clean

# All paths are relative and tools run as `python -m`, so that a folder name with spaces does no harm.
PY := .venv/bin/python
PIP = $(PY) -m pip -q --disable-pip-version-check
# What was installed, and for which folder: a tree that was moved installs itself again.
HERE := $(shell pwd | cksum | cut -d ' ' -f 1)
INSTALLED := .venv/installed-$(HERE)
INSTALLED_TEST := .venv/installed-test-$(HERE)
INSTALLED_DOCS := .venv/installed-docs-$(HERE)
INSTALLED_RELEASE := .venv/installed-release-$(HERE)
PYTEST = $(PY) -m pytest -n auto --maxprocesses=8 --durations=10 --durations-min=5

# The lowest versions that pyproject.toml allows have an environment of their own. They have wheels for the lowest
# Python, not for the newest: it is python3.11 where there is one.
LOWEST := .venv-lowest/installed-$(HERE)
test-lowest $(LOWEST): PY := .venv-lowest/bin/python
test-lowest $(LOWEST): PYTHON := $(shell python3.11 -c 'print("python3.11")' 2>/dev/null || echo "$(PYTHON)")

# One thread for each test process: the processes already share the cores.
test test-all test-lowest docs: export OPENBLAS_NUM_THREADS = 1
test test-all test-lowest docs: export OMP_NUM_THREADS = 1
test test-all test-lowest docs: export MKL_NUM_THREADS = 1

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-20s %s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED) ## install, and fill in the labels of scikit-learn's digits from 100 of them
	$(PY) examples/digits.py

test: $(INSTALLED_TEST) ## install, and run the tests (but those marked slow)
	$(PYTEST)

test-all: $(INSTALLED_TEST) ## run all tests (but those of the documentation)
	$(PYTEST) -m "not docs"

test-lowest: $(LOWEST) ## run the tests with the lowest versions that pyproject.toml allows
	$(PYTEST)

# A subset: make test-processors CORES="Haswell baseline" THREADS="1" TESTS="tests/kernels"
CORES ?=
THREADS ?= 1 2
TESTS ?=
test-processors: $(INSTALLED_TEST) ## run the tests as on every processor that this one can play (hours)
	$(PY) .ci/processors.py --cores "$(CORES)" --threads "$(THREADS)" $(TESTS)

# Tests of words, formats, copies, files, seeds and interfaces say nothing about rounding.
COMMON = bad_input callbacks copies docstrings interruption label_formats linear_time partitions progress \
	scikit_learn_checks seeds selection
NOT_NUMERICAL = $(COMMON:%=common/test_%.py) estimators/auto/test_classifier.py
test-other-processor: $(INSTALLED_TEST) ## run the numerical tests as on one other processor, chosen by the commit
	$(PY) .ci/processors.py --other -m "not slow" tests/kernels tests/solvers tests/estimators tests/common \
	$(NOT_NUMERICAL:%=--ignore=tests/%)

lint: $(INSTALLED_TEST) ## check style and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy src

format: $(INSTALLED_TEST) ## put the code into the house format
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

docs: $(INSTALLED_DOCS) ## build the documentation into docs/_build/html, and check it (no network is needed)
	$(PY) -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	$(PYTEST) -m docs tests/docs
	@echo "open docs/_build/html/index.html"

wheel-check: $(INSTALLED_TEST) ## build the wheel, install it elsewhere, run the README's first example and a user's walk
	rm -rf dist
	$(PIP) wheel --no-deps --wheel-dir dist .
	@set -e; root=$$(pwd); scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT INT TERM; \
	$(PY) -m venv "$$scratch/venv"; \
	"$$scratch/venv/bin/python" -m pip -q --disable-pip-version-check install dist/*.whl; \
	cd "$$scratch"; \
	echo "the README's first example, with nothing but the wheel:"; \
	"$$scratch/venv/bin/python" -I "$$root/.ci/readme_example.py" "$$root/README.md"; \
	"$$scratch/venv/bin/python" -I -c "from kernelweave import datasets, papers; print(len(datasets.list_datasets()), \
	'data sets,', sum(len(paper.published()) for paper in papers.PAPERS.values()), 'printed tables and figures')"; \
	echo "a new user's walk, with the extras cli, io and report:"; \
	wheel=$$(ls "$$root"/dist/*.whl); \
	"$$scratch/venv/bin/python" -m pip -q --disable-pip-version-check install --no-compile "$$wheel[cli,io,report]"; \
	cd "$$root"; KERNELWEAVE_COMMAND="$$scratch/venv/bin/kernelweave" $(PY) -m pytest -q -m walk tests/test_walk.py

release-check: $(INSTALLED_RELEASE) ## build wheel and sdist twice, compare their bytes, check them, run tests of the sdist
	$(PY) .ci/release.py

# A part of it: make campaign MINUTES=10 PARTS="fits tables" JOBS=4; one case again: make campaign CASE=fits:123
MINUTES ?= 60
PARTS ?=
JOBS ?= 1
CASE ?=
campaign: export OPENBLAS_NUM_THREADS = 1
campaign: export OMP_NUM_THREADS = 1
campaign: $(INSTALLED_TEST) ## attack fits, files, tables and runs at random; the next call goes on (hours in all)
	PYTHONPATH=tests $(PY) -m campaign --minutes $(MINUTES) --parts "$(PARTS)" --jobs $(JOBS) $(if $(CASE),--case $(CASE))

clean: ## remove everything that make has made
	rm -rf .venv .venv-lowest .campaign dist docs/_build docs/gallery docs/api/generated docs/figures/drawn .coverage htmlcov .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests examples benchmarks .ci -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

.venv/bin/python .venv-lowest/bin/python: %/bin/python:
	@command -v "$(PYTHON)" >/dev/null || \
	{ echo "There is no $(PYTHON) here. kernelweave needs Python 3.11 or newer: make PYTHON=/path/to/python"; exit 1; }
	@"$(PYTHON)" -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("kernelweave needs Python 3.11 or \
	newer, and $(PYTHON) is %d.%d. Name a newer one: make PYTHON=python3.12" % v[:2])'
	"$(PYTHON)" -m venv --clear $* || { rm -rf $*; exit 1; }

$(INSTALLED): pyproject.toml | $(PY)
	$(PIP) install -e ".[cli,io]"
	@touch $@

$(INSTALLED_TEST): pyproject.toml | $(PY)
	$(PIP) install -e ".[test]"
	@touch $@

$(INSTALLED_DOCS): pyproject.toml | $(PY)
	$(PIP) install -e ".[docs,test]"
	@touch $@

$(INSTALLED_RELEASE): pyproject.toml | $(PY)
	$(PIP) install -e ".[release,test]"
	@touch $@

$(LOWEST): pyproject.toml .ci/lowest.py | .venv-lowest/bin/python
	$(PY) .ci/lowest.py pyproject.toml > .venv-lowest/lowest.txt
	$(PIP) install --only-binary :all: -c .venv-lowest/lowest.txt -e ".[all,test]"
	@touch $@
