#!/bin/sh
# Makes everything that a release consists of, tries each, and leaves it with its checksums in target/release-VERSION:
# a Python wheel, the Debian packages, archives of the static programs, an OCI image. As root, on Debian.
#   usage: scripts/release.sh [wheel|deb|static|image]...     all of them if none is named
# Where neither podman nor docker works, there is no image, and that is said.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
out="target/release-$version"
arch=$(uname -m)
archive() { # PROGRAM
    program=$(./scripts/static.sh "$1")
    ./scripts/static-test.sh "$program"
    name="$1-$version-$arch-linux"
    folder="target/package/$name"
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "$program" LICENSE-APACHE LICENSE-MIT CHANGELOG.md README.md "$folder"
    # The same files give the same bytes.
    tar -C target/package --sort=name --owner=0 --group=0 --numeric-owner \
        --mtime="@$(git log -1 --format=%ct 2>/dev/null || echo 0)" -cf - "$name" | gzip -n >"$out/$name.tar.gz"
    tar -tzf "$out/$name.tar.gz" | grep -qx "$name/$1"
}
for part; do
    case "$part" in
    static | wheel | deb | image) ;;
    *)
        echo "no part $part; hint: wheel, deb, static or image" >&2
        exit 3
        ;;
    esac
done
rm -rf "$out"
mkdir -p "$out"
[ $# -gt 0 ] || set -- static wheel deb image
for part; do
    case "$part" in
    static)
        archive pubgauge
        archive pubgauge-collect
        ;;
    wheel)
        wheel=$(./scripts/wheel.sh)
        ./scripts/wheel-test.sh "$wheel"
        cp "$wheel" "$out"
        ;;
    deb)
        ./scripts/deb.sh
        ./scripts/package-test.sh target/debian/pubgauge_*.deb target/debian/pubgauge-collect_*.deb
        cp target/debian/pubgauge_*.deb target/debian/pubgauge-collect_*.deb "$out"
        ;;
    image)
        code=0
        ./scripts/image.sh "$out/pubgauge-$version-$arch.oci.tar.gz" || code=$?
        [ "$code" = 0 ] || [ "$code" = 4 ]
        ;;
    esac
done
(cd "$out" && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS . && sha256sum --check --quiet SHA256SUMS)
ls -l "$out"
