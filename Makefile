# Every target sets up the environment it needs. Only make and Python 3.11+ are assumed:
# `make test`, or `make test PYTHON=python3.12`.
PYTHON ?= python3
# The oldest NumPy that is supported has no wheels for Python 3.13 and later.
PYTHON_OLDEST ?= python3.11
# Two workers on two cores: threads of BLAS below them would only fight.
export OMP_NUM_THREADS ?= 1

OLDEST = numpy==1.26.0 scipy==1.12.0 scikit-learn==1.6.0 narwhals==2.20.0 \
	pandas==2.2.0 polars==1.0.0 pyarrow==16.0.0 duckdb==1.1.0 \
	fairlearn==0.12.0 skops==0.11.0

.PHONY: demo test lint simulate wheel wheel-test oldest bench bench-smoke clean

demo: .venv-demo/ready
	.venv-demo/bin/fairpul demo

test: lint
	.venv/bin/pytest -n 2

lint: .venv/ready
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy

# The simulations that the tests above leave out.
simulate: .venv/ready
	.venv/bin/pytest -n 2 -m slow

wheel: .venv/ready
	rm -rf build/wheel
	.venv/bin/pip wheel --quiet --no-deps --wheel-dir build/wheel .

# The built wheel, not the source tree, on the newest and the oldest dependencies.
wheel-test: wheel .venv-newest/ready
	$(call test_wheel,.venv-newest)

oldest: wheel .venv-oldest/ready
	$(call test_wheel,.venv-oldest)

clean:
	rm -rf .venv .venv-* build dist
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf docs/_generated docs/gallery docs/api/generated

