#!/bin/sh
# Builds programs with everything, makes target/debian/PACKAGE_VERSION_ARCHITECTURE.deb of each and prints its path.
#   usage: scripts/deb.sh [pubgauge|pubgauge-collect]...     both if none is named
# What has to be installed, `install-deps.sh package` installs (`make deb` does both). cargo-deb is
# put below target/ if it is not on the PATH.
set -eu
cd "$(dirname "$0")/.."
cargo="${CARGO:-cargo}"
dds=cyclonedds,fastdds
cargo_deb_version=3.8.0

features_of() { # PACKAGE
    case "$1" in
    pubgauge) echo "$dds" ;;
    # What is shipped moves what it collects to object storage and to Kafka, too.
    pubgauge-collect) echo upload,kafka ;;
    *)
        echo "no package $1; hint: pubgauge or pubgauge-collect" >&2
        exit 3
        ;;
    esac
}

packed() { # PACKAGE
    package="$1"
    features=$(features_of "$package")
    "$cargo" build --release --locked -p "$package" --features "$features"
    # One of an earlier version would be taken for this one.
    rm -f "target/debian/${package}"_*.deb

    # What stands in usr/share: documentation with its links intact, manual pages, completions.
    share="target/package/$package/share"
    rm -rf "$share"
    doc="$share/doc/$package"
    mkdir -p "$doc" "$share/man/man1" target/debian
    cp -r ./*.md docs schema studies systems "$doc"
    cp --parents crates/collect/README.md "$doc"
    # What is linked in, with the licences as its authors name them.
    "$cargo" tree --locked -p "$package" --features "$features" -e normal --prefix none --format '{p}: {l} {r}' |
        grep -v '^pubgauge' | sort -u >"$doc/third-party.txt"
    program="target/release/$package"
    "$program" man --out "$share/man/man1" >/dev/null
    while read -r shell file; do
        mkdir -p "$(dirname "$share/$file")"
        "$program" completions "$shell" >"$share/$file"
    done <<END
bash bash-completion/completions/$package
zsh zsh/vendor-completions/_$package
fish fish/vendor_completions.d/$package.fish
END
    "$cargo_deb" --no-build --locked --strip --quiet -p "$package"
}

[ $# -gt 0 ] || set -- pubgauge pubgauge-collect
for package; do
    [ "$(features_of "$package")" != "$dds" ] || [ "$(./scripts/features.sh)" = "$dds" ] || {
        echo "the package has the DDS drivers, and their libraries are not all here" >&2
        echo "hint: on Debian, as root: make deb, which installs them" >&2
        exit 1
    }
done
cargo_deb=$(command -v cargo-deb || echo target/tools/bin/cargo-deb)
[ -x "$cargo_deb" ] ||
    # Unoptimised it is built in half a minute and packs within seconds all the same.
    "$cargo" install cargo-deb --version "$cargo_deb_version" --locked --debug --root target/tools >&2
for package; do
    packed "$package"
done
