#!/bin/sh
# All tests of the workspace. Programs of tests that use real systems run three at a time: such systems spend most of
# their time starting, waiting and stopping. What does not depend on real time, the lints and a hostile day run beside
# them, with what they leave of the processors. What measures in real time comes when the others are over.
#   usage: scripts/test.sh CARGO FEATURES
set -eu
cargo="$1"
features="$2"
cd "$(dirname "$0")/.."
list=$(mktemp "${TMPDIR:-/tmp}/pubgauge-tests.XXXXXX")
trap 'rm -rf "$list" "$list".*' EXIT

"$cargo" test --workspace --locked --features "$features" --no-run --message-format=json-render-diagnostics >"$list"
# Lines of "FOLDER PROGRAM", as cargo would run them.
sed -n 's/.*"manifest_path":"\([^"]*\)\/Cargo.toml".*"test":true},"features".*"executable":"\([^"]*\)".*/\1 \2/p' "$list" >"$list.all"
[ -s "$list.all" ] || {
    echo "cargo built no tests" >&2
    exit 1
}
# What no package manager has, by the program that was built for the tests.
"${CARGO_TARGET_DIR:-target}/debug/pubgauge" systems --install all --yes
# What depends on nothing else that runs, and on no real time.
apart='/crates/((amqp-codec|mqtt-codec|driver|simulator|conformance|export|results|study|workload|search|claims|network) |lab .*/(pubgauge_lab|plan)-|testbed .*/counters-|runner .*/(search|pairs|claims)-|report .*/planted_pairs-)'
# Searches for a limit take nothing from a machine that others keep busy; margins of 1 % are planted in real time,
# and links carry their rate where processors are free.
last='/crates/(pubgauge .*/(find|under_stress|network)|lab .*/(network|wires))-'
# Ten minutes.
hostile='/crates/pubgauge .*/hostile-'
# The longest of the others.
ring='/crates/pubgauge .*/every_system-'
grep -E "$ring" "$list.all" >"$list.beside"
grep -Ev "$ring|$apart|$last|$hostile" "$list.all" >>"$list.beside"
grep -E "$hostile" "$list.all" >"$list.hostile"
grep -E "$apart" "$list.all" >"$list.apart"
grep -E "$last" "$list.all" >"$list.last"

# Simulated searches want every processor for minutes: they get what the real systems leave. These have sessions of
# their own, and the kernel may share processors between sessions first.
leftover() {
    setsid -w sh -c 'echo 19 2>/dev/null >/proc/self/autogroup; exec nice -n 19 "$@"' leftover "$@"
}

# One program: `sh -c "$one" one FOLDER PROGRAM ARGUMENT...`
one='cd "$1" && program="$2" && export CARGO_MANIFEST_DIR="$1" && shift 2 && exec "$program" "$@"'
export CARGO="$cargo"

begun=$(date +%s)
run() { # LIST STREAM COMMAND...: those of the list that no other stream has begun
    of="$1"
    stream="$1.$2"
    shift 2
    while read -r folder program; do
        name="${program##*/}"
        mkdir "$list.begun.$name" 2>/dev/null || continue
        echo "     Running $name ($(($(date +%s) - begun)) s)"
        { "$@" sh -c "$one" one "$folder" "$program" </dev/null ||
            echo "$folder $program" >"$list.failing.$stream"; } 2>&1 | tee "$list.said.$stream"
        [ -e "$list.failing.$stream" ] || continue
        rm "$list.failing.$stream"
        # The tests by name, if all that failed can be told.
        sed -n 's/^test \([^ ]*\) \.\.\. FAILED$/\1/p' "$list.said.$stream" >"$list.names.$stream"
        many=$(sed -n 's/^test result: FAILED\..* \([0-9]*\) failed;.*/\1/p' "$list.said.$stream")
        if [ "$of" = apart ] || [ "$many" != "$(wc -l <"$list.names.$stream" | tr -d ' ')" ]; then
            echo "$name" >>"$list.failed"
            continue
        fi
        sed "s|^|$folder $program |" "$list.names.$stream" >>"$list.again"
    done <"$list.$of"
}
: >"$list.failed"
: >"$list.again"
{
    run apart 1 leftover
    for what in lint-code check-docs check-fuzz check-dependencies check-msrv; do
        leftover make -s "$what" CARGO="$cargo" || echo "$what" >>"$list.failed"
    done
} >"$list.out.apart" 2>&1 &
run hostile 1 leftover env PUBGAUGE_HOSTILE_SECONDS="${PUBGAUGE_HOSTILE_SECONDS:-600}" >"$list.out.hostile" 2>&1 &
run beside 2 env >"$list.out.2" 2>&1 &
run beside 3 env >"$list.out.3" 2>&1 &
run beside 1 env 2>&1
wait
cat "$list.out.2" "$list.out.3" "$list.out.apart" "$list.out.hostile"
run last 1 env 2>&1
# What depends on real time may have failed for want of a processor: it is asked once more, alone.
while read -r folder program test; do
    echo "     Once more, alone: ${program##*/} $test"
    sh -c "$one" one "$folder" "$program" --exact "$test" </dev/null ||
        echo "${program##*/} $test" >>"$list.failed"
done <"$list.again"
"$cargo" test --workspace --locked --features "$features" --doc
[ ! -s "$list.failed" ] || {
    echo "failed:" $(cat "$list.failed") >&2
    exit 1
}
