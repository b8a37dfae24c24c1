#!/bin/sh
# Runs the static program in a root that has no other file, as root.
#   usage: scripts/static-test.sh PROGRAM
set -eu
scratch=$(mktemp -d "${TMPDIR:-/tmp}/pubgauge-static-test.XXXXXX")
# Its mounts end with the namespace of `unshare`.
trap 'rm -rf --one-file-system "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$scratch/proc" "$scratch/sys" "$scratch/dev" "$scratch/tmp"
cp "$1" "$scratch/pubgauge"
cd "$scratch"
echo "== pubgauge in an empty root"
code=0
setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child sh -c '
    mount -t proc none proc && mount --rbind /sys sys && mount --rbind /dev dev
    exec chroot . /pubgauge run --on reference-broker --on zeromq-direct --duration 2s --rate 1000/s --out /tmp/run
' || code=$?
# 2: measured, and not valid on a machine that is busy.
[ "$code" = 0 ] || [ "$code" = 2 ]
for file in results.json report.html; do
    [ -s "tmp/run/$file" ] || { echo "no $file" >&2 && exit 1; }
done
if grep -F "$scratch" /proc/self/mounts; then
    echo "left behind in $scratch" >&2
    exit 1
fi
echo "== it measures, and leaves nothing"
