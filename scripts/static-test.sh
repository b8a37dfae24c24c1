#!/bin/sh
# Runs static programs in a root that has no other file, as root. The collector's broker is mosquitto, outside of that root.
#   usage: scripts/static-test.sh PROGRAM
set -eu
program=$(basename "$1")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/pubgauge-static-test.XXXXXX")
broker=""
clean_up() {
    [ -z "$broker" ] || kill "$broker" 2>/dev/null || true
    # Its mounts end with the namespace of `unshare`.
    rm -rf --one-file-system "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$scratch/proc" "$scratch/sys" "$scratch/dev" "$scratch/tmp"
cp "$1" "$scratch/$program"
cd "$scratch"
in_root() { # WORD...
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child sh -c '
        mount -t proc none proc && mount --rbind /sys sys && mount --rbind /dev dev
        exec chroot . "$@"
    ' sh "$@"
}
echo "== $program in an empty root"
case "$program" in
pubgauge)
    code=0
    in_root /pubgauge run --on reference-broker --on zeromq-direct --duration 2s --rate 1000/s --out /tmp/run || code=$?
    # 2: measured, and not valid on a machine that is busy.
    [ "$code" = 0 ] || [ "$code" = 2 ]
    for file in results.json report.html; do
        [ -s "tmp/run/$file" ] || { echo "no $file" >&2 && exit 1; }
    done
    ;;
pubgauge-collect)
    port=18836
    mosquitto -p "$port" >tmp/broker 2>&1 &
    broker=$!
    tries=0
    until mosquitto_pub -h 127.0.0.1 -p "$port" -q 1 -r -t meters/1 -m 1 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { cat tmp/broker >&2 && exit 1; }
        sleep 0.1
    done
    in_root /pubgauge-collect --on "mqtt://127.0.0.1:$port" --topic 'meters/#' --to /tmp/data --messages 1
    in_root /pubgauge-collect verify /tmp/data | grep -q '^1 message of 1 collector: 1 in 1 finished file'
    ;;
*)
    echo "no test for $program" >&2
    exit 3
    ;;
esac
if grep -F "$scratch" /proc/self/mounts; then
    echo "left behind in $scratch" >&2
    exit 1
fi
echo "== it works, and leaves nothing"
