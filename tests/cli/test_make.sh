#!/bin/bash
# What make says: the list of targets, a library that is not installed, a variant that is none.
set -u
# shellcheck source=tests/cli/lib.bash
. tests/cli/lib.bash
if [ "$TEST_VARIANT" != release ]; then
    echo "skip make: it says the same for every variant"
    exit 0
fi
unset MAKEFLAGS MAKELEVEL

make -s help >"$out"
check help_lists_each_target [ "$(grep -cE '^  [a-z-]+ ' "$out")" = "$(grep -c '^## [a-z-]*: ' Makefile)" ]
check help_is_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
for target in all bench test check regress claims deps install clean; do
    check "help_has_$target" grep -q "^  $target  " "$out"
done

# A compiler that finds no header of two of the libraries.
cat >"$TEST_TMP/cc" <<'END'
#!/bin/bash
case " $* " in *" -E "*) exec cc "$@" < <(sed 's/<\(zlib\|jansson\)\.h>/<none.h>/') ;; esac
exec cc "$@"
END
chmod +x "$TEST_TMP/cc"
make -s CC="$TEST_TMP/cc" B="$TEST_TMP/build" program >"$out" 2>"$err"
check a_missing_library_ends_the_build [ $? = 2 ]
check missing_libraries_are_named grep -q '^cannot build .*: jansson zlib: run "make deps"' "$err"
check their_packages_are_named grep -q 'install libjansson-dev zlib1g-dev$' "$err"
check nothing_is_built_then [ ! -e "$TEST_TMP/build" ]
make -s CC="$TEST_TMP/cc" B="$TEST_TMP/build" help >"$out" 2>"$err"
check help_needs_no_library [ $? = 0 -a -s "$out" ]

# A program is there while it is linked anew, because other tests run it.
cat >"$TEST_TMP/cc" <<'END'
#!/bin/bash
case " $* " in *" -rdynamic "*) [ ! -x "$TEST_TMP/build/tests/record_program" ] || touch "$TEST_TMP/there" ;; esac
exec cc "$@"
END
link() { make -s CC="$TEST_TMP/cc" B="$TEST_TMP/build" "$TEST_TMP/build/tests/record_program" >"$out" 2>"$err"; }
check a_program_is_linked link
touch "$TEST_TMP/build/tests/support/record_program/program.o"
check it_is_linked_again eval "link && [ -e '$TEST_TMP/there' ]"

# Policies that are not registered, have one name, or are shared objects.
tree=$TEST_TMP/tree
mkdir "$tree"
cp -r allocators "$tree"
check all_policies_are_registered .ci/policies "$tree"
sed 's/"skeleton"/"best-fit"/; s/skeleton/mine/g' allocators/skeleton/skeleton.c >"$tree/allocators/policies/mine.c"
check a_policy_that_is_not_registered_ends_the_build not eval ".ci/policies '$tree' 2>'$err'"
check the_line_to_add_is_told grep -q 'policies/mine.c: mine_policy is not in .*policies.def; add the line POLICY(mine_policy)' "$err"
check an_entry_point_is_told grep -q 'policies/mine.c: allocrig_policy is the entry point of a shared object; remove' "$err"
check two_of_one_name_are_told grep -q 'mine_policy has the name "best-fit", as best_fit_policy in allocators/policies/fit.c does' "$err"

rm "$tree/allocators/policies/mine.c"
echo 'POLICY(quarter_policy)' >>"$tree/allocators/policies.def"
check a_line_without_its_file_ends_the_build not eval ".ci/policies '$tree' 2>'$err'"
check and_is_named grep -q 'policies.def: POLICY(quarter_policy): no file in allocators/policies defines it' "$err"

make test-policy >"$out" 2>"$err"
check one_policy_must_be_named [ $? = 2 ]
check how_to_name_it_is_told grep -q 'make test-policy POLICY=' "$err"

make VARIANT=fast >"$out" 2>"$err"
check an_unknown_variant_is_refused [ $? = 2 ]
check the_variants_are_named grep -q 'unknown VARIANT "fast": choose one of release debug san tsan fuzz' "$err"
finish
