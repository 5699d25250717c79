# Each target makes the virtual environment .venv and installs what it needs; all that must be there
# is Python 3.11 or newer, make and a C++ compiler. With PYTHON=python3.13, TORCH=2.15.0 or both, it
# uses another one, in .venvs.

HOST_PYTHON := $(shell command -v python3.11 || command -v python3)
PYTHON ?= $(HOST_PYTHON)
TORCH ?= $(shell sed -n 's/^torch==//p' constraints.txt)
ARGS ?=
ifneq ($(filter command,$(origin PYTHON) $(origin TORCH)),)
COMBINATION := $(notdir $(PYTHON))-torch$(TORCH)
VENV := .venvs/$(COMBINATION)
BUILD := $(VENV)/build
endif
VENV ?= .venv
BUILD ?= build

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check
NATIVE := $(wildcard src/framejit/native/*.cpp src/framejit/native/*.h)
SOURCES := $(shell find src -name '*.py' -o -name '*.toml' -o -name '*.jinja')

.PHONY: help demo test fuzz test-sanitize matrix wheel lint bench docs clean distclean

help: ## this list
	@echo "usage: make TARGET [ARGS=\"...\"]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.installed ## the README's example, then BERT through Inductor (ARGS=--graphs-only: no BERT)
	@$(BIN)/python -W ignore examples/quickstart.py $(ARGS)

test: $(VENV)/.installed ## the tests (ARGS="tests/api -x": some; ARGS="-m slow": the long ones; make fuzz: at random)
	$(BIN)/python -m pytest --numprocesses=auto --maxprocesses=8 --dist=worksteal $(ARGS)

fuzz: $(VENV)/.installed ## 1,300 programs written at random, and a break before every instruction of some tests
	$(BIN)/python -m pytest --numprocesses=auto --maxprocesses=8 --dist=worksteal -m generated \
		$(or $(ARGS),tests/fuzz tests/language/test_break_everywhere.py)

# Python's own allocator would hide what happens to freed objects; torch's memory is not ours to check.
SANITIZED := ASAN_OPTIONS=detect_leaks=0:alloc_dealloc_mismatch=0:detect_odr_violation=0 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 PYTHONMALLOC=malloc PYTHONPATH=$(BUILD)/sanitize \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)"

test-sanitize: $(VENV)/.installed ## the C++ part under AddressSanitizer and UndefinedBehaviorSanitizer
	FRAMEJIT_SANITIZE=1 $(BIN)/python setup.py -q build --build-lib $(BUILD)/sanitize --build-temp $(BUILD)/sanitize-objects
	$(SANITIZED) $(BIN)/python -m pytest --timeout=600 $(or $(ARGS),tests/native)

matrix: ## a part of the tests with each release of Python and torch; writes docs/releases.md
	$(HOST_PYTHON) tests/matrix $(ARGS)

wheel: $(VENV)/.installed ## the sources, and a wheel for this Python and torch, in dist
	@$(PIP) install -c constraints.txt build
	$(BIN)/python -m build --no-isolation --outdir dist

# Without ruff's cache: a new file changes which imports of others are first-party.
lint: $(VENV)/.installed ## ruff (rules and format) and mypy
	$(BIN)/ruff check --no-cache src tests examples benchmarks
	$(BIN)/ruff format --check src tests examples benchmarks
	$(BIN)/mypy

bench: $(VENV)/.installed ## the figures of the README, against torch.compile in the same run
	$(BIN)/python -W ignore benchmarks/importtime.py
	$(BIN)/python -W ignore benchmarks/overhead.py
	$(BIN)/python -W ignore benchmarks/capture.py
	$(BIN)/python -W ignore benchmarks/steady.py

docs: $(VENV)/.installed ## the site, in build/site; warnings are errors
	@$(PIP) install -c constraints.txt -e ".[docs]" --no-build-isolation
	$(BIN)/python docs/make_problems.py --check
	$(BIN)/python docs/make_switches.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

clean: ## remove what was built; the environment stays
	rm -rf build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f src/framejit/native/*.so $(VENV)/.installed
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove the environments, too
	rm -rf .venv .venvs

ifndef COMBINATION
# torch comes first: the C++ extension is built against it.
$(VENV)/.torch: constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing torch (once) ..."
	@$(PIP) install -c constraints.txt torch numpy setuptools wheel
	@touch $@

$(VENV)/.installed: $(VENV)/.torch constraints.txt pyproject.toml setup.py $(NATIVE)
	@echo "building and installing framejit (again only when the C++ part changes) ..."
	@$(PIP) install -c constraints.txt --no-build-isolation -e ".[test,lint]"
	@touch $@
else
$(VENV)/.installed: constraints.txt pyproject.toml setup.py $(NATIVE) $(SOURCES)
	@$(HOST_PYTHON) tests/matrix/environments.py $(PYTHON) $(TORCH) $(VENV)
	@touch $@
endif
