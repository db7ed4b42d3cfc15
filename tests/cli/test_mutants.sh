#!/bin/bash
# `make mutants` on a small tree of its own: a mutant that a test notices is killed, one in a line that no test checks is
# reported, an endless loop ends, and a line of same_program.tsv that is wrong is reported.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
if [ "$TEST_VARIANT" != release ]; then
    echo "skip mutants: it runs nothing of the build"
    exit 0
fi
if ! command -v clang >/dev/null || ! command -v python3 >/dev/null; then
    echo "skip mutants: clang or python3 is not installed"
    exit 0
fi
check the_named_ones_and_the_same_programs_are_in_the_tree python3 - <<'END'
import pathlib, sys
sys.dont_write_bytecode = True
sys.path.insert(0, "tests/mutants")
import mutants
root = pathlib.Path(".")
mutants.named_mutants(root, root / "tests/mutants")
for name in mutants.REASONS:
    for row in mutants.rows(root / "tests/mutants" / name):
        assert (root / row[0].split("|")[0]).exists(), row[0]
END
tree=$TEST_TMP/tree
mkdir -p "$tree/planted" "$tree/tests/unit/cases" "$tree/tests/mutants"
cat >"$tree/planted/planted.c" <<'END'
int planted_checked(int a)
{
    return a > 10 ? 1 : 0;
}

int planted_unchecked(int a)
{
    if (a > 20)
        return 7;
    return a;
}

int planted_unreached(int a)
{
    return a * 3;
}

unsigned planted_loop(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = n; i > 0; i--)
        sum += i;
    return sum;
}
END
cat >"$tree/tests/unit/test_planted.c" <<'END'
#include <stdio.h>
int planted_checked(int a);
int planted_unchecked(int a);
unsigned planted_loop(unsigned n);
int main(void)
{
    puts("planted");
    int failed = planted_checked(10) != 0 || planted_checked(11) != 1;
    planted_unchecked(20);
    failed |= planted_loop(4) != 10;
    puts(failed ? "[  FAILED  ] planted" : "[       OK ] planted");
    return failed;
}
END
cat >"$tree/Makefile" <<'END'
B := .build/$(VARIANT)/tests/unit
all library:
tests: FORCE
	@mkdir -p $(B)
	@cc $(CFLAGS) -I. -o $(B)/test_planted $$(find planted tests/unit allocators -name '*.c')
FORCE:
END
touch "$tree/tests/mutants/named.tsv" "$tree/tests/mutants/same_program.tsv"
mutants() { python3 tests/mutants/mutants.py --root "$tree" --jobs 2 >"$out" 2>"$err" && status=0 || status=$?; }
# row REGEX: a row of the table; called through check
# shellcheck disable=SC2317
row() { grep -qE "$1" "$tree/results/mutants.csv" || { echo "  no row $1" && return 1; }; }

mutants
check a_survivor_is_an_answer [ "$status" = 1 ]
check the_unchecked_line_is_reported grep -qF 'lived: planted/planted.c:8 planted_unchecked(): a > 20 -> a >= 20' "$out"
check it_is_on_the_page grep -qF '| planted/planted.c:8 `planted_unchecked` | `a > 20` to `a >= 20` | yes |' "$tree/results/mutants.md"
check an_unreached_line_is_reported grep -qF 'unreached: planted/planted.c:15 planted_unreached(): a * 3 -> a / 3' "$out"
check the_checked_line_is_killed row '^planted/planted.c,3,planted_checked,bound,a > 10,a >= 10,killed,quick,unit/test_planted,planted,'
check an_endless_loop_ends row '^planted/planted.c,21,planted_loop,bound,i > 0,i >= 0,killed,quick,unit/test_planted,time limit,'
check all_is_counted grep -qE '^[0-9]+ mutants, 0 the same program; of [0-9]+ the quick tests kill [0-9]+ \([0-9.]+ %\), all tests ' "$out"
cp "$tree/results/mutants.csv" "$TEST_TMP/first.csv"
mutants
check what_is_done_is_not_run_again grep -qE '^mutants: quick tests: 0 of [0-9]+ mutants to run' "$out"
check and_has_the_same_result cmp "$tree/results/mutants.csv" "$TEST_TMP/first.csv"

echo "a row" >"$tree/tests/unit/cases/planted"
mutants
check a_changed_row_of_a_test_runs_its_kills_again grep -qE '^mutants: quick tests: [1-9][0-9]* of [0-9]+ mutants to run' "$out"

key() { awk -F, -v change="$1" 'index($0, change) { print $NF }' "$tree/results/mutants.csv"; }
printf '%s\tA reason.\n' "$(key 'a > 20,a >= 20')" >"$tree/tests/mutants/same_program.tsv"
mutants
check a_reason_is_on_the_page grep -qF '| planted/planted.c:8 `planted_unchecked` | `a > 20` to `a >= 20` | A reason. |' "$tree/results/mutants.md"
check it_has_not_lived not grep -qF 'lived: planted/planted.c:8 planted_unchecked(): a > 20 -> a >= 20' "$out"
mv "$tree/tests/mutants/same_program.tsv" "$tree/tests/mutants/not_reached.tsv"
mutants
check what_no_test_reaches_counts_as_a_change grep -qE '^[0-9]+ mutants, 0 the same program; .*, 1 not reached by a test, with a reason' "$out"
check it_is_named_apart grep -qF '## Not reached by a test' "$tree/results/mutants.md"
rm "$tree/tests/mutants/not_reached.tsv"
printf '%s\tA reason.\n' "$(key 'a > 10,a >= 10')" >"$tree/tests/mutants/same_program.tsv"
mutants
check a_wrong_reason_is_reported grep -qF 'same_program.tsv: a test notices planted/planted.c|planted_checked|bound|a > 10|a >= 10|0: remove the line' "$out"
printf 'planted/planted.c\tplanted_checked\ta < 10\ta <= 10\n' >"$tree/tests/mutants/named.tsv"
mutants
check a_named_mutant_that_is_not_there_is_refused [ "$status" = 2 ]
check with_a_sentence grep -qF 'named.tsv: planted/planted.c, planted_checked(): `a < 10` is not there once' "$err"
finish
