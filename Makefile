# A convenience; the README's commands need no make.
PYTHON ?= .venv/bin/python

.PHONY: setup run test lint browser
setup:
	python3 -m venv .venv
	.venv/bin/pip install --quiet --no-compile --editable ".[test,dev]"
run:
	$(PYTHON) run_all.py
test:
	$(PYTHON) -m pytest --numprocesses 2 --dist worksteal
lint:
	$(PYTHON) -m ruff check . && $(PYTHON) -m ruff format --check . && $(PYTHON) -m mypy
browser: run
	$(PYTHON) tests/browser/check_reports.py reports
