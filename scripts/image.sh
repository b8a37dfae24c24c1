#!/bin/sh
# Builds the OCI image (Containerfile), tries it and writes it to FILE, with podman, buildah or docker, whichever works here.
#   usage: scripts/image.sh FILE
# Exit code 4: none of them works, and nothing was written.
set -eu
cd "$(dirname "$0")/.."
file="$1"
works() { command -v "$1" >/dev/null 2>&1 && "$1" info >/dev/null 2>&1; }
for engine in podman docker; do
    works "$engine" || continue
    "$engine" build -f Containerfile -t pubgauge:release . >&2
    echo "== the image" >&2
    code=0
    "$engine" run --rm --init pubgauge:release run --on mosquitto,zeromq-direct --duration 1s --rate 100/s >&2 || code=$?
    [ "$code" = 0 ] || [ "$code" = 2 ] # 2: a machine too busy to be trusted
    "$engine" save pubgauge:release | gzip -n >"$file.part"
    mv "$file.part" "$file"
    exit
done
echo "no image: neither podman nor docker works here" >&2
exit 4
