#!/bin/sh
# `cargo install` without the DDS libraries, as on a machine that has a compiler and nothing else; the
# programs then have to work in an empty folder, away from the checkout. Shares the workspace's build folder:
# target/release/pubgauge is the one without DDS afterwards.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d "${TMPDIR:-/tmp}/pubgauge-install-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "== cargo install, away from the checkout"
for crate in pubgauge collect; do
    "${CARGO:-cargo}" install --path "crates/$crate" --locked --quiet --root "$scratch/cargo"
done
mkdir "$scratch/empty"
cd "$scratch/empty"
run() { env -i HOME="$scratch/empty" PATH="$scratch/cargo/bin:/usr/bin:/bin" "$@"; }
run pubgauge schema study >study.schema.json
run pubgauge plan >plan.txt
run pubgauge systems >systems.txt
grep -Eq '^reference-broker +mqtt +found' systems.txt
code=0
run pubgauge run --on reference-broker,zeromq-direct --duration 1s --rate 100/s --out run || code=$?
[ "$code" = 0 ] || [ "$code" = 2 ] # 2: a machine too busy to be trusted
test -s run/report.html
run pubgauge-collect schema >collect.schema.json
run pubgauge collect schema | cmp - collect.schema.json
