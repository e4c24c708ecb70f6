# What this project is built, tested and run with. Everything here may be repeated, and needs no network once
# the needs, the crates and the model are there.

SHELL := bash

# A toolchain of rustup's that the shell does not know yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

# The model that `make run` fetches where there is none, and that the tests use.
MODEL ?= smollm2-135m
# Arguments for platen: make run ARGS="--temp 0.2"
ARGS ?=
# Where the tests' model is kept between runs.
TEST_HOME ?= $(if $(HOME),$(HOME)/.cache,$(CURDIR)/target)/platen-test

.PHONY: run test bench fmt clean needs

run: needs
	@cargo build --release --locked
	@scripts/first-model target/release/platen $(MODEL)
	@exec target/release/platen $(ARGS)

# One profile for everything: building llama.cpp takes minutes for each.
test: needs
	cargo fmt --all --check
	cargo clippy --all-targets --locked -- -D warnings
	RUSTDOCFLAGS=-Dwarnings cargo doc --no-deps --locked
	cargo build --locked
	model=$$(scripts/test-model target/debug/platen $(MODEL) "$(TEST_HOME)") && \
		PLATEN_TEST_MODEL="$$model" cargo test --locked --no-fail-fast

bench: needs
	@cargo bench --locked

fmt:
	@cargo fmt --all

clean:
	@cargo clean

needs:
	@scripts/needs
