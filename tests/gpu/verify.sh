#!/bin/bash
# Is the memory that policies give out the program's alone? Every policy but `null`, with every
# generator and every recorded trace, on the card with --verify: each block is filled with a pattern,
# which is read again where it is used and when it is let go. Prints a line for each cell; the last
# one is `N passed, N failed, N skipped`. A run that did not finish (out of memory in its part of the
# card) counts as passed where no byte was wrong; the line says so.
# shellcheck source=tests/gpu/cells.bash
. "$(dirname "$0")/cells.bash"

verify_cell() {
    local policy=$1 workload=$2 name output
    name="$policy $(basename "$workload")"
    if ! output=$("$ALLOCRIG" run -p "$policy" -w "$workload" -d "cuda:capacity=$CAPACITY" --verify --metrics none \
        --reps 1 --jobs 1 --timeout "$LIMIT" 2>&1); then
        echo "not ok $name: $(tail -n 1 <<<"$output")"
    elif tr -s ' \n' ' ' <<<"$output" | grep -q 'the driver failed'; then
        echo "not ok $name: $(tr -s ' \n' ' ' <<<"$output" | grep -o 'the driver failed.*' | head -c 300)"
    elif grep -qE 'DNF: (timed out|crashed|not started)' <<<"$output"; then
        echo "not ok $name: $(grep -oE 'DNF: (timed|crashed|not) .*' <<<"$output" | head -n 1)"
    else
        echo "ok $name$(grep -oE 'DNF @ .*' <<<"$output" | head -n 1 | sed 's/^/: /')"
    fi
    return 0
}

cells() {
    local policy workload
    list_policies | while read -r policy; do
        for workload in $(names_of workloads) workloads/data/*.csv.gz; do
            echo "$policy $workload"
        done
    done
}
export -f verify_cell
cells | go_through verify_cell
