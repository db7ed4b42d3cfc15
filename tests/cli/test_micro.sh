#!/bin/bash
# The micro-benchmarks build and run, and the instruction counts keep their bars. Release only: the
# numbers of an instrumented build mean nothing.
set -u
check() { if "${@:2}"; then echo "ok $1"; else echo "not ok $1"; fi; }
build=.build/release
if [ "$TEST_VARIANT" != release ]; then
    echo "skip micro: only the release build is measured"
    exit 0
fi

if printf '#include <benchmark/benchmark.h>\n' | "${CXX:-g++}" -E -x c++ - >/dev/null 2>&1; then
    check micro_builds make -s $build/bench/micro/micro
    RESULTS=$TEST_TMP MICRO_FLAGS='--benchmark_filter=growth|loop_only --benchmark_min_time=0.001' \
        bench/micro/run.sh $build micro >"$TEST_TMP/micro.txt" 2>&1
    check micro_has_the_reference_loop grep -qE '^\(loop only\) +[0-9]+\.[0-9]' "$TEST_TMP/micro.txt"
    check micro_has_each_column [ "$(awk '$1 == "growth" { print NF }' "$TEST_TMP/micro.txt")" = 7 ]
    check micro_leaves_out_what_was_not_run grep -qE '^null +- +-' "$TEST_TMP/micro.txt"
    check micro_writes_json grep -q '"cpu_time"' "$TEST_TMP/micro.json"
else
    echo "skip micro: Google Benchmark is not installed"
fi

if command -v valgrind >/dev/null; then
    check instructions_build make -s $build/bench/micro/instructions
    RESULTS=$TEST_TMP QUICK=1 bench/micro/run.sh $build instructions >"$TEST_TMP/instructions.out" 2>&1
    status=$?
    cat "$TEST_TMP/instructions.out"
    check instructions_end_well [ $status = 0 ]
    check instructions_meet_all_bars grep -q '^all bars met' "$TEST_TMP/instructions.out"
    check instructions_judged_all [ "$(grep -o "met (<=" "$TEST_TMP/instructions.out" | wc -l)" = 24 ]
else
    echo "skip instructions: valgrind is not installed"
fi
