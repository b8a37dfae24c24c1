#!/bin/sh
# Installs packages in a root that has nothing but Debian's essential packages and apt, and lets a newcomer
# use them there (package-test-inside.sh). Nothing is left behind, on every path: the root's processes and
# mounts are in namespaces that end with this script, and mmdebstrap's folder is below one of this script's.
#   usage: scripts/package-test.sh target/debian/*.deb     pubgauge, pubgauge-collect or both
# The root's packages come from where this machine's come from: same sources, same options of `Acquire`.
set -eu
[ -f "${1:-}" ] || {
    echo "usage: $0 target/debian/*.deb (make deb makes them)" >&2
    exit 3
}
[ "$(id -u)" = 0 ] || {
    echo "a root folder takes root to make; hint: run this as root" >&2
    exit 3
}
scratch="${TMPDIR:-/tmp}/pubgauge-package-test.$$"
# What one left that was killed by SIGKILL, which only a later one can remove.
for stale in "${scratch%.*}".*; do
    [ ! -d "$stale" ] || kill -0 "${stale##*.}" 2>/dev/null || rm -rf --one-file-system "$stale"
done
mkdir -m 755 "$scratch" "$scratch/packages"
root=""
clean_up() {
    # With `unshare` ends its process namespace, and with that its mounts.
    [ -z "$root" ] || kill -KILL "$root" 2>/dev/null || true
    # Should anything be mounted here all the same, it is not entered.
    rm -rf --one-file-system "$scratch" 2>/dev/null || { sleep 2 && rm -rf --one-file-system "$scratch"; }
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for deb; do
    echo "== ${deb##*/} in a clean root"
    name=${deb##*/}
    cp "$deb" "$scratch/packages/${name%%_*}.deb"
done
cd "$(dirname "$0")/.."
mkdir "$scratch/root"
cp scripts/package-test-inside.sh "$scratch/inside.sh"
apt-config dump Acquire >"$scratch/apt.conf"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' 'Origin: Debian' | sort -u >"$scratch/sources.list"
# Without lists there is mmdebstrap's own choice.
set -- "$suite" /dev/null
[ ! -s "$scratch/sources.list" ] || set -- "$@" "$scratch/sources.list"
TMPDIR="$scratch/root" setpriv --pdeathsig KILL \
    unshare --mount --pid --fork --kill-child --mount-proc \
    mmdebstrap --mode=root --variant=apt --quiet \
    --aptopt="$scratch/apt.conf" \
    --customize-hook="copy-in '$scratch/packages' '$scratch/inside.sh' /root" \
    --customize-hook='PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$1" sh /root/inside.sh' \
    "$@" &
root=$!
wait "$root"
root=""
if [ -n "$(ls -A "$scratch/root")" ] || grep -F "$scratch" /proc/self/mounts; then
    echo "left behind in $scratch/root" >&2
    exit 1
fi
echo "== each package is installed, runs, and leaves nothing"