define test_wheel
	$(1)/bin/pip install --quiet --force-reinstall --no-deps build/wheel/*.whl
	$(1)/bin/python -P -c "import fairpul as f; assert 'site-packages' in f.__file__"
	$(1)/bin/pytest -n 2 tests --pyargs fairpul
endef

# Dependency groups need pip 25.1.
define new_environment
	$(1) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11+ needed')"
	$(1) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
endef

.venv/ready: pyproject.toml
	$(call new_environment,$(PYTHON))
	$(@D)/bin/pip install --quiet --editable . --group lint --group tests
	touch $@

.venv-demo/ready: pyproject.toml
	$(call new_environment,$(PYTHON))
	$(@D)/bin/pip install --quiet --editable ".[app]"
	touch $@

.venv-newest/ready: pyproject.toml | wheel
	$(call new_environment,$(PYTHON))
	$(@D)/bin/pip install --quiet --upgrade --upgrade-strategy eager \
		build/wheel/*.whl --group tests
	touch $@

.venv-oldest/ready: pyproject.toml Makefile | wheel
	$(call new_environment,$(PYTHON_OLDEST))
	$(@D)/bin/pip install --quiet build/wheel/*.whl --group tests $(OLDEST)
	touch $@

# The paper's tables and figures, 10 splits; interrupted, it goes on where it was.
# `rm -r build/replication` starts afresh.
.PHONY: replicate replicate-40 replicate-smoke
replicate: .venv-experiments/ready
	.venv-experiments/bin/python -m experiments.run

# The same, and the main rows on 40 splits.
replicate-40: .venv-experiments/ready
	.venv-experiments/bin/python -m experiments.run --main

# One split of everything, into build/ and not into the committed results.
replicate-smoke: .venv-experiments/ready
	rm -rf build/replication-smoke
	.venv-experiments/bin/python -m experiments.run --splits 1 --smoke \
		--raw build/replication-smoke --results build/replication-smoke

# Error against true gaps of every method on fresh rows, 10 splits: about five minutes.
# Interrupted, it goes on where it was; `rm -r build/pu-benchmark` starts afresh.
.PHONY: pu-benchmark pu-benchmark-smoke
pu-benchmark: .venv-experiments/ready
	.venv-experiments/bin/python -m experiments.pu_benchmark

# One split of everything, into build/ and not into the committed results.
pu-benchmark-smoke: .venv-experiments/ready
	rm -rf build/pu-benchmark-smoke
	.venv-experiments/bin/python -m experiments.pu_benchmark --seeds 1 \
		--raw build/pu-benchmark-smoke --results build/pu-benchmark-smoke

.venv-experiments/ready: pyproject.toml
	$(call new_environment,$(PYTHON))
	$(@D)/bin/pip install --quiet --editable . --group experiments
	touch $@

# The engines beyond one machine, each test file in a process of its own: a process
# holds one Spark session. Spark needs Java.
.PHONY: engines scale
engines: .venv-engines/ready | java
	set -e; for file in tests/engines/test_*.py; do \
		.venv-engines/bin/pytest -m engine -W ignore "$$file"; \
	done
	.venv-engines/bin/pytest -W ignore tests/docs -k "docs/engines or sql.md"
	.venv-engines/bin/python benchmarks/scale.py --rows 1_000_000 \
		--folder build/scale-small

# The same rows on Polars, DuckDB, Dask and Spark; needs 8 GB of disk.
ROWS ?= 100_000_000
scale: .venv-engines/ready | java
	.venv-engines/bin/python benchmarks/scale.py --rows $(ROWS) --folder build/scale \
		--csv benchmarks/results/scale.csv

# Rules from counts against rules from rows, with and without refining: minutes.
.PHONY: precision
precision: .venv/ready
	.venv/bin/python benchmarks/counts_precision.py \
		--csv benchmarks/results/counts_precision.csv

.PHONY: java
java:
	@java -version >/dev/null 2>&1 || { \
		apt-get update --quiet && \
		apt-get install --quiet --yes --no-install-recommends default-jre-headless; \
	} || { echo "Spark needs Java 17 or later: install default-jre-headless" >&2; exit 1; }

.venv-engines/ready: pyproject.toml
	$(call new_environment,$(PYTHON))
	$(@D)/bin/pip install --quiet --editable . --group engines
	touch $@

# The documentation with its gallery run, warnings as errors: build/docs/html/index.html.
.PHONY: docs
docs: .venv-docs/ready
	.venv-docs/bin/sphinx-build --quiet --fail-on-warning --keep-going \
		-d build/docs/doctrees docs build/docs/html
	@echo "Open build/docs/html/index.html"

.venv-docs/ready: pyproject.toml
	$(call new_environment,$(PYTHON))
	$(@D)/bin/pip install --quiet --editable . --group docs
	touch $@

# How often the intervals hold the truth, on simulated data: one to two hours. When it is
# interrupted, it goes on from there.
.PHONY: coverage coverage-smoke
coverage: .venv/ready
	.venv/bin/python -m experiments.coverage --out build/coverage.csv
	mkdir -p experiments/results
	cp build/coverage.csv build/coverage.md experiments/results/

coverage-smoke: .venv/ready
	rm -f build/coverage-smoke.csv
	.venv/bin/python -m experiments.coverage --sizes 1500 --runs 4 --chain-runs 1 \
		--boosting-runs 1 --out build/coverage-smoke.csv

# CPU time and memory against np.sort and against the peers that install, each in an
# environment of its own: minutes. Writes benchmarks/results/bench.csv and docs.
PEERS = fairlearn error-parity aif360 oxonfair
bench: .venv-bench/ready $(PEERS:%=.venv-bench-%/ready)
	.venv-bench/bin/python benchmarks/bench.py

# Checks that it runs, never how fast.
bench-smoke: .venv-bench/ready
	.venv-bench/bin/python benchmarks/bench.py --smoke

.venv-bench/ready: pyproject.toml
	$(call new_environment,$(PYTHON))
	$(@D)/bin/pip install --quiet --editable . matplotlib
	touch $@

.venv-bench-%/ready:
	$(call new_environment,$(PYTHON))
	$(@D)/bin/pip install --quiet $*
	touch $@

# The page in headless Chromium, without network, with axe-core from npm.
.PHONY: browser chromium
browser: .venv-browser/ready | chromium
	.venv-browser/bin/pytest -m browser tests/browser

chromium:
	@{ which chromium && which chromedriver && which npm; } >/dev/null || { \
		apt-get update --quiet && \
		apt-get install --quiet --yes --no-install-recommends chromium chromium-driver \
			$$(which npm >/dev/null || echo npm); \
	} || { echo "Install chromium, chromium-driver and npm" >&2; exit 1; }

.venv-browser/ready: pyproject.toml
	$(call new_environment,$(PYTHON))
	$(@D)/bin/pip install --quiet --editable ".[app]" --group browser
	touch $@
