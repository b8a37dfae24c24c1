#!/bin/sh
# The gate, or everything, group by group; the time of each stands at the end.
#   usage: scripts/test.sh gate|all CARGO FEATURES
set -eu
what="$1"
export CARGO="$2"
features="$3"
cd "$(dirname "$0")/.."
tools="$PWD/target/tools/python/bin"
export PATH="$tools:$PATH"

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
lints="lint-code ratchet"
[ "$what" = gate ] || lints="lint-code lint-without-dds check-docs check-fuzz check-dependencies check-msrv ratchet lint-workflows"
for lint in $lints; do
    group "$lint" make -s "$lint" CARGO="$CARGO"
done
if [ "$what" = all ]; then
    # What no package manager has.
    group systems "${CARGO_TARGET_DIR:-target}/debug/pubgauge" systems --install all --yes
    export PUBGAUGE_HOSTILE_SECONDS="${PUBGAUGE_HOSTILE_SECONDS:-600}"
    group "all tests but those of real time" tests --profile all
else
    export PUBGAUGE_HOSTILE_SECONDS=60 PUBGAUGE_HOSTILE_SEED=28
    group gate tests
fi
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
