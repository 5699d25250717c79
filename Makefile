# make demo | test | lint | bench | clean
# Each target makes the virtual environment .venv and installs what it needs; all that must be there
# is Python 3.11, make and a C++ compiler. More arguments: make test ARGS="tests/api -x".

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check
NATIVE := $(wildcard src/framejit/native/*.cpp src/framejit/native/*.h)

.PHONY: demo test lint bench clean distclean

demo: $(VENV)/.installed
	@$(BIN)/python -W ignore examples/quickstart.py $(ARGS)

test: $(VENV)/.installed
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.installed
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/mypy

bench: $(VENV)/.installed
	$(BIN)/python -W ignore benchmarks/importtime.py
	$(BIN)/python -W ignore benchmarks/overhead.py $(ARGS)
	$(BIN)/python -W ignore benchmarks/capture.py $(ARGS)

clean:
	rm -rf build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f src/framejit/native/*.so $(VENV)/.installed
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)

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
