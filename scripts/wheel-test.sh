#!/bin/sh
# Installs a wheel in a clean environment of Python, away from the checkout, and takes a short look with it.
#   usage: scripts/wheel-test.sh target/wheels/pubgauge-*.whl
set -eu
wheel=$(realpath "$1")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/pubgauge-wheel-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
echo "== ${wheel##*/} in a clean environment"
python3 -m venv "$scratch/venv"
# The wheel needs no other package: without an index none could be had.
"$scratch/venv/bin/pip" install --quiet --no-index --disable-pip-version-check "$wheel"
mkdir "$scratch/empty"
cd "$scratch/empty"
run() { env -i HOME="$scratch/empty" PATH="$scratch/venv/bin:/usr/bin:/bin" "$@"; }
run pubgauge --version
run pubgauge plan >plan.txt
code=0
run pubgauge run --on reference-broker,zeromq-direct --duration 1s --rate 100/s --out run || code=$?
[ "$code" = 0 ] || [ "$code" = 2 ] # 2: a machine too busy to be trusted
test -s run/report.html
"$scratch/venv/bin/pip" uninstall --quiet --yes pubgauge
[ ! -e "$scratch/venv/bin/pubgauge" ]
echo "== it is installed, runs, and is gone again"
