# Short names for the README's commands, and `make check`: all that CI looks at, in CI's own words.
# `make check PY=/another/bin/python` takes the tools of another environment than the course's.
.PHONY: start test build lint built check bench
PY ?= .venv/bin/python

start:
	python3 -m course
test:
	python3 -m course test $(ARGS)
build:
	python3 -m course build
lint: $(PY)
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(dir $(PY))lint-imports
built: $(PY)
	$(PY) -m course build --check
	$(PY) -m tests.standard_kernels --check
check: lint built test
bench: $(PY)
	$(PY) -m tests.benchmarks

.venv/bin/python:
	python3 -m course test --version
