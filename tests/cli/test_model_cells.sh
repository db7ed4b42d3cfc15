#!/bin/bash
# What bench/suite/model_cells.sh tells the simulated device of the host's clock, with a stand-in for
# the program that writes down what it is asked to do.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only model_cells 'starts no program of this build'
# shellcheck source=tests/cli/cells.bash
. "$(dirname "$0")/cells.bash"
tmp=$TEST_TMP script=bench/suite/model_cells.sh
cell=embedding_torch

cat >"$tmp/program" <<'PROGRAM'
#!/bin/bash
case $* in
"list policies --names") echo torch ;;
*) echo "$*" >>"$ASKED" ;;
esac
PROGRAM
chmod +x "$tmp/program"
# clocks FOLDER NS [COLUMN]: a run of torch on embedding there
clocks() {
    mkdir -p "$tmp/$1/$cell"
    printf 'policy_spec,%s,passed\n"torch:a=1,b=""2,3""",%s,true\n' "${3:-clock_ns}" "$2" >"$tmp/$1/$cell/card.csv"
}
clocks 'the host' 40
clocks again 31
clocks last 36
mkdir "$tmp/empty"
only=(-p '^torch$' -w '^embedding$')
cells "$tmp/the host" sim "${only[@]}"
check script_runs grep -qE -- '-d sim:profile=h100,capacity=40GiB,addresses=[^,]*/addresses --frees' "$tmp/asked"
cells "$tmp/the host" sim "${only[@]}" -c
check clock_of_one grep -qE -- '/addresses,host_clock_ns=40 --frees' "$tmp/asked"
cells "$tmp/the host" sim "${only[@]}" -c -a "$tmp/again" -a "$tmp/last" -a "$tmp/empty"
check clock_is_the_median grep -qE -- ',host_clock_ns=36 --frees' "$tmp/asked"
cells "$tmp/the host" sim "${only[@]}" -c -a "$tmp/again"
check clock_is_the_mean_of_two_rounded grep -qE -- ',host_clock_ns=36 --frees' "$tmp/asked"
clocks 'the host' 40 other_column
cells "$tmp/the host" sim "${only[@]}" -c
check clock_not_known_is_told grep -q 'no card.csv has clock_ns' "$out"
check clock_not_known_is_not_run [ ! -s "$tmp/asked" ]
cells "$tmp/the host" sim "${only[@]}" -c -a "$tmp/nowhere"
check no_such_folder [ "$status" = 2 -a "$(grep -c 'nowhere is no folder' "$err")" = 1 -a ! -s "$tmp/asked" ]
cells "$tmp/the host" sim "${only[@]}" -a "$tmp/again"
check again_without_clock [ "$status" = 2 -a ! -s "$tmp/asked" ]

refused a_word_behind '"word" is no option' "$tmp/new" card -p '^torch$' word
refused a_word_between '"word" is no option' "$tmp/new" card -p torch word -w '^embedding$'
refused a_place '"bogus" is no place' "$tmp/new" bogus
refused an_option_first 'is no folder: FOLDER comes first' -c "$tmp/new"
refused a_regex_of_workloads '"\[" is no regular expression' "$tmp/new" card -w '['
refused a_regex_of_policies '"\[" is no regular expression' "$tmp/new" card -p '['
refused nothing_fits 'no policy and workload fit' "$tmp/new" both -p nosuch
clocks 'the host' 40 other_column
cells "$tmp/the host" sim "${only[@]}" -c
check a_cell_not_run_ends_with_1 [ "$status" = 1 ]
cells "$tmp/the host" sim "${only[@]}"
check all_run_ends_with_0 [ "$status" = 0 ]
# shellcheck disable=SC2016 # the program's own
printf '#!/bin/bash\n[ "$1" = list ] && echo torch && exit\nexit 3\n' >"$tmp/program"
cells "$tmp/the host" card -p '^torch$' -w '^gradient_tape$'
check a_cell_that_fails_ends_with_1 [ "$status" = 1 ]
finish
