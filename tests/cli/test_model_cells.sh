#!/bin/bash
# What bench/suite/model_cells.sh tells the simulated device of the host's clock, with a stand-in for
# the program that writes down what it is asked to do.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
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
# cells ARGUMENTS..: what the program was asked is in $tmp/asked
cells() {
    : >"$tmp/asked"
    ASKED=$tmp/asked ALLOCRIG=$tmp/program timeout 60 bench/suite/model_cells.sh "$@" >"$out" 2>"$err" </dev/null
    status=$?
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
finish
