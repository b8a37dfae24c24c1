#!/bin/sh
# Interrupts `pubgauge systems --install mosquitto` while dpkg is at work, each time in a fresh root of Debian's
# essential packages and apt: afterwards dpkg has nothing to complain of, and the system is installed. As root; the
# roots' processes and mounts are in namespaces that end with this script.
#   usage: scripts/interrupted-install-test.sh PROGRAM
set -eu
[ -x "${1:-}" ] || {
    echo "usage: $0 PROGRAM (target/release/pubgauge, or the static one)" >&2
    exit 3
}
program=$(realpath "$1")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/pubgauge-interrupted.XXXXXX")
child=""
clean_up() {
    [ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true
    rm -rf --one-file-system "$scratch" 2>/dev/null || { sleep 2 && rm -rf --one-file-system "$scratch"; }
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
apart() { setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc "$@" & child=$!; wait "$child"; child=""; }

apt-config dump Acquire >"$scratch/apt.conf"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' 'Origin: Debian' | sort -u >"$scratch/sources.list"
set -- "$suite" "$scratch/root.tar"
# Without lists there is mmdebstrap's own choice.
[ ! -s "$scratch/sources.list" ] || set -- "$@" "$scratch/sources.list"
apart env TMPDIR="$scratch" mmdebstrap --mode=root --variant=apt --quiet --aptopt="$scratch/apt.conf" "$@"

# Waits until dpkg has been at work for the given time, and sends the signal to pubgauge alone.
cat >"$scratch/inside.sh" <<'INSIDE'
set -eu
export LD_LIBRARY_PATH=/opt/pubgauge
# apt also asks dpkg for this and that before it installs anything.
is_installing() { cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -qe ' --[u]npack ' -e ' --[c]onfigure '; }
is_at_work() { is_installing || cat /proc/[0-9]*/comm 2>/dev/null | grep -qx -e apt-get -e dpkg; }
/opt/pubgauge/pubgauge systems --install mosquitto --yes >/said 2>&1 &
pubgauge=$!
until is_installing; do sleep 0.01; done
sleep "$1"
kill "-$2" "$pubgauge"
wait "$pubgauge" 2>/dev/null || true
while is_at_work; do sleep 0.1; done
found=$(dpkg --audit)
[ -z "$found" ] || { cat /said; echo "$found"; exit 1; } >&2
[ -z "$(ls /var/lib/dpkg/updates)" ] || { echo "dpkg has left notes" >&2; exit 1; }
dpkg --verify mosquitto
[ "$2" = KILL ] || grep -q 'finishes in the background' /said
/opt/pubgauge/pubgauge systems --install mosquitto --yes | grep '^mosquitto is installed already'
INSIDE

for case in "0.3 INT" "0.8 INT" "0.5 TERM" "0.5 KILL"; do
    root="$scratch/root"
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    tar -C "$root" -xf "$scratch/root.tar"
    cp /etc/resolv.conf "$root/etc/"
    cp "$scratch/apt.conf" "$root/etc/apt/apt.conf.d/99acquire"
    mkdir -p "$root/opt/pubgauge"
    cp "$program" "$root/opt/pubgauge/pubgauge"
    # Libraries of this machine that the root lacks.
    ldd "$program" | awk '$3 ~ /^\// { print $3 }' | while read -r library; do
        [ -e "$root/lib/x86_64-linux-gnu/${library##*/}" ] || cp -L "$library" "$root/opt/pubgauge/"
    done
    cp "$scratch/inside.sh" "$root/inside.sh"
    echo "== ${case#* } ${case% *} s into dpkg"
    apart sh -c 'mount -t proc proc "$1/proc" && PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root exec chroot "$1" sh /inside.sh $2 $3' \
        sh "$root" "${case% *}" "${case#* }"
done
echo "== each time dpkg was whole and the system installed"
