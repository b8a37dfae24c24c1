#!/bin/sh
# Coverage-guided fuzzing of everything that reads bytes from outside, with the stable compiler: libFuzzer wants
# LLVM's coverage counters in the code, which a compiler pass of rustc puts there.
#   usage: scripts/fuzz.sh CARGO INPUTS [TARGET...]
# Each target begins with what earlier runs have found (fuzz/seeds/TARGET.tar.gz) or with the project's own files; what
# is found on the way goes to target/fuzz/corpus/TARGET, what breaks a target to target/fuzz/broken/. Ends with 1 if
# anything broke.
set -eu
cargo="$1"
inputs="$2"
shift 2
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- $(sed -n 's/^name = "\([a-z_]*\)"$/\1/p' fuzz/Cargo.toml)
out="$PWD/target/fuzz"
mkdir -p "$out/broken"
triple=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1" \
    "$cargo" build --quiet --release --manifest-path fuzz/Cargo.toml --target "$triple" --target-dir "$out"

failed=""
total=0
for target in "$@"; do
    mkdir -p "$out/corpus/$target"
    own=""
    case "$target" in
        study_file) own="studies" ;;
        system_file) own="systems" ;;
    esac
    [ ! -f "fuzz/seeds/$target.tar.gz" ] || tar -xzf "fuzz/seeds/$target.tar.gz" -C "$out/corpus/$target"
    # A target that stands still for 25 s or takes 2 GB is broken, too.
    # shellcheck disable=SC2086 # the list is meant to be split
    "$out/$triple/release/$target" -runs="$inputs" -timeout=25 -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 \
        -artifact_prefix="$out/broken/$target-" "$out/corpus/$target" $own >"$out/$target.log" 2>&1 ||
        failed="$failed $target"
    tried=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$target.log")
    total=$((total + ${tried:-0}))
    printf '%-16s %12s inputs %8s per s\n' "$target" "${tried:-0}" \
        "$(sed -n 's/^stat::average_exec_per_sec: *//p' "$out/$target.log")"
done
printf '%-16s %12s inputs\n' total "$total"
[ -z "$failed" ] || {
    echo "broken:$failed; see target/fuzz/TARGET.log, and target/fuzz/broken/ for the inputs" >&2
    exit 1
}
