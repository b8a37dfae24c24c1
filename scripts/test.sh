#!/bin/sh
# All tests of the workspace, in two groups side by side: real systems spend most of their time starting,
# waiting and stopping. Meanwhile, at a low priority, the second group runs what does not depend on real
# time: what starts none of them, and counts to the message.
#   usage: scripts/test.sh CARGO FEATURES
set -eu
cargo="$1"
features="$2"
cd "$(dirname "$0")/.."
list=$(mktemp "${TMPDIR:-/tmp}/pubgauge-tests.XXXXXX")
trap 'rm -f "$list" "$list".*' EXIT

"$cargo" test --workspace --locked --features "$features" --no-run --message-format=json-render-diagnostics >"$list"
# Lines of "FOLDER PROGRAM", as cargo would run them.
sed -n 's/.*"manifest_path":"\([^"]*\)\/Cargo.toml".*"test":true},"features".*"executable":"\([^"]*\)".*/\1 \2/p' "$list" >"$list.all"
[ -s "$list.all" ] || {
    echo "cargo built no tests" >&2
    exit 1
}
# What no package manager has, by the program that was built for the tests.
"${CARGO_TARGET_DIR:-target}/debug/pubgauge" systems --install all --yes
second='/crates/((amqp-codec|mqtt-codec|driver|simulator|conformance|export|report|results|runner|study|workload) |testbed .*/counters-)'
grep -Ev "$second" "$list.all" >"$list.1"
grep -E "$second" "$list.all" >"$list.2"

run() { # GROUP COMMAND...
    group="$1"
    shift
    failed=""
    while read -r folder program; do
        echo "     Running ${program##*/}"
        # Java servers wait more than they work while they start: one test more than there are cores.
        case "${program##*/}" in every_system-*) threads=$(($(nproc) + 1)) ;; *) threads=$(nproc) ;; esac
        (cd "$folder" && RUST_TEST_THREADS="$threads" CARGO="$cargo" CARGO_MANIFEST_DIR="$folder" \
            "$@" "$program") </dev/null ||
            failed="$failed ${program##*/}"
    done <"$list.$group"
    echo "$failed" >"$list.failed.$group"
}
run 2 nice >"$list.out" 2>&1 &
run 1 env 2>&1
wait
cat "$list.out"
"$cargo" test --workspace --locked --features "$features" --doc
failed=$(cat "$list.failed.1" "$list.failed.2" | tr -d '\n')
[ -z "$failed" ] || {
    echo "failed:$failed" >&2
    exit 1
}
