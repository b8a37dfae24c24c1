#!/bin/sh
# The gate, or everything. The lints run beside the tests, with what these leave of the processors.
#   usage: scripts/test.sh gate|all CARGO FEATURES
set -eu
what="$1"
export CARGO="$2"
features="$3"
cd "$(dirname "$0")/.."
tools="$PWD/target/tools/python/bin"
export PATH="$tools:$PATH"
said=$(mktemp "${TMPDIR:-/tmp}/pubgauge-lints.XXXXXX")
trap 'rm -f "$said" "$said.failed"' EXIT

tests() { # ARGUMENT...
    "$CARGO" nextest run --workspace --locked --features "$features" "$@"
}
failed=""
group() { # NAME COMMAND...
    name="$1"
    shift
    begun=$(date +%s)
    "$@" || failed="$failed $name"
    times="${times:-}$(printf '%7d s  %s' $(($(date +%s) - begun)) "$name")
"
}

group build tests --no-run
[ -z "$failed" ] || exit 1
lints="lint-code"
if [ "$what" = all ]; then
    lints="lint-code lint-without-dds check-docs check-fuzz check-dependencies check-msrv"
    # What no package manager has.
    group systems "${CARGO_TARGET_DIR:-target}/debug/pubgauge" systems --install all --yes
fi
# In a session of their own at the lowest priority: the kernel may share processors between sessions first.
setsid -w sh -c 'echo 19 2>/dev/null >/proc/self/autogroup
    for lint in $1; do nice -n 19 make -s "$lint" CARGO="$CARGO" || echo "$lint" >>"$2"; done' \
    lints "$lints" "$said.failed" >"$said" 2>&1 &
beside=$!
if [ "$what" = all ]; then
    export PUBGAUGE_HOSTILE_SECONDS="${PUBGAUGE_HOSTILE_SECONDS:-600}"
    group "all tests but those of real time" tests --profile all
else
    export PUBGAUGE_HOSTILE_SECONDS=60 PUBGAUGE_HOSTILE_SEED=28
    group gate tests
fi
group "lints, the rest" wait "$beside"
cat "$said"
[ ! -s "$said.failed" ] || failed="$failed $(tr '\n' ' ' <"$said.failed")"
if [ "$what" = all ]; then
    # Nothing else runs beside these.
    group "real time" tests --profile real-time
    group "examples in the documentation" "$CARGO" test --workspace --locked --features "$features" --doc --quiet
    group packages make -s package-test CARGO="$CARGO"
fi
printf '%s' "$times"
[ -z "$failed" ] || {
    echo "failed:$failed" >&2
    exit 1
}
