#!/bin/sh
# The step of action.yml: gets pubgauge, runs it, writes the answer into the summary of the step.
# Environment: STUDY, ARGUMENTS, RESULTS, WHEEL, UNDECIDED_IS_FAILURE as inputs of the action; GITHUB_STEP_SUMMARY and
# GITHUB_OUTPUT of the runner.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
if [ -n "$WHEEL" ]; then
    # The runner's Python may be one that its distribution manages.
    python3 -m venv "${RUNNER_TEMP:-/tmp}/pubgauge-venv"
    "${RUNNER_TEMP:-/tmp}/pubgauge-venv/bin/pip" install --quiet "$WHEEL"
    PATH="${RUNNER_TEMP:-/tmp}/pubgauge-venv/bin:$PATH"
elif ! command -v pubgauge >/dev/null 2>&1; then
    cargo install --quiet --locked --path "$here/crates/pubgauge" --root "${RUNNER_TEMP:-/tmp}/pubgauge"
    PATH="${RUNNER_TEMP:-/tmp}/pubgauge/bin:$PATH"
fi
code=0
# Arguments are words; no pattern among them is a file's name.
set -f
# shellcheck disable=SC2086
pubgauge run ${STUDY:+"$STUDY"} $ARGUMENTS --out "$RESULTS" --annotations github || code=$?
set +f
if [ -f "$RESULTS/results.json" ]; then
    pubgauge export "$RESULTS" --format markdown --out - >>"$GITHUB_STEP_SUMMARY"
elif [ -f "$RESULTS/index.json" ]; then
    # Several studies: the answer of each.
    for run in "$RESULTS"/*/results.json; do
        pubgauge export "${run%/results.json}" --format markdown --out - >>"$GITHUB_STEP_SUMMARY"
    done
fi
printf 'results=%s\ncode=%s\n' "$RESULTS" "$code" >>"$GITHUB_OUTPUT"
[ "$code" != 2 ] || [ "$UNDECIDED_IS_FAILURE" = true ] || exit 0
exit "$code"
