#!/bin/bash
# The plug-in and the program together: what a policy did inside a program, on the stand-in for the driver, is what the
# simulated device says of the recorded trace. Policies in shared objects work in both.
# shellcheck disable=SC2317 # functions are called by `check`
set -u
# shellcheck source=tests/cli/lib.bash
. tests/cli/lib.bash

build=$PWD/.build/$TEST_VARIANT
stand_in=$build/tests/cuda_stand_in
plugin=$build/liballocrig_torch.so
cc=${CC:-cc}
if [ ! -f "$plugin" ] || ! command -v "$cc" >/dev/null; then
    echo "skip plugin: it was not built, since cuda.h was not found, or there is no C compiler"
    exit 0
fi
sanitize=()
[ "$TEST_VARIANT" = san ] && sanitize=("-fsanitize=address,undefined")
[ "$TEST_VARIANT" = tsan ] && sanitize=(-fsanitize=thread)
cuda=$(for folder in ${CUDA_HOME:+"$CUDA_HOME/include"} /usr/local/cuda/include; do
    [ -f "$folder/cuda.h" ] && echo "-isystem $folder" && break
done)
# shellcheck disable=SC2086 # two words, or none
check it_builds "$cc" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -O1 "${sanitize[@]}" -I. $cuda \
    -o "$TEST_TMP/program" tests/cli/plugin_program.c -ldl

# under POLICY: the program, recorded, with its statistics; then the trace of it
under() {
    rm -f "$TEST_TMP"/t.*
    LD_LIBRARY_PATH=$stand_in ALLOCRIG_POLICY=$1 ALLOCRIG_TRACE=$TEST_TMP/t.trace \
        ALLOCRIG_STATS=$TEST_TMP/t.json "$TEST_TMP/program" "$plugin" >"$out" 2>"$err"
}

# figure NAME FILE: a number of a JSON file
figure() { sed -nE "s/.*\"$1\": ([0-9]+).*/\1/p" "$2" | head -n 1; }

# same NAME NAME-IN-THE-RESULT: the plug-in's figure, and the simulated run's
same() {
    local one two
    one=$(figure "$1" "$TEST_TMP/t.json")
    two=$(figure "$2" "$TEST_TMP/run.json")
    echo "  $1: $one, $2: $two"
    [ -n "$one" ] && [ "$one" = "$two" ]
}

for policy in torch torch:expandable_segments=true growth:limit=8GiB best-fit tlsf vmm slab checked+cupy; do
    check "${policy}_serves" under "$policy"
    run run -p "$policy" -w "$TEST_TMP/t.trace" -d "sim:capacity=79GiB" --json "$TEST_TMP/run.json"
    check "${policy}_is_replayed" [ "$status" = 0 ]
    check "${policy}_was_asked_the_same" same requests allocs
    check "${policy}_held_the_same_live" same peak_live_bytes peak_live_bytes
    case $policy in
    *vmm* | slab) ;; # they look at what the card has left, which the stand-in and sim do not say alike
    *) check "${policy}_reserved_the_same" same peak_reserved_bytes peak_reserved_bytes ;;
    esac
done
check steps_are_marked grep -q '^m,step$' "$TEST_TMP/t.trace"

if [ "$TEST_VARIANT" = release ]; then
    check a_policy_builds "$cc" -std=c11 -O2 -shared -fPIC -I. -o "$TEST_TMP/mine.so" allocators/skeleton/skeleton.c
    check it_serves_a_program under "checked+$TEST_TMP/mine.so:least=4KiB"
    check it_is_named grep -q "mine.so:least=4KiB" "$TEST_TMP/t.json"
fi

finish
