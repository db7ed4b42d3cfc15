# Sourced by the tests of the scripts that run cells, behind lib.bash: what a script (`script`) asks of the
# program, for which $tmp/program stands in.
# shellcheck shell=bash disable=SC2154 # tmp and script are the test's, out and err lib.bash's

# cells ARGUMENTS..: what the program was asked is in $tmp/asked
cells() {
    : >"$tmp/asked"
    ASKED=$tmp/asked ALLOCRIG=$tmp/program "$script" "$@" >"$out" 2>"$err" </dev/null
    status=$?
}

# refused NAME REGEX ARGUMENTS..: exit 2 with a sentence, no folder and no run
refused() {
    local name=$1 pattern=$2
    shift 2
    cells "$@"
    [ "$status" = 2 ] && grep -qE -e "$pattern" "$err" && [ ! -s "$tmp/asked" ] && [ ! -e "$tmp/new" ]
    verdict "$name" $?
}
