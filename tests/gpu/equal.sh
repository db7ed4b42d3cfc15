#!/bin/bash
# Does a policy do on a card what it does on the simulated device? For each deterministic policy and
# each workload on one stream, and each recording with its own completions: a run on the card, which
# writes down the addresses that the driver gave, and one on `sim` with these addresses. Equal are,
# byte for byte and event for event: placements, the driver calls (kind, size, refused), and outcome,
# peaks and counts. Prints a line for each cell; the last one is `N passed, N failed, N skipped`.
# Left out: `async`, whose inside is the driver's, and polls of events, which depend on time.
# shellcheck source=tests/gpu/cells.bash
. "$(dirname "$0")/cells.bash"

# exact FILE: of a result, what must be equal.
exact() {
    sed 's/"[^"]*"/quoted/g' "$1" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) name[i] = $i; next }
        { for (i = 1; i <= NF; i++)
            if (name[i] ~ /^(passed|cause|events|allocs|frees|failed_.*|first_failed_event|peak_(live|granted|reserved)_bytes|end_reserved_bytes|retries|flushes|remapped_bytes)$/)
                print name[i] "=" $i }'
}
export -f exact

equal_cell() {
    local policy=$1 workload=$2 frees=$3 folder name wrong=
    name="$policy $(basename "$workload") $frees"
    folder=$TEST_TMP/$(tr -c 'a-zA-Z0-9.\n' _ <<<"$name")
    mkdir -p "$folder"
    local -a common=(-p "$policy" -w "$workload" --frees "$frees" --reps 1 --jobs 1)
    if ! "$ALLOCRIG" run "${common[@]}" -d "cuda:capacity=$CAPACITY,record_addresses=$folder/addresses,record_ranges=$folder/ranges" \
        --timeout "$LIMIT" --placements "$folder/card.placements" --calls "$folder/card.calls" \
        --csv "$folder/card.csv" >"$folder/card.out" 2>&1; then
        echo "not ok $name: on the card: $(tail -n 1 "$folder/card.out")"
        return 0
    fi
    if grep -qE 'DNF: (timed out|crashed|not started)' "$folder/card.out"; then
        echo "not ok $name: on the card: $(grep -oE 'DNF: (timed|crashed|not) .*' "$folder/card.out")"
        return 0
    fi
    # The device writes it where it makes segments; growing ranges need none.
    [ -e "$folder/addresses" ] || : >"$folder/addresses"
    [ -e "$folder/ranges" ] || : >"$folder/ranges"
    if ! "$ALLOCRIG" run "${common[@]}" -d "sim:capacity=$CAPACITY,addresses=$folder/addresses,ranges=$folder/ranges" \
        --placements "$folder/sim.placements" --calls "$folder/sim.calls" \
        --csv "$folder/sim.csv" >"$folder/sim.out" 2>&1; then
        echo "not ok $name: on sim: $(tail -n 1 "$folder/sim.out")"
        return 0
    fi
    cmp -s "$folder/card.placements" "$folder/sim.placements" ||
        wrong+=" placements from line $(cmp "$folder/card.placements" "$folder/sim.placements" 2>&1 | grep -oE 'line [0-9]+' | cut -d' ' -f2);"
    for device in card sim; do
        grep -v ',event,' "$folder/$device.calls" | cut -d, -f1-3,6 >"$folder/$device.which"
        exact "$folder/$device.csv" >"$folder/$device.exact"
    done
    cmp -s "$folder/card.which" "$folder/sim.which" ||
        wrong+=" calls ($(($(wc -l <"$folder/card.which") - 1)) on the card, $(($(wc -l <"$folder/sim.which") - 1)) on sim);"
    cmp -s "$folder/card.exact" "$folder/sim.exact" ||
        wrong+=" $(diff "$folder/card.exact" "$folder/sim.exact" | sed -n 's/^[<>] //p' | paste -sd' ');"
    if [ -n "$wrong" ]; then
        echo "not ok $name:$wrong"
    else
        echo "ok $name: $(($(wc -l <"$folder/card.placements") - 1)) placements, $(($(wc -l <"$folder/card.which") - 1)) driver calls"
    fi
    return 0
}

cells() {
    local policy workload
    list_policies | grep -vx async | while read -r policy; do
        # Generators with one stream.
        for workload in order_flip linear_ramp pool_boundary sawtooth checkerboard random embedding \
            gradient_tape matmul_cache; do
            echo "$policy $workload ordered"
        done
        for workload in workloads/data/*.csv.gz; do
            echo "$policy $workload recorded"
        done
    done
}
export -f equal_cell
cells | go_through equal_cell
