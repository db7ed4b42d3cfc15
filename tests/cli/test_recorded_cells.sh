#!/bin/bash
# What bench/suite/recorded_cells.sh asks of the program, with a stand-in for it that writes that down.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only recorded_cells 'starts no program of this build'
# shellcheck source=tests/cli/cells.bash
. "$(dirname "$0")/cells.bash"
tmp=$TEST_TMP script=bench/suite/recorded_cells.sh

cat >"$tmp/program" <<'PROGRAM'
#!/bin/bash
case $1 in
fidelity) printf 'a line\ntorch:conf=x\n' ;;
*) echo "$*" >>"$ASKED" ;;
esac
PROGRAM
chmod +x "$tmp/program"
at="$tmp/a folder"
cells "$at" card -w tape_small -n 5
check both_hosts [ "$(grep -oE -- '--host [a-z]+' "$tmp/asked" | tr '\n' ' ')" = '--host recorded --host none ' ]
check repetitions_on_the_card [ "$(grep -cE -- '-p torch:conf=x -w .*tape_small.default.csv.gz -d cuda --host .* --reps 5 --jobs 1' "$tmp/asked")" = 2 ]
cells "$at" sim -w tape_small -H none -n 5
check one_simulated_run grep -qE -- '-d sim:profile=h100 --host none --frees recorded --reps 1 ' "$tmp/asked"
cells "$at" sim h100-rested -w tape_small -H none -c
check clock_not_known_is_told grep -q 'no card.none.csv tells clock_ns' "$out"
check clock_not_known_is_not_run [ ! -s "$tmp/asked" ]
printf 'policy_spec,clock_ns,passed\n"a,""b""",40,true\n"a,""b""",31,true\n"a,""b""",35,true\n' >"$at/tape_small.default/card.none.csv"
cells "$at" sim h100-rested -w tape_small -H none -c
check clock_of_the_runs grep -qE -- '-d sim:profile=h100-rested,host_clock_ns=35 ' "$tmp/asked"
cells "$at" card -w tape_small -H none -n 5
check what_is_there_is_left_alone [ ! -s "$tmp/asked" ]
printf 'x,clock_ns\n1,26\n1,31\n' >"$tmp/two.csv"
check mean_of_two_rounded [ "$(bench/suite/clock_of.sh "$tmp/two.csv")" = 29 ]
printf 'x,y\n1,26\n' >"$tmp/none.csv"
check nothing_where_none_tells [ -z "$(bench/suite/clock_of.sh "$tmp/none.csv")" ]
check no_positive_numbers_do_not_count [ "$(printf 'x,clock_ns\r\n1,nan\r\n1,abc\r\n1,-3\r\n1,28\r\n' >"$tmp/odd.csv" && bench/suite/clock_of.sh "$tmp/odd.csv")" = 28 ]
for file in "$tmp/nowhere.csv" "$tmp"; do
    bench/suite/clock_of.sh "$tmp/two.csv" "$file" >"$out" 2>"$err"
    [ $? = 2 ] && [ ! -s "$out" ] && grep -qF "$file cannot be read" "$err"
    verdict "clock_of_$(basename "$file")" $?
done
refused a_word_behind '"word" is no option' "$tmp/new" card -w tape_small word
refused a_word_between '"word" is no option' "$tmp/new" card -n 2 word -w tape_small
refused a_place '"bogus" is no place' "$tmp/new" bogus
refused an_option_first 'FOLDER comes first' -c "$tmp/new"
refused a_regex '"\[" is no regular expression' "$tmp/new" card -w '['
refused nothing_fits 'no recording with kernels fits' "$tmp/new" card -w nosuch
refused a_host '"some" is no host time' "$tmp/new" card -w tape_small -H some
for runs in 0 1001 1.5 -1 x; do refused "runs_$runs" 'whole number from 1 to 1000' "$tmp/new" card -w tape_small -n "$runs"; done
finish
