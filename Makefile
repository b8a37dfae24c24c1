# Everyday commands. `make run` needs a Rust toolchain and a C/C++ compiler, nothing else: what its
# optional drivers need is installed where that can be done (Debian, as root), else left out.

CARGO ?= cargo
# Where cargo builds.
TARGET = $(or $(CARGO_TARGET_DIR),./target)
# Looked at when a recipe runs, after the libraries were installed.
FEATURES = $$(./scripts/features.sh)
TEST_FEATURES = pubgauge/cyclonedds,pubgauge/fastdds,pubgauge-driver-cyclonedds/native,pubgauge-driver-fastdds/native,pubgauge-driver-dds-mixed/native
# What takes a hundred crates more to build is tested with everything, not in the gate.
ALL_FEATURES = $(TEST_FEATURES),pubgauge-collect/upload,pubgauge-collect/kafka
BENCH_FEATURES = $(TEST_FEATURES),pubgauge-driver-fastdds/bench-plain,pubgauge-driver-zeromq/bench-c

.PHONY: run build demo-all test test-all systems test-fast lint lint-code lint-without-dds check-docs check-fuzz check-dependencies check-msrv ratchet docs bench hostile fuzz deps deb static package-test release lint-workflows clean

# The first look: builds, then measures the systems found here that start at once.
run: build
	$(TARGET)/release/pubgauge run

# With every driver whose library is here or can be installed; and the collector, which `pubgauge collect` runs.
build:
	./scripts/install-deps.sh build
	$(CARGO) build --release --locked -p pubgauge --features "$(FEATURES)"
	$(CARGO) build --release --locked -p pubgauge-collect

# Every system that apt and Maven offer, over recorded data (PUBGAUGE_DATA names its folder).
demo-all: build
	$(TARGET)/release/pubgauge systems --install all --yes
	$(TARGET)/release/pubgauge run studies/first-look-all.toml

# The gate: formatting, lints, unit and property tests, command-line snapshots, the page in a browser, a hostile minute,
# and one real system for each driver. No test of it depends on how busy the machine is. Installs what the tests need.
test: deps
	./scripts/test.sh gate "$(CARGO)" $(TEST_FEATURES)

# Everything: besides, every variant of every system, ten hostile minutes, what shows in real time alone, networks,
# hosts, the oldest Rust, the fuzz targets' build, packages. As root, on Debian; nothing else may run beside it.
test-all: deps
	./scripts/install-deps.sh package
	./scripts/test.sh all "$(CARGO)" $(ALL_FEATURES)

# Downloads the systems that no package manager has.
systems:
	$(CARGO) run --locked -p pubgauge --features cyclonedds,fastdds -- systems --install all --yes

# Without real systems: milliseconds after the build.
test-fast:
	$(CARGO) test --workspace --locked --lib --bins

lint: lint-code lint-without-dds check-docs check-fuzz check-dependencies check-msrv ratchet lint-workflows

lint-code:
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --locked --features $(TEST_FEATURES) -- -D warnings

# As built where the libraries of the DDS drivers are missing.
lint-without-dds:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# Of the code, and links of the pages.
check-docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet
	python3 -B scripts/book.py

# The pages of docs/ as a book with a search: target/book/html/index.html.
MDBOOK = 0.5.4
docs: target/tools/bin/mdbook
	python3 -B scripts/book.py
	target/tools/bin/mdbook build
	@echo target/book/html/index.html
target/tools/bin/mdbook:
	$(CARGO) install --quiet --locked --debug --root target/tools --no-default-features --features search mdbook@$(MDBOOK)

# Dependencies that nothing uses; licences, sources and advisories of those that are. With CARGO in its environment
# cargo-machete expects to be a word of cargo's. Where the database of advisories cannot be reached, that is said.
MACHETE = 0.9.2
DENY = 0.20.2
check-dependencies: target/tools/bin/cargo-machete target/tools/bin/cargo-deny
	env -u CARGO target/tools/bin/cargo-machete
	target/tools/bin/cargo-deny --locked check bans licenses sources
	@if target/tools/bin/cargo-deny --locked fetch db 2>/dev/null; then target/tools/bin/cargo-deny --locked check advisories; \
	else echo "advisories not checked: https://github.com/RustSec/advisory-db cannot be reached" >&2; fi

# Unoptimised they are built in half the time.
target/tools/bin/cargo-machete:
	$(CARGO) install --quiet --locked --debug --root target/tools cargo-machete@$(MACHETE)
