# Two commands matter: `make demo` shows what Bespeak does, and `make test` runs the tests. Both install what they need first.
# Python 3.11 to 3.13.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PEER := .peer
FRAMEWORKS := .frameworks
OUTSIDE := .outside
OLDEST := .oldest
PACKAGE := .package
COMPARISON := .comparison
FASTMCP := .fastmcp
DOCS := .docs
OLDEST_UVICORN := $(shell sed -n 's/.*"uvicorn>=\([0-9.]*\)".*/\1/p' pyproject.toml)
# Let Python write bytecode, so that pytest does not have to rewrite every module again for every worker.
export PYTHONDONTWRITEBYTECODE :=
PIP := pip --disable-pip-version-check --quiet

.PHONY: demo test matrix stress soak pythons signatures oldest check messages rules docs interop conformance suites suites-outside frameworks frameworks-short bench bench-quick bench-short bench-counted siege siege-short storm storm-short package release comparison format clean

# pip 25.1 is the first that installs dependency groups.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m $(PIP) install --upgrade 'pip>=25.1'
	$(BIN)/python -m $(PIP) install -e . --group dev
	touch $@

# The official SDK, in an environment of its own.
$(PEER)/.installed: bench/peer-requirements.txt
	$(PYTHON) -m venv $(PEER)
	$(PEER)/bin/python -m $(PIP) install -r $<
	touch $@

demo: $(VENV)/.installed
	@$(BIN)/python -m examples.refund_desk.demo

# Everything that is not marked `long`.
test: $(VENV)/.installed
	$(BIN)/python -m pytest -n 3

# The long tests too, and more examples of the property tests, with branch coverage of src; fails below 97 %.
matrix: $(VENV)/.installed
	$(BIN)/python -m pytest -n 4 -m "" --hypothesis-profile=thorough --cov --cov-report=term

# The tests beside stress-ng, which must be installed: all of them five times, those that wait for time a hundred times.
stress: $(VENV)/.installed
	$(BIN)/python -m scripts.stress

# The property tests at length: ten times as many random graphs, different ones in every run.
soak: $(VENV)/.installed
	BESPEAK_SOAK=10 $(BIN)/python -m pytest tests/test_properties.py tests/test_properties_replays.py \
		tests/resolve/reading/test_generated_signatures.py

# Signatures and resolvers on Python 3.11, 3.12 and 3.13. PYTHON311, PYTHON312 and PYTHON313 may name the interpreters;
# otherwise they are looked up on the path and in pyenv. If CI is set, all three must be found.
pythons: $(VENV)/.installed
	$(BIN)/python -m tests.pythons

# 100,000 signatures and wrappers drawn at random on each Python, in search of a lost marker. BESPEAK_SEED=2 draws others.
signatures: $(VENV)/.installed
	BESPEAK_DRAWS=100000 BESPEAK_TESTS=tests/resolve/reading/test_drawn_signatures.py $(BIN)/python -m tests.pythons

# Serving, workers and stopping with the oldest uvicorn that pyproject.toml allows; all other targets use the newest.
$(OLDEST)/.installed: pyproject.toml
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m $(PIP) install --upgrade 'pip>=25.1'
	$(OLDEST)/bin/python -m $(PIP) install -e . --group tests 'uvicorn==$(OLDEST_UVICORN)'
	touch $@

oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python -m pytest -n 3 -m "" tests/server/test_running.py tests/cli/test_run_command.py tests/test_stopping.py

check: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

# Every message that a user may read, each with its file and line: for a reviewer who reads them in one go.
messages: $(VENV)/.installed
	@$(BIN)/python -m scripts.messages

# The table of the protocol's clauses in docs/rules.md, from the rules of the test tool.
rules: $(VENV)/.installed
	$(BIN)/python -m scripts.rules_page

