# Everyday commands. `make run` needs a Rust toolchain and a C/C++ compiler, nothing else.

CARGO ?= cargo

.PHONY: run build test test-fast lint bench deps schemas clean

# The first look: builds, then measures what needs no installation and every broker found here.
run: build
	./target/release/pubgauge run

build:
	$(CARGO) build --release --locked -p pubgauge

# Everything: formatting, lints, unit and property tests, command-line snapshots, and the
# end-to-end ring against real systems. Installs what the tests need.
test: deps lint
	$(CARGO) test --workspace --locked

# Without real systems: milliseconds after the build.
test-fast:
	$(CARGO) test --workspace --locked --lib --bins

lint:
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# Costs per message, as ratios against a peer in the same run.
bench:
	$(CARGO) bench --workspace --locked

deps:
	./scripts/install-test-deps.sh

clean:
	$(CARGO) clean
