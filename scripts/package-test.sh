#!/bin/sh
# Installs the .deb in a root that has nothing but Debian's essential packages and apt, and lets a newcomer
# use it there (package-test-inside.sh). Nothing is left behind: the root is mmdebstrap's, which builds it in
# namespaces of its own and removes it on every path.
#   usage: scripts/package-test.sh target/debian/pubgauge_*.deb
# The root's packages come from where this machine's come from: same sources, same options of `Acquire`.
set -eu
[ -f "${1:-}" ] || {
    echo "usage: $0 target/debian/pubgauge_*.deb (make deb makes it)" >&2
    exit 3
}
deb=$(realpath "$1")
cd "$(dirname "$0")/.."
scratch=$(mktemp -d "${TMPDIR:-/tmp}/pubgauge-package-test.XXXXXX")
chmod 755 "$scratch"
# Mounts in the root are in a namespace of its own; if one were here all the same, it is not entered.
trap 'rm -rf --one-file-system "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "== ${deb##*/} in a clean root"
mkdir "$scratch/root"
cp "$deb" "$scratch/pubgauge.deb"
cp scripts/package-test-inside.sh "$scratch/inside.sh"
apt-config dump Acquire >"$scratch/apt.conf"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' 'Origin: Debian' | sort -u >"$scratch/sources.list"
# Without lists there is mmdebstrap's own choice.
set -- "$suite" /dev/null
[ ! -s "$scratch/sources.list" ] || set -- "$@" "$scratch/sources.list"
TMPDIR="$scratch/root" mmdebstrap --mode=unshare --variant=apt --quiet \
    --aptopt="$scratch/apt.conf" \
    --customize-hook="copy-in '$scratch/pubgauge.deb' '$scratch/inside.sh' /root" \
    --customize-hook='PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$1" sh /root/inside.sh' \
    "$@"
if [ -n "$(ls -A "$scratch/root")" ] || grep -F "$scratch" /proc/self/mounts; then
    echo "left behind in $scratch/root" >&2
    exit 1
fi
echo "== the package is installed, runs, and leaves nothing"
