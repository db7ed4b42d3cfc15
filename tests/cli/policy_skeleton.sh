#!/bin/bash
# The skeleton of allocators/skeleton, built as a shared object as its first comment says, passes
# the conformance tests and the random operations that built-in policies pass, and runs.
set -u
cc=${CC:-cc}
if ! command -v "$cc" >/dev/null; then
    echo "skip policy_skeleton: no C compiler"
    exit 0
fi
object=$TEST_TMP/mine.so
tests=.build/${TEST_VARIANT:-release}/tests/property

check() { # NAME COMMAND...
    local name=$1
    shift
    if "$@" >"$TEST_TMP/$name.log" 2>&1; then
        echo "ok $name"
    else
        echo "not ok $name"
        tail -n 20 "$TEST_TMP/$name.log"
    fi
}

check skeleton_builds "$cc" -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -O2 -shared -fPIC -I. \
    -o "$object" allocators/skeleton/skeleton.c
for test in conformance random; do
    if [ -x "$tests/test_$test" ]; then
        check "skeleton_passes_$test" env POLICY="$object" OPS=20000 "$tests/test_$test"
    else
        echo "skip skeleton_passes_$test: $tests/test_$test is not built"
    fi
done
check skeleton_runs "$ALLOCRIG" run -p "checked+$object:least=4KiB" -w order_flip -d sim
check it_is_in_the_table grep -q "checked+$object" "$TEST_TMP/skeleton_runs.log"
check it_is_listed "$ALLOCRIG" list policies "$object"
check its_options_are_listed grep -qE '^least +bytes ' "$TEST_TMP/it_is_listed.log"

# The copy as allocators/README.md makes it says nothing of the skeleton; its faults are told as written there.
sed 's/skeleton/mine/g' allocators/skeleton/skeleton.c >"$TEST_TMP/copy.c"
"$cc" -std=c11 -O2 -shared -fPIC -I. -o "$TEST_TMP/copy.so" "$TEST_TMP/copy.c"
"$ALLOCRIG" list policies "$TEST_TMP/copy.so" >"$TEST_TMP/copy.out"
check copy_is_of_its_own eval '! grep -qE "skeleton|template|allocators/mine" "$TEST_TMP/copy.out"'
sed '/ar_policy_ungrant(/d' "$TEST_TMP/copy.c" >"$TEST_TMP/bad.c"
"$cc" -std=c11 -O2 -shared -fPIC -I. -o "$TEST_TMP/bad.so" "$TEST_TMP/bad.c"
"$ALLOCRIG" run -p "checked+$TEST_TMP/bad.so" -w order_flip -d sim >"$TEST_TMP/bad.out" 2>&1
check a_fault_has_its_status [ $? = 4 ]
said=$(tr -s ' \n' ' ' <"$TEST_TMP/bad.out")
check a_fault_is_told_once [ "$(grep -o 'DNF: broke the contract: event 8: a free failed: call 9: live bytes are 134217728, the blocks have 117440512' <<<"$said" | wc -l)" = 1 ]
check a_fault_counts_no_events eval '! grep -q "0 events" <<<"$said"'
refused() { "$ALLOCRIG" run -p "$1" -w order_flip -d sim | tr -s ' \n' ' ' | grep -qF "capacity, a request of 16.00 MiB; $2 (the device has 78."; }
check the_decorator_fault_is_named refused "fault(every=2)+$object" 'refused by the decorator fault'
check the_decorator_limit_is_named refused "limit(bytes=64MiB)+$object" 'refused by the decorator limit'
check the_limit_is_named refused "$object:limit=64MiB" 'past limit=64.00 MiB'
check a_full_device_is_not eval '! "$ALLOCRIG" run -p torch -w order_flip -d sim:capacity=64MiB | grep -q "refused by|past limit"'

