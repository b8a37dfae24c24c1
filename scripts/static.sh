#!/bin/sh
# Builds a program as one file without any library of the system, for every Linux 5.11 or newer of this machine's
# architecture, and prints its path. pubgauge has everything then but the drivers of DDS, whose libraries Debian has as
# shared ones only; pubgauge-collect has everything.
#   usage: scripts/static.sh [pubgauge|pubgauge-collect]     pubgauge if none is named
# Zig, from PyPI, is the C and C++ compiler: libzmq is C++, and Debian's compiler for musl is one for C alone.
set -eu
cd "$(dirname "$0")/.."
cargo="${CARGO:-cargo}"
package="${1:-pubgauge}"
features=""
[ "$package" != pubgauge-collect ] || features=upload,kafka
target="$(uname -m)-unknown-linux-musl"
tools="$PWD/target/static-tools"
[ -x "$tools/bin/cargo-zigbuild" ] || {
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet ziglang==0.17.1 cargo-zigbuild==0.24.0
} >&2
if command -v rustup >/dev/null 2>&1; then
    rustup --quiet target add "$target" >&2
fi
PATH="$tools/bin:$PATH" CARGO_PROFILE_RELEASE_STRIP=symbols \
    "$cargo" zigbuild --release --locked -p "$package" --features "$features" --target "$target" >&2
echo "target/$target/release/$package"
