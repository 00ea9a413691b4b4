# `make run` and `make test` do all set-up themselves, once, in .venv.

PYTHON ?= python3
BIN := .venv/bin
RUN := .venv/run.stamp
TEST := .venv/test.stamp
JOBS ?= 2
# A file runs in one process, which keeps what it has built; in their order, for the last files are short.
BY_FILE := --dist loadfile --no-loadscope-reorder
BENCH_FILES := $(wildcard scripts/benches/*.py) $(patsubst %/__init__.py,%,$(wildcard scripts/benches/*/__init__.py))
BENCHES := $(sort $(filter-out __init__,$(basename $(notdir $(BENCH_FILES)))))

.DEFAULT_GOAL := help
.PHONY: help run test prove lint docs bench nightly clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

run: $(RUN) ## replay a trace on the specification, and a small one on RTL with the specification beside it
	@mkdir -p build
	@$(BIN)/kvnode trace generate -o build/demo.jsonl --requests 1200 --set turn_gap_s=60
	@$(BIN)/kvnode replay build/demo.jsonl --config configs/demo.toml --out build/demo
	@$(BIN)/kvnode trace generate -o build/small.jsonl --requests 320 --set turn_gap_s=20 --set opening_document_tokens=3000
	@$(BIN)/kvnode replay build/small.jsonl --config configs/rtl.toml --backend rtl --out build/rtl

test: $(TEST) ## every test but the nightly ones; fails too when a planned test has no result
	@$(BIN)/pytest -n $(JOBS) $(BY_FILE) --testplan

prove: $(TEST) ## every proof, one line each
	@$(BIN)/kvnode prove

lint: $(TEST) ## formatting, lint, types
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/ruff check --quiet
	@$(BIN)/mypy --no-error-summary

docs: $(TEST) ## build/docs/index.html; a warning is an error
	@$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs

bench: $(TEST) ## every benchmark: figure, target, limit, ratio
	@status=0; for name in $(BENCHES); do $(BIN)/kvnode bench $$name || status=1; done; exit $$status

nightly: $(TEST) ## the long tests, then the benchmarks
	@$(BIN)/pytest -n $(JOBS) -m nightly
	@$(MAKE) --no-print-directory bench

clean: ## remove what was built, and .venv
	rm -rf .venv build

$(RUN) $(TEST): .venv/%.stamp: pyproject.toml constraints.txt scripts/setup.py
	@command -v $(PYTHON) >/dev/null || { echo "kvnode: $(PYTHON) is not on PATH (Debian package python3)" >&2; exit 2; }
	@$(PYTHON) scripts/setup.py $*
