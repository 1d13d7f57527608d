# Everything here works in a fresh clone on Debian or Ubuntu with python3 (3.11 or newer, with venv), make and git.

VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
TESTS  := $(VENV)/.ready-for-tests
PYTHON ?= python3
STORE  ?= rankscope.duckdb
PORT   ?= 8501
SERVE  ?= 1
# What else each is to be told, for example DEMO_ARGS=--quick, TEST_ARGS="-k ledger".
DEMO_ARGS  ?=
TEST_ARGS  ?=
BENCH_ARGS ?= --peers

.PHONY: help
help:
	@echo 'make demo     train a small model, let a rank fail, show it at http://127.0.0.1:$(PORT) (Ctrl-C ends it)'
	@echo '              SERVE=0 without the dashboard; PORT=8501; STORE=rankscope.duckdb'
	@echo 'make dash     the dashboard of STORE alone'
	@echo 'make test     the whole test suite, browser included'
	@echo 'make check    ruff and mypy'
	@echo 'make bench    what recording and collecting cost'
	@echo 'make docs     write again what in docs/ is made from the code'
	@echo 'make pictures take the pictures in docs/images/ again, of a run trained for them'
	@echo 'make wheel    source archive and wheel, in dist/'
	@echo 'make clean    remove what was made here; runs and stores stay'

$(READY): requirements.txt pyproject.toml setup.py ingest/_fast.c
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo 'Rankscope needs Python 3.11 or newer: name one, make PYTHON=python3.12 ...' >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	    { echo 'Python cannot make $(VENV): apt-get install python3-venv' >&2; rm -rf $(VENV); exit 1; }
	@echo 'installing requirements.txt into $(VENV), some minutes the first time'
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements.txt
	@touch $@

# Of torchtitan the tests need its logger, not the data sets and trackers that it depends on.
$(TESTS): $(READY)
	@echo 'installing the frameworks whose trainers the tests run'
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dash,dev,torchft,frameworks]'
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps torchtitan==0.3.0
	@touch $@

.PHONY: setup
setup: $(READY)

.PHONY: demo
demo: $(READY)
	@$(BIN)/rankscope demo --store '$(STORE)' $(if $(filter 0,$(SERVE)),,--serve --port $(PORT)) $(DEMO_ARGS)

.PHONY: dash
dash: $(READY)
	@$(BIN)/rankscope dash --store '$(STORE)' --port $(PORT)

.PHONY: browser
browser:
	@for name in chromium chromium-browser google-chrome; do \
	    command -v $$name >/dev/null && exit 0; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo 'installing chromium'; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	        chromium fonts-dejavu-core >/dev/null; \
	else \
	    echo 'the tests open pages in a browser: sudo apt-get install chromium' >&2; exit 1; \
	fi

.PHONY: test
test: $(TESTS) browser
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -q $(TEST_ARGS)

.PHONY: check
check: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy

.PHONY: bench
bench: $(READY)
	@$(BIN)/python -m tests.bench $(BENCH_ARGS)

.PHONY: docs
docs: $(READY)
	@$(BIN)/python docs/generate.py

# In a folder of its own, so that a picture shows no path of this machine.
.PHONY: pictures
pictures: $(READY) browser
	@here="$$PWD" folder=$$(mktemp -d) && cd "$$folder" && trap 'rm -rf "$$folder"' EXIT && \
	"$$here/$(BIN)/rankscope" demo --run demo --store rankscope.duckdb && \
	"$$here/$(BIN)/python" "$$here/docs/screenshots.py" rankscope.duckdb --run demo --readme

.PHONY: wheel
wheel: $(READY)
	@rm -rf dist build
	@$(BIN)/python -m build --no-isolation --outdir dist .

.PHONY: clean
clean:
	rm -rf $(VENV) build dist src/rankscope.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name '*.so' -not -path './.git/*' -delete
