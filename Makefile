# Short names for the README's commands; nothing here does anything that they do not.
.PHONY: start test build lint bench
start:
	python3 -m course
test:
	python3 -m course test
build:
	python3 -m course build
lint:
	.venv/bin/ruff check toytorch course tests && .venv/bin/mypy && .venv/bin/lint-imports
bench:
	.venv/bin/python -m tests.benchmarks