# A trim that does nothing, and a flush that room does not know, fail the conformance test.
finds() { # NAME SED_SCRIPT SENTENCE
    local name=$1
    sed "$2" "$TEST_TMP/copy.c" >"$TEST_TMP/$name.c"
    "$cc" -std=c11 -O2 -shared -fPIC -I. -o "$TEST_TMP/$name.so" "$TEST_TMP/$name.c"
    POLICY=$TEST_TMP/$name.so "$tests/test_conformance" >"$TEST_TMP/$name.out" 2>&1
    check "$name" eval "[ $? != 0 ] && grep -q '$3' '$TEST_TMP/$name.out'"
}
if [ -x "$tests/test_conformance" ]; then
    finds an_idle_trim_is_found '/^static enum ar_status mine_trim/,/^}/s/^    while (/    while (keep_bytes \&\& /' \
        'all blocks are free, and trim(0) leaves [0-9]* releasable bytes'
    finds a_missing_room_is_found '/\.room = /d' 'has a free block of [0-9]* bytes, and no hook room that says so'
    finds a_servable_that_is_too_large_is_found 's/class_within(free_bytes + .*)/& + 1/; s/together < free_bytes/true/' \
        'servable(EFFORT_TRIM) returns [0-9]*, and a request of so many bytes is not served'
    finds a_servable_without_the_limit_is_found 's/ar_policy_rest(base, self->limit_bytes)/0/' \
        'the limit allows [0-9]* more, and [0-9]* bytes are served'
    finds an_ignored_limit_is_found 's/ar_policy_limit(&given->common)/UINT64_MAX/' 'bytes are reserved, above limit=67108864'
    finds uncounted_failures_are_found '/count.failures +=/d' 'the counter `failures` is 0, alloc has returned NO_MEMORY 1 times'
    finds a_wrong_watch_is_told '/ar_policy_free_removed(/d' 'CORRUPT at operation [0-9]*: .*usable_bytes of the watch is'
    finds a_leak_is_told '/ar_range_pool_close(/d' 'leaves [1-9][0-9]* host bytes and 0 device bytes behind'
    check a_wrong_name_is_one_sentence [ "$(POLICY=growht "$tests/test_conformance" 2>&1 | tr '\n' '|')" = 'POLICY: there is no policy "growht"; did you mean "growth"?|' ]
fi

# A node that no reserve covers ends the run with a sentence, before it damages the heap.
sed 's/ar_range_pool_reserve(&self->segments, 1)/ar_range_pool_reserve(\&self->segments, 0)/' "$TEST_TMP/copy.c" >"$TEST_TMP/over.c"
"$cc" -std=c11 -O2 -shared -fPIC -I. -o "$TEST_TMP/over.so" "$TEST_TMP/over.c"
"$ALLOCRIG" run -p "checked+$TEST_TMP/over.so" -w random:events=20000 -d sim >"$TEST_TMP/over.out" 2>"$TEST_TMP/over.err"
check a_crash_has_the_status_of_a_fault [ $? = 4 ]
check a_crash_is_told grep -q 'DNF: crashed: signal 6' "$TEST_TMP/over.out"
check a_missing_reserve_is_told grep -q 'ar_range_pool_reserve was called for fewer nodes' "$TEST_TMP/over.err"

# A policy on the heap brings the sources of what the program does not offer; without them the error says so.
sed 's/^const struct ar_policy_ops cupy_policy/extern &;\n&/' allocators/policies/cupy.c >"$TEST_TMP/heap.c"
printf '\nconst struct ar_policy_ops *allocrig_policy(void);\nconst struct ar_policy_ops *allocrig_policy(void)\n{\n    return \&cupy_policy;\n}\n' | sed 's/\\&/\&/' >>"$TEST_TMP/heap.c"
"$cc" -std=c11 -O2 -shared -fPIC -I. -o "$TEST_TMP/alone.so" "$TEST_TMP/heap.c"
"$ALLOCRIG" run -p "$TEST_TMP/alone.so" -w order_flip -d sim >"$TEST_TMP/alone.out" 2>&1
check a_name_that_is_not_offered_is_bad_input [ $? = 2 ]
check what_to_do_about_it_is_said grep -q 'add the source of this one to the shared object' <(tr -s ' \n' ' ' <"$TEST_TMP/alone.out")
check heap_builds "$cc" -std=c11 -O2 -shared -fPIC -I. -o "$TEST_TMP/heap.so" "$TEST_TMP/heap.c" allocators/heap.c allocators/deferred.c
check heap_runs "$ALLOCRIG" run -p "checked+$TEST_TMP/heap.so" -w order_flip -d sim

# A policy that keeps its segments when it is destroyed is reported after its run.
sed '/^static void skeleton_destroy/,/^}/{/ar_range_tree_next/d; /ar_backing_segment_free/d}' allocators/skeleton/skeleton.c >"$TEST_TMP/keeps.c"
check keeping_builds "$cc" -std=c11 -O2 -shared -fPIC -I. -o "$TEST_TMP/keeps.so" "$TEST_TMP/keeps.c"
"$ALLOCRIG" run -p "$TEST_TMP/keeps.so" -w order_flip -d sim >"$TEST_TMP/keeps.out" 2>&1
status=$?
check keeping_is_refused [ $status = 4 ]
check keeping_is_told grep -q 'still holds [0-9]* bytes of the device after its destroy()' <(tr -s ' \n' ' ' <"$TEST_TMP/keeps.out")
