# Everything runs in .venv, made with the machine's python3; a second `make` installs nothing again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Pictures and BLAS: no display, and no more threads than one for each test process.
export MPLBACKEND := Agg
export OMP_NUM_THREADS ?= 1
# Tests start hundreds of processes; each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE
# Test processes: one more than there are cores, for many tests wait for processes of their own.
WORKERS ?= 3

# Versions other than ours warn of one another; that is no error of this package.
OTHERS_WARN := -o filterwarnings=default

.DEFAULT_GOAL := help
# What a command began to write when it failed is no list of anything.
.DELETE_ON_ERROR:
.PHONY: help demo test test-core test-hosts test-studies test-library test-lowest test-newest engines check format lock nightly mutants bench figures reproduction library scores theorems hunt hunt-page features notebooks proven-checker docs docs-links pages dist clean

# Tests that need no cluster.
FAST = -n $(WORKERS) --dist worksteal -m 'not (slow or gpu or ray or slurm)'

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 13

demo: $(VENV)/.installed  ## compare four policies with what was possible, on a generated trace
	$(BIN)/shadowprice demo

test: $(VENV)/.installed-test  ## fast tests
	$(BIN)/python -m pytest $(FAST)

test-hosts: $(VENV)/.installed-test  ## those that a change to real hosts can reach
	$(BIN)/python -m pytest $(FAST) tests/hosts tests/site tests/*.py

test-studies: $(VENV)/.installed-test  ## those that a change to studies, figures or presets can reach
	$(BIN)/python -m pytest $(FAST) tests/studies tests/site tests/*.py

test-library: $(VENV)/.installed-test  ## those that a change to the library of instances can reach
	$(BIN)/python -m pytest $(FAST) tests/library tests/site tests/*.py

test-core: $(VENV)/.installed-test  ## those of the core alone; a change to it can reach all of `make test`
	$(BIN)/python -m pytest $(FAST) --ignore tests/hosts --ignore tests/studies --ignore tests/library

test-lowest: .venv-lowest/.installed  ## fast tests, with every dependency at its lower bound; TESTS='tests/cli ...' for some
	.venv-lowest/bin/python -m pytest $(FAST) $(OTHERS_WARN) $(TESTS)

test-newest: .venv-newest/.installed  ## fast tests, with the newest version of every dependency; TESTS likewise
	.venv-newest/bin/python -m pytest $(FAST) $(OTHERS_WARN) $(TESTS)

engines: $(VENV)/.installed-test  ## tests on real Ray and Slurm clusters of this machine, one after another
	$(BIN)/python -m pytest -m '(ray or slurm) and not slow'

check: $(VENV)/.installed-dev  ## lint, format, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.installed-dev  ## rewrite the sources in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: | $(BIN)/python  ## choose the exact versions of requirements/ anew: the newest that are allowed
	rm -rf .venv-lock
	$(BIN)/python -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet packaging
	.venv-lock/bin/python .ci/lock.py write
	rm -rf .venv-lock

nightly: $(VENV)/.installed-test  ## all tests, slow ones too, with other versions too, and a random search of each property; SEED=n repeats one
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not gpu'
	$(MAKE) test-lowest
	$(MAKE) test-newest

mutants: $(VENV)/.installed-test  ## how many sampled faults the tests notice; FILES='shadowprice/proofs/lower_bounds/*.py' SAMPLE=20 SEED=1 JOBS=2
	$(BIN)/python benchmarks/mutants.py $(foreach file,$(FILES),'$(file)') $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) $(if $(JOBS),--jobs $(JOBS))

bench: $(VENV)/.installed  ## benchmarks; PHILLY=philly_flat.csv.xz, GAVEL=simulation_throughputs.json.xz add real data; PEERS=folder, recorded runs
	$(BIN)/python benchmarks/throughput.py $(if $(PHILLY),--philly $(PHILLY))
	$(BIN)/python benchmarks/index_policies.py $(if $(PHILLY),--philly $(PHILLY)) $(if $(PEERS),--peers $(PEERS))
	$(BIN)/python benchmarks/scale.py --most 1000000
	$(BIN)/python benchmarks/offline_optimum.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/gavel_front_end.py
	$(BIN)/python benchmarks/rounds.py $(if $(GAVEL),--throughputs $(GAVEL))
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/gavel_allocations.py $(if $(GAVEL),--throughputs $(GAVEL))

figures: $(VENV)/.installed  ## every figure of paper_figs/, on all cores, going on where it was stopped; SIZE=quick, default or full
	$(BIN)/python paper_figs --size $(or $(SIZE),quick)

reproduction: $(VENV)/.installed  ## docs/reproduction.md, all rows in benchmarks/records/, and the README's verdicts, from the figures' kept tables
	$(BIN)/python docs/build_reproduction.py docs/reproduction.md benchmarks/records/reproduction.md README.md

proven-checker:  ## the checker of certificates that is proven in Rocq, as build/proven-checker; needs Debian's coq and OCaml
	$(MAKE) -C shadowprice/proofs/rocq BUILD=$(CURDIR)/build/rocq
	cp build/rocq/proven-checker build/proven-checker

theorems: $(VENV)/.installed  ## docs/theorems.md from the theorem files, and benchmarks/records/theorems.md from stored instances
	$(BIN)/python docs/build_theorems.py docs/theorems.md
	$(BIN)/python docs/build_values.py benchmarks/records/theorems.md

library: $(VENV)/.installed  ## verify every schedule and bound of the library, but those of traces that are not here
	$(BIN)/shadowprice library list --verify

scores: $(VENV)/.installed-test  ## docs/score.md's table: eleven policies on the suite, sealed; some minutes
	$(BIN)/python docs/build_scores.py docs/score.md

hunt: $(VENV)/.installed  ## hunt the worst instance of every policy, going on where the stored results stop; MINUTES=10 of CPU time each: hours
	nice $(BIN)/python benchmarks/hunt.py shadowprice/instances/hunted --minutes $(or $(MINUTES),10)
	$(MAKE) hunt-page

hunt-page: $(VENV)/.installed  ## benchmarks/records/hunt.md, from the stored results of hunts
	$(BIN)/python docs/build_hunt.py benchmarks/records/hunt.md

docs: $(VENV)/.installed-docs  ## the site, in build/docs/index.html; without a network, without a warning, links looked at
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs build/docs
	$(BIN)/python docs/check_links.py build/docs

docs-links: $(VENV)/.installed-docs  ## look at the links to elsewhere, over the network: for nightly runs
	$(BIN)/python -m sphinx --quiet -b linkcheck docs build/links

pages: $(VENV)/.installed-test  ## run every code block of README.md and docs/, in the order printed; what else of tests/site is quick, `make test` runs
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m slow tests/site

features: $(VENV)/.installed  ## docs/features.md, from what instances may say and who knows it
	$(BIN)/python docs/build_features.py docs/features.md benchmarks/records/readers.md

notebooks: $(VENV)/.installed-docs  ## run the notebooks of docs/notebooks/ that changed, or whose package did; the site shows their outputs
	$(BIN)/python docs/sphinx_extensions/run_notebooks.py

dist: $(VENV)/.installed-dev  ## source distribution and wheel, in dist/
	rm -rf build dist
	$(BIN)/python -m build --no-isolation
	rm -rf *.egg-info  # Python in this folder would read its commands, not those that are installed.

clean:  ## remove what the other targets made
	rm -rf $(VENV) .venv-lowest .venv-newest .venv-newest.txt .venv-lock build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit(f"error: {sys.executable} is Python {sys.version.split()[0]}, expected 3.11 or later; use make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

# Exactly what a list holds and nothing that it does not name. Python compiles what is imported, and leaves the rest.
INSTALL = $(BIN)/python -m pip install --quiet --no-deps --no-compile

# Once on a machine for each version of the loops: a first run of a policy would wait for it.
COMPILE = $(BIN)/python -m shadowprice.execution.kernel

# Once and by one process: processes of tests that begin together would each compile all that they import. What is wrong
# with a test is for the tests to say.
COLLECT = python -m pytest --collect-only --quiet

$(VENV)/.installed: requirements/demo.txt pyproject.toml | $(BIN)/python
	@echo 'installing into $(VENV): a minute or two the first time'
	$(INSTALL) --only-binary :all: --requirement $<
	$(INSTALL) --no-build-isolation --editable .
	$(COMPILE)
	touch $@

$(VENV)/.installed-test: requirements/test.txt pyproject.toml | $(BIN)/python
	@echo 'installing into $(VENV), with what the tests need: a minute or two the first time'
	$(INSTALL) --only-binary :all: --requirement $<
	$(INSTALL) --no-build-isolation --editable .
	$(COMPILE)
	$(BIN)/$(COLLECT) > /dev/null || true
	touch $@ $(VENV)/.installed

# Beside what is there: the package itself stays as it was installed.
$(VENV)/.installed-dev: requirements/dev.txt $(VENV)/.installed
	@echo 'installing into $(VENV), with the tools of developers: a minute the first time'
	$(INSTALL) --only-binary :all: --requirement $<
	touch $@

$(VENV)/.installed-docs: requirements/docs.txt $(VENV)/.installed
	@echo 'installing into $(VENV), with what the site needs: a minute the first time'
	$(INSTALL) --only-binary :all: --requirement $<
	touch $@

.venv-lowest/.installed: pyproject.toml .ci/lock.py
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet packaging
	$(@D)/bin/python .ci/lock.py lowest > $(@D)/lowest.txt
	$(@D)/bin/python -m pip install --quiet --no-compile --only-binary :all: --requirement $(@D)/lowest.txt
	$(@D)/bin/python -m pip install --quiet --no-deps --no-compile --editable .
	$(@D)/bin/$(COLLECT) $(OTHERS_WARN) tests/cli > /dev/null || true
	touch $@

# What pip would install today: resolved once, and installed as a list where it differs from ours.
.venv-newest.txt: pyproject.toml .ci/lock.py | $(VENV)/.installed-test
	$(BIN)/python .ci/lock.py newest test > $@

.venv-newest/.installed: .venv-newest.txt
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --no-deps --no-compile --only-binary :all: --requirement $<
	$(@D)/bin/python -m pip install --quiet --no-deps --no-compile --no-build-isolation --editable .
	$(@D)/bin/$(COLLECT) $(OTHERS_WARN) tests/cli > /dev/null || true
	touch $@
