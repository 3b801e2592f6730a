# The two commands of a fresh machine are `make demo` and `make test`; both install what they need into .venv.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: test lint typecheck bench wheel clean

test: $(VENV)/.test
	$(BIN)/python -m pytest

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# A type checker sees the mapped folders as one package only through a tree of links.
typecheck: $(VENV)/.test
	rm -rf build/typing && mkdir -p build/typing/sft_toolkit
	ln -s $(CURDIR)/sft_toolkit/* build/typing/sft_toolkit/
	ln -s $(CURDIR)/cli $(CURDIR)/labelers $(CURDIR)/packers build/typing/sft_toolkit/
	MYPYPATH=build/typing $(BIN)/mypy -p sft_toolkit

bench: $(VENV)/.test
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

wheel: $(VENV)/.test
	rm -rf dist build/lib build/bdist.*
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf build dist demo_output

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[test]'
	touch $@
