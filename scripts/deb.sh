#!/bin/sh
# Builds pubgauge with everything, makes target/debian/pubgauge_VERSION_ARCHITECTURE.deb and prints its
# path. What has to be installed, `install-deps.sh package` installs (`make deb` does both). cargo-deb is
# put below target/ if it is not on the PATH.
set -eu
cd "$(dirname "$0")/.."
cargo="${CARGO:-cargo}"
dds=cyclonedds,fastdds
# What is shipped moves what it collects to object storage and to Kafka, too.
features=$dds,upload,kafka
cargo_deb_version=3.8.0

[ "$(./scripts/features.sh)" = "$dds" ] || {
    echo "the package has the DDS drivers, and their libraries are not all here" >&2
    echo "hint: on Debian, as root: make deb, which installs them" >&2
    exit 1
}
"$cargo" build --release --locked -p pubgauge --features "$features"
cargo_deb=$(command -v cargo-deb || echo target/tools/bin/cargo-deb)
[ -x "$cargo_deb" ] ||
    # Unoptimised it is built in half a minute and packs within seconds all the same.
    "$cargo" install cargo-deb --version "$cargo_deb_version" --locked --debug --root target/tools >&2

# One of an earlier version would be taken for this one.
rm -f target/debian/pubgauge_*.deb

# What stands in usr/share: documentation with its links intact, manual pages, completions.
share=target/package/share
rm -rf "$share"
doc="$share/doc/pubgauge"
mkdir -p "$doc"
cp -r ./*.md docs schema studies systems "$doc"
# What is linked in, with the licences as its authors name them.
"$cargo" tree --locked -p pubgauge --features "$features" -e normal --prefix none --format '{p}: {l} {r}' |
    grep -v '^pubgauge' | sort -u >"$doc/third-party.txt"
program=target/release/pubgauge
mkdir -p "$share/man/man1"
"$program" man --out "$share/man/man1" >/dev/null
while read -r shell file; do
    mkdir -p "$(dirname "$share/$file")"
    "$program" completions "$shell" >"$share/$file"
done <<END
bash bash-completion/completions/pubgauge
zsh zsh/vendor-completions/_pubgauge
fish fish/vendor_completions.d/pubgauge.fish
END

mkdir -p target/debian
rm -f target/debian/pubgauge_*.deb
"$cargo_deb" --no-build --locked --strip --quiet -p pubgauge
