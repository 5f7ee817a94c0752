# Two commands on a fresh machine: `make demo` and `make test`. Each target does its own set-up.

VENV   := .venv
BIN    := $(VENV)/bin
PYTHON ?= python3
RUST_SOURCES := $(shell find src -name '*.rs') Cargo.toml Cargo.lock
READY  := $(VENV)/.ready

export PYSPARK_PYTHON := $(abspath $(BIN)/python)
export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: demo test test-rust test-python test-slow bench bench-peers lint format wheel check-wheel clean java help

help:
	@sed -n 's/^\([a-z-]*\):.*## /make \1	/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(READY) java ## run a real pipeline on embedded Spark
	$(BIN)/python examples/demo.py

test: test-rust test-python ## all tests but the slow ones

test-rust: | cargo
	cargo test --locked

test-python: $(READY) java
	$(BIN)/python -m pytest

test-slow: $(READY) java ## what takes minutes
	$(BIN)/python -m pytest -m slow

bench: | cargo ## criterion benchmarks of the kernels
	cargo bench --locked

bench-peers: $(READY) $(VENV)-intervals/.ready ## against other engines; takes a quarter of an hour
	$(BIN)/python benches/peers/theta.py $(ARGUMENTS)

# Libraries that need older versions of the engines which they are compared with.
$(VENV)-intervals/.ready: benches/peers/requirements-intervals.txt
	$(PYTHON) -m venv $(VENV)-intervals
	$(VENV)-intervals/bin/python -m pip install --quiet -r $<
	@touch $@

lint: $(READY) ## formatting, clippy, ruff, mypy, stubs, documentation
	cargo fmt --check
	cargo clippy --locked --all-targets --features python -- --deny warnings
	RUSTDOCFLAGS='--deny warnings' cargo doc --locked --no-deps --document-private-items --features python
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest dovetail._native

format: $(READY) ## format all sources
	cargo fmt
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wheel: $(READY) ## one abi3 wheel for Python 3.10 and later, in dist/
	rm -f dist/*.whl
	$(BIN)/maturin build --release --locked --out dist

check-wheel: wheel ## install the wheel in an empty environment and join with it
	rm -rf dist/check && $(PYTHON) -m venv dist/check
	dist/check/bin/python -m pip install --quiet dist/*.whl
	cd dist && check/bin/python -m doctest ../README.md && check/bin/dovetail --version

clean: ## remove everything that was built
	rm -rf target dist demo-output $(VENV) $(VENV)-intervals python/dovetail/_native.*.so
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis

# The package, built in release mode and importable in place, with all that tests and demo need.
$(READY): pyproject.toml $(RUST_SOURCES) | cargo
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo 'dovetail needs Python 3.10 or later: run make PYTHON=/path/to/python3'; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo 'cannot make a virtual environment: apt-get install python3-venv'; exit 1; }
	@test -x $(BIN)/maturin || $(BIN)/python -m pip install --quiet 'maturin>=1.9.4,<2'
	$(BIN)/maturin develop --release --locked --extras spark,progress,demo,dev
	@touch $@

.PHONY: cargo
cargo:
	@command -v cargo > /dev/null || \
	  { echo 'cargo is missing: install Rust 1.88 or later from https://rustup.rs'; exit 1; }
	@command -v cc > /dev/null || { echo 'cc is missing: apt-get install gcc'; exit 1; }

# Spark needs Java 17 or later; where there is none and Debian is at hand, install it.
java:
	@tools/ensure-java