target/tools/bin/cargo-deny:
	$(CARGO) install --quiet --locked --debug --root target/tools cargo-deny@$(DENY)

# With the oldest Rust that Cargo.toml names, without the DDS drivers. Where rustup is not or does not get it, nobody
# can tell, and that is said.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
check-msrv:
	@if rustup toolchain install --no-self-update --profile minimal $(MSRV) >/dev/null 2>&1; then \
	    CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0 rustup run $(MSRV) cargo check --quiet --workspace --locked --target-dir target/msrv; \
	else echo "not checked with Rust $(MSRV): rustup has no such toolchain here" >&2; fi

# Workflows of hosted CI, with the shell scripts in them where shellcheck is here. Where Go is not, that is said.
ACTIONLINT = 1.7.7
lint-workflows:
	@if [ -x target/tools/bin/actionlint ] || { command -v go >/dev/null 2>&1 && \
	    GOBIN="$(CURDIR)/target/tools/bin" go install github.com/rhysd/actionlint/cmd/actionlint@v$(ACTIONLINT); }; then \
	    target/tools/bin/actionlint; \
	else echo "workflows not checked: actionlint is built with Go, which is not here" >&2; fi

check-fuzz:
	$(CARGO) check --quiet --manifest-path fuzz/Cargo.toml --target-dir target/fuzz

# What makes the code dear to change (lines, circles of files, arrows between crates, long functions) does not grow unseen:
# scripts/ratchet.toml.
ratchet:
	python3 -B scripts/ratchet_test.py
	python3 -B scripts/ratchet.py

# Costs per message, as ratios against a peer in the same run. RabbitMQ's PerfTest comes with Maven.
bench: deps
	mvn --batch-mode --quiet --file=crates/drivers/amqp/benches/perftest/pom.xml \
		org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
		-DoutputDirectory="$(CURDIR)/target/perftest"
	PUBGAUGE_PERFTEST="$(CURDIR)/target/perftest" $(CARGO) bench --workspace --locked --features $(BENCH_FEATURES)

# Kills, mutated files, closed terminals and low limits: SECONDS of it, with SEED (the day's if empty).
SECONDS = 60
SEED =
hostile:
	PUBGAUGE_HOSTILE_SECONDS=$(SECONDS) PUBGAUGE_HOSTILE_SEED=$(SEED) \
		$(CARGO) test --locked -p pubgauge --test it hostile:: -- --nocapture
	PUBGAUGE_HOSTILE_SECONDS=$(SECONDS) PUBGAUGE_HOSTILE_SEED=$(SEED) \
		$(CARGO) test --locked -p pubgauge-collect --test program hostile:: -- --nocapture

# Everything that is parsed, by libFuzzer: so many inputs for each target, or for TARGETS alone.
INPUTS = 200000
TARGETS =
fuzz:
	scripts/fuzz.sh "$(CARGO)" $(INPUTS) $(TARGETS)

# The Debian packages, pubgauge with all drivers: target/debian/pubgauge_*.deb, target/debian/pubgauge-collect_*.deb.
deb:
	./scripts/install-deps.sh package
	CARGO="$(CARGO)" ./scripts/deb.sh

# One file each without any library of the system: pubgauge with all drivers but DDS, and the collector.
static:
	CARGO="$(CARGO)" ./scripts/static.sh
	CARGO="$(CARGO)" ./scripts/static.sh pubgauge-collect

# `cargo install`, the packages in a clean root without a toolchain, the static programs in an empty one; as root,
# on Debian.
package-test:
	./scripts/install-deps.sh package
	CARGO="$(CARGO)" ./scripts/cargo-install-test.sh
	CARGO="$(CARGO)" ./scripts/deb.sh
	./scripts/package-test.sh target/debian/pubgauge_*.deb target/debian/pubgauge-collect_*.deb
	./scripts/static-test.sh "$$(CARGO="$(CARGO)" ./scripts/static.sh)"
	./scripts/static-test.sh "$$(CARGO="$(CARGO)" ./scripts/static.sh pubgauge-collect)"

# Wheel, Debian packages, archives of the static programs, image and checksums in target/release-VERSION, each tried; as
# root, on Debian. PARTS="static wheel" makes these alone.
PARTS =
release:
	./scripts/install-deps.sh package
	CARGO="$(CARGO)" ./scripts/release.sh $(PARTS)

deps:
	./scripts/install-deps.sh test

clean:
	$(CARGO) clean
