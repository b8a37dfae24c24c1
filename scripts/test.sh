#!/bin/sh
# All tests of the workspace, in three groups side by side: real systems spend most of their time starting,
# waiting and stopping. The third, with what the others leave of the processors, has what does not depend on
# real time. What measures in real time comes when the others are over.
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
# What depends on nothing else that runs, and on no real time.
third='/crates/((amqp-codec|mqtt-codec|driver|simulator|conformance|export|results|study|workload|search|claims|network) |lab .*/(pubgauge_lab|plan)-|testbed .*/counters-|runner .*/(search|pairs|bursts|claims)-|report .*/planted_pairs-)'
# The program, the ring of all systems first, what shares its shared memory with that ring: DDS, and what makes network
# namespaces, in which that ring looks for leftovers.
ring='/crates/pubgauge .*/every_system-'
# Ten minutes of strangers, kills and mutated files, beside the others once that ring, which counts datagrams, is over.
hostile='/crates/pubgauge .*/hostile-'
# Searches for a limit take nothing from a machine that others keep busy; margins of 1 % are planted in real time,
# and links carry their rate where processors are free.
last='/crates/(pubgauge .*/(find|under_stress|network)|lab .*/(network|wires))-'
first='/crates/((pubgauge|drivers/(cyclonedds|fastdds|dds-mixed)) |testbed .*/interface-|lab .*/killed_owner-)'
# Of the program's own, what starts systems that share nothing with that ring.
second='/crates/pubgauge .*/(scratch|terminal)-'
grep -E "$ring" "$list.all" >"$list.ring"
grep -E "$first" "$list.all" | grep -Ev "$ring|$hostile|$last|$second" >"$list.1"
grep -Ev "$first|$third|$last" "$list.all" >"$list.2"
grep -E "$second" "$list.all" >>"$list.2"
grep -E "$third" "$list.all" >"$list.3"
grep -E "$hostile" "$list.all" >"$list.hostile"
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
run() { # GROUP COMMAND...
    group="$1"
    shift
    while read -r folder program; do
        echo "     Running ${program##*/} ($(($(date +%s) - begun)) s)"
        { "$@" sh -c "$one" one "$folder" "$program" </dev/null ||
            echo "$folder $program" >"$list.failing.$group"; } 2>&1 | tee "$list.said.$group"
        [ -e "$list.failing.$group" ] || continue
        rm "$list.failing.$group"
        # The tests by name, if all that failed can be told.
        sed -n 's/^test \([^ ]*\) \.\.\. FAILED$/\1/p' "$list.said.$group" >"$list.names.$group"
        many=$(sed -n 's/^test result: FAILED\..* \([0-9]*\) failed;.*/\1/p' "$list.said.$group")
        if [ "$group" = 3 ] || [ "$many" != "$(wc -l <"$list.names.$group" | tr -d ' ')" ]; then
            echo "${program##*/}" >>"$list.failed"
            continue
        fi
        sed "s|^|$folder $program |" "$list.names.$group" >>"$list.again"
    done <"$list.$group"
}
: >"$list.failed"
: >"$list.again"
run 2 env >"$list.out.2" 2>&1 &
run 3 leftover >"$list.out.3" 2>&1 &
run ring env 2>&1
run hostile env PUBGAUGE_HOSTILE_SECONDS="${PUBGAUGE_HOSTILE_SECONDS:-600}" >"$list.out.hostile" 2>&1 &
run 1 env 2>&1
wait
cat "$list.out.3" "$list.out.2" "$list.out.hostile"
run last env 2>&1
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
