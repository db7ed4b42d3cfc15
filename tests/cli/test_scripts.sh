#!/bin/bash
# The scripts of bench, plots and tests say how they are used, in 80 columns, and do nothing else then.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only scripts 'starts no program of this build'
for script in bench/suite/*.sh plots/*.sh bench/micro/*.sh bench/regress/regress.sh bench/library/*.sh bench/leaderboard/*.sh tests/run.sh; do
    for option in --help -h; do
        bash "$script" $option >"$out" 2>"$err" </dev/null
        status=$?
        name=$(basename "$script" .sh)
        check "$name$option.ends_well" [ "$status" = 0 -a ! -s "$err" ]
        check "$name$option.says_usage" grep -qiE '\<usage:' "$out"
        check "$name$option.names_itself" grep -qF "$script" "$out"
        check "$name$option.is_narrow" [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
    done
done

# A page that is not measured to its end stays as it was: valgrind ends the script here.
mkdir -p "$TEST_TMP/build/bench/micro" "$TEST_TMP/bin"
printf '#!/bin/bash\necho p\n' >"$TEST_TMP/build/bench/micro/instructions"
printf '#!/bin/bash\nkill "$SIZES"\n' >"$TEST_TMP/bin/valgrind"
chmod +x "$TEST_TMP/build/bench/micro/instructions" "$TEST_TMP/bin/valgrind"
echo before >"$TEST_TMP/page"
(SIZES=$BASHPID PATH=$TEST_TMP/bin:$PATH exec bash bench/micro/sizes.sh -o "$TEST_TMP/page" "$TEST_TMP/build") >"$out" 2>&1
check interrupted_sizes_end [ $? -gt 128 ]
check interrupted_sizes_leave_the_page [ "$(cat "$TEST_TMP/page")" = before ]
sed -i 's/^kill.*/exit 1/' "$TEST_TMP/bin/valgrind"
PATH=$TEST_TMP/bin:$PATH bash bench/micro/sizes.sh -o "$TEST_TMP/page" "$TEST_TMP/build"
check sizes_write_the_page grep -q '^| `p` | - - - - | ' "$TEST_TMP/page"
refuses_sizes() { ! bash bench/micro/sizes.sh "$TEST_TMP" >"$out" 2>"$err" && grep -q 'is not built: make sizes' "$err"; }
check sizes_without_a_build_are_refused refuses_sizes
bash bench/micro/real_offset.sh "$TEST_TMP/build" "$TEST_TMP" >"$out" 2>"$err"
check a_real_one_without_its_source_is_refused [ $? = 2 -a "$(grep -c 'a folder with offsetAllocator.cpp' "$err")" = 1 ]
finish