# The documentation as a site with search, in build/docs. A warning is an error.
$(DOCS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m $(PIP) install --upgrade 'pip>=25.1'
	$(DOCS)/bin/python -m $(PIP) install -e . --group docs
	touch $@

docs: $(DOCS)/.installed
	$(DOCS)/bin/python -m sphinx --fail-on-warning --keep-going --quiet --fresh-env --write-all --builder html --doctree-dir build/doctrees docs build/docs
	@echo "build/docs/index.html"

# The official Python and TypeScript clients and servers against ours. Needs node.
interop/node_modules/.installed: interop/package.json
	cd interop && npm install --no-package-lock --no-audit --no-fund --silent
	touch $@

interop: $(VENV)/.installed $(PEER)/.installed interop/node_modules/.installed
	$(BIN)/python -m interop.run --peer $(PEER)/bin/python

# The official conformance suite against our server and our client; writes docs/conformance.md. The suite needs a newer Node
# than npm does, so that one comes from npm as well. On other systems than Linux on x86-64, pass --node to conformance.run.
conformance/node_modules/.installed: conformance/package.json
	cd conformance && npm install --no-package-lock --no-audit --no-fund --silent
	touch $@

conformance: $(VENV)/.installed conformance/node_modules/.installed
	$(BIN)/python -m conformance.run

# The shipped suites: our refund desk in both eras, the travel desks of two other SDKs, attacks that a till must withstand, and
# shops whose price moves. LangGraph's way to answer must be found out to be a danger in one of them, so that run has to fail.
DESK = suites/travel_desk.bespeak.yaml --server desk
MOVING = suites/moving_price

suites: $(VENV)/.installed $(PEER)/.installed interop/node_modules/.installed
	$(BIN)/bespeak test examples/refund_desk suites/hostile.bespeak.yaml
	$(BIN)/bespeak test $(DESK)=typescript
	$(BIN)/bespeak test $(DESK)=typescript-http
	$(BIN)/bespeak test $(DESK)=python
	$(BIN)/bespeak test $(DESK)=python-http
	$(BIN)/bespeak test $(MOVING)
	$(BIN)/bespeak test $(MOVING) --as langgraph
	$(BIN)/bespeak test $(MOVING) --server shop=official
	! $(BIN)/bespeak test $(MOVING) --server shop=official --as langgraph > $(PEER)/langgraph.txt
	grep -q "^1 failed, 1 passed" $(PEER)/langgraph.txt && grep "(stale-answer" $(PEER)/langgraph.txt

# Suites for servers of npm and PyPI that others wrote; see suites/outside/README.md. Needs node and git.
$(OUTSIDE)/npm/.installed: suites/outside/package.json
	mkdir -p $(OUTSIDE)/npm
	cp $< $(OUTSIDE)/npm
	cd $(OUTSIDE)/npm && npm install --no-package-lock --no-audit --no-fund --silent
	touch $@

$(OUTSIDE)/%/.installed: suites/outside/requirements/%.txt
	$(PYTHON) -m venv $(OUTSIDE)/$*
	$(OUTSIDE)/$*/bin/python -m $(PIP) install -r $<
	touch $@

suites-outside: $(VENV)/.installed $(OUTSIDE)/npm/.installed $(patsubst suites/outside/requirements/%.txt,$(OUTSIDE)/%/.installed,$(wildcard suites/outside/requirements/*.txt))
	$(BIN)/python -m suites.outside.run

# Agent frameworks, each in its own environment, against our servers. No model service and no network is used.
$(FRAMEWORKS)/%/.installed: frameworks/requirements/%.txt
	$(PYTHON) -m venv $(FRAMEWORKS)/$*
	$(FRAMEWORKS)/$*/bin/python -m $(PIP) install -r $<
	touch $@

frameworks: $(VENV)/.installed $(patsubst frameworks/requirements/%.txt,$(FRAMEWORKS)/%/.installed,$(wildcard frameworks/requirements/*.txt))
	$(BIN)/python -m frameworks.run

frameworks-short: $(VENV)/.installed $(FRAMEWORKS)/langgraph/.installed $(FRAMEWORKS)/pydantic-ai/.installed
	$(BIN)/python -m frameworks.run --calls 20 langgraph pydantic-ai

# Speed beside the official SDK, FastMCP and a bare ASGI app, as ratios; see docs/speed.md. Needs Linux, wrk and two cores, and uses
# Python 3.13 too where it is found. The full bench takes about fifteen minutes and writes bench/figures.json.
$(FASTMCP)/.installed: bench/fastmcp-requirements.txt
	$(PYTHON) -m venv $(FASTMCP)
	$(FASTMCP)/bin/python -m $(PIP) install -r $<
	touch $@

BENCH_NEEDS := $(VENV)/.installed $(PEER)/.installed $(FASTMCP)/.installed
BENCH = $(BIN)/python -m bench --peer $(PEER)/bin/python --fastmcp $(FASTMCP)/bin/python

bench: $(BENCH_NEEDS)
	$(BENCH) --newer --json bench/figures.json
	$(BIN)/python -m bench.page
	$(BIN)/python -m bench.held
	$(BIN)/python -m bench.stores

# The same work, less of it: under a minute.
bench-quick: $(BENCH_NEEDS)
	$(BENCH) --turns 1 --seconds 1 --scale 0.1

bench-short: bench-quick
	$(BIN)/python -m bench.held 0.1
	$(BIN)/python -m bench.stores 0.1

# Counts instructions instead of seconds: fails if a call takes a fifth more than it did. Needs valgrind.
bench-counted: $(VENV)/.installed
	$(BIN)/python -m bench.counted

# Attacks on a server over loopback, while an honest client uses it; see docs/siege.md. Needs Linux and two cores.
siege: $(VENV)/.installed
	$(BIN)/python -m siege

siege-short: $(VENV)/.installed
	$(BIN)/python -m siege --short

# Many clients of both eras on several workers that are killed again and again; see docs/storm.md. Needs Linux, node and
# redis-server; without the last, storms with Redis are left out, unless CI is set.
STORM = $(BIN)/python -m storm --peer $(PEER)/bin/python
STORM_NEEDS := $(VENV)/.installed $(PEER)/.installed interop/node_modules/.installed

storm: $(STORM_NEEDS)
	$(STORM)

storm-short: $(STORM_NEEDS)
	$(STORM) --short

# Bespeak, the official SDK and FastMCP in the same situations; writes docs/comparison.md. In CI the page must not change.
$(COMPARISON)/.installed: comparison/requirements/fastmcp.txt
	$(PYTHON) -m venv $(COMPARISON)
	$(COMPARISON)/bin/python -m $(PIP) install -r $<
	touch $@

comparison: $(VENV)/.installed $(PEER)/.installed $(COMPARISON)/.installed
	$(BIN)/python -m comparison.run --bespeak $(BIN)/python --mcp $(PEER)/bin/python --fastmcp $(COMPARISON)/bin/python

# Builds sdist and wheel, checks both, and tries the wheel in fresh environments: on each Python that is found, and with the command
# line of the official Inspector. The Inspector needs a newer Node than npm does, so that one comes from npm as well.
$(PACKAGE)/.installed: pyproject.toml
	$(PYTHON) -m venv $(PACKAGE)
	$(PACKAGE)/bin/python -m $(PIP) install --upgrade 'pip>=25.1'
	$(PACKAGE)/bin/python -m $(PIP) install --group package
	touch $@

inspector/node_modules/.installed: inspector/package.json
	cd inspector && npm install --no-package-lock --no-audit --no-fund --silent
	touch $@

package: $(VENV)/.installed $(PACKAGE)/.installed inspector/node_modules/.installed
	$(BIN)/python -m scripts.package_check --tools $(PACKAGE)/bin/python --inspector inspector/node_modules

# Everything that a release needs, except the upload. Says what to do next.
release: $(VENV)/.installed
	$(BIN)/python -m scripts.release

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(VENV)-3.* $(OLDEST) $(PACKAGE) $(COMPARISON) $(DOCS) build $(PEER) $(FASTMCP) $(OUTSIDE) $(FRAMEWORKS) interop/node_modules conformance/node_modules inspector/node_modules dist .coverage .pytest_cache .ruff_cache .hypothesis
