# Every target sets up the environment it needs. Only make and Python 3.11+ are assumed:
# `make test`, or `make test PYTHON=python3.12`.
PYTHON ?= python3
# The oldest NumPy that is supported has no wheels for Python 3.13 and later.
PYTHON_OLDEST ?= python3.11
# Two workers on two cores: threads of BLAS below them would only fight.
export OMP_NUM_THREADS ?= 1

OLDEST = numpy==1.26.0 scipy==1.12.0 scikit-learn==1.6.0 narwhals==2.20.0 \
	pandas==2.2.0 polars==1.0.0 pyarrow==16.0.0 duckdb==1.0.0 \
	fairlearn==0.12.0 skops==0.11.0

.PHONY: demo test lint simulate wheel wheel-test oldest clean

demo: .venv-demo/ready
	.venv-demo/bin/python examples/underdiagnosis.py

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
	rm -rf .venv .venv-demo .venv-newest .venv-oldest build dist
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis

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
	$(@D)/bin/pip install --quiet --editable .
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
