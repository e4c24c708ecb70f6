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

.PHONY: run test bench screenshot fuzz fmt clean needs

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

# docs/screen.svg, from a real chat; best on a quiet machine, since the picture shows its speed.
screenshot: needs
	@cargo build --release --locked
	@scripts/screenshot target/release/platen $(MODEL) "$(TEST_HOME)"

# One fuzz target for some seconds: make fuzz TARGET=gguf SECONDS_EACH=60 (needs cargo-fuzz and a nightly toolchain).
TARGET ?= gguf
SECONDS_EACH ?= 60
fuzz:
	@mkdir -p fuzz/corpus/$(TARGET)
	@PLATEN_FUZZ_TARGET=$(TARGET) cargo +nightly fuzz run --sanitizer none any fuzz/corpus/$(TARGET) \
		tests/corpus/$(TARGET) -- -max_total_time=$(SECONDS_EACH) -timeout=20 -rss_limit_mb=4096

fmt:
	@cargo fmt --all

clean:
	@cargo clean

needs:
	@scripts/needs
