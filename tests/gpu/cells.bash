# Sourced by equal.sh and verify.sh: the cells that they go through, several at a time, and the
# count. Options of both:
#   -j N      processes at a time (default: 8, or as many as there are processors)
#   -p REGEX  only policies that match; -w REGEX: only workloads that match
#   -k        keep the files of each cell (in TEST_TMP, or a folder of its own that is named)
cd "$(dirname "$0")/../.." || exit 2
export ALLOCRIG=${ALLOCRIG:-./allocrig}
processors=$(nproc 2>/dev/null || echo 8)
jobs=$((processors < 8 ? processors : 8))
policies_like=. workloads_like=. keep=0
while getopts j:p:w:k option; do
    case $option in
    j) jobs=$OPTARG ;;
    p) policies_like=$OPTARG ;;
    w) workloads_like=$OPTARG ;;
    k) keep=1 ;;
    *) exit 2 ;;
    esac
done
# All share the card, so each has a part of it, on the card and on the simulated device alike.
export CAPACITY=${CAPACITY:-8GiB}
# Of one cell, in seconds.
export LIMIT=${LIMIT:-300}
TEST_TMP=${TEST_TMP:-$(mktemp -d)}
export TEST_TMP

# The names in the table of `list WHAT`, between its head and the first empty line; what goes on in a next
# line is indented.
names_of() {
    "$ALLOCRIG" list "$1" | awk 'NR > 1 && NF == 0 { exit } NR > 1 && /^[^ ]/ { print $1 }'
}

# Policies that hold real memory: not `null`; their own further ways to work beside them.
list_policies() {
    { names_of policies | grep -vx null; echo torch:expandable_segments=true; } | grep -E "$policies_like"
}

# go_through FUNCTION: calls it (it is exported) for the cells on standard input (`policy workload rest`), prints a
# line for each as it ends (`equal ...`, `differs ...`, `skip ...`), and the sum as the last line.
go_through() {
    awk -v like="$workloads_like" '$2 ~ like' | xargs -P "$jobs" -L 1 bash -c "$1"' "$@"' _ | tee "$TEST_TMP/lines"
    [ $keep = 1 ] && echo "kept: $TEST_TMP"
    awk '$1 == "ok" { p++ } $1 == "not" { f++ } $1 == "skip" { s++ }
         END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || p == 0 }' "$TEST_TMP/lines"
    status=$?
    [ $keep = 1 ] || rm -rf "$TEST_TMP"
    exit $status
}
