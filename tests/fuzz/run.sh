#!/bin/bash
# Runs each fuzz target with clang's fuzzer. Usage: tests/fuzz/run.sh BUILD_FOLDER SECONDS
# New inputs go to BUILD_FOLDER/corpus; an input that breaks something is left in
# BUILD_FOLDER/broken: make it small, give it a name, commit it to tests/fuzz/corpus/TARGET.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$1
seconds=$2
status=0
for source in tests/fuzz/fuzz_*.c; do
    target=$(basename "$source" .c)
    mkdir -p "$build/corpus/$target" "$build/broken"
    tests/fuzz/words.py "${target#fuzz_}" >"$build/words"
    echo "$target, $seconds s"
    if ! "$build/tests/fuzz/$target" -max_total_time="$seconds" -max_len=65536 -timeout=10 -dict="$build/words" \
        -print_final_stats=0 -artifact_prefix="$build/broken/$target-" "$build/corpus/$target" \
        "tests/fuzz/corpus/${target#fuzz_}" >"$build/$target.log" 2>&1; then
        tail -n 30 "$build/$target.log"
        status=1
    fi
done
exit $status
