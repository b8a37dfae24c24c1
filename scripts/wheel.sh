#!/bin/sh
# Makes a Python wheel that carries the static program (scripts/static.sh: all drivers but DDS) and prints its path. It
# installs on every Linux of this machine's architecture, with glibc and with musl.
#   usage: scripts/wheel.sh
set -eu
cd "$(dirname "$0")/.."
./scripts/static.sh >/dev/null
tools="$PWD/target/static-tools"
[ -x "$tools/bin/maturin" ] || "$tools/bin/pip" install --quiet maturin==1.16.0 >&2
rm -rf target/wheels
# What static.sh built is linked again, and nothing else is built.
PATH="$tools/bin:$PATH" "$tools/bin/maturin" build --quiet --release --zig --target "$(uname -m)-unknown-linux-musl" \
    --compatibility manylinux2014 musllinux_1_2 --out target/wheels >&2
ls target/wheels/pubgauge-*.whl
