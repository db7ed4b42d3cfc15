#!/bin/bash
# Generated Kineto traces: the reader finds what the generator wrote.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"

# made NAME BYTES SEED EVERY [WAY]: such a file is read; the guesses are in $out
made() {
    local name=$1 allocs frees kernels steps peak
    shift
    eval "local $(python3 tests/cli/kineto_maker.py "$1" "$TEST_TMP/0" "${@:2}")"
    run inspect "$TEST_TMP/0"
    check "${name}_has_its_format" grep -qx 'format  *kineto' "$out"
    run convert "$TEST_TMP/0" "$TEST_TMP/0.txt"
    check "${name}_has_all" [ "$(for what in a f k "m,step"; do grep -c "^$what" "$TEST_TMP/0.txt"; done | tr '\n' ' ')" \
        = "$allocs $frees $kernels $steps " ]
    check "${name}_matches" [ "$(sed -nE 's/^ +(unmatched frees|double frees) +//p' "$out" | tr '\n' ' ')" = '0 0 ' ]
    check "${name}_has_its_peak" [ "$(peak)" = "$peak" ]
    check "${name}_agrees_with_the_count" says 'equals "Total Allocated" at every event'
}
# of live bytes
peak() {
    awk -F, '/^a/ { live += of[$2] = $3 } /^[rf],/ { live -= of[$2]; of[$2] = 0 } live > most { most = live } END { printf "%d\n", most }' "$TEST_TMP/0.txt"
}
made a_trace 3000000 1 16
check addresses_are_named not says 'name no address'
check times_are_in_order not says 'sorted by time'
made shuffled 3000000 2 1 shuffled
check they_are_sorted says 'sorted by time'
made without_addresses 1000000 3 2 without_addresses
check that_is_said says 'name no address'

huge='{"name":"[memory]","ts":1,"args":{"Device Type":1,"Total Allocated":4611686018427387903,"Bytes":1152921504606846975}}'
echo "[$(yes "$huge" | head -n 16 | paste -sd,),{\"ph\":\"M\",\"name\":\"process_name\",\"ts\":1}]" >"$TEST_TMP/0"
refuses sums_have_an_end 2 '2\^63 bytes' convert "$TEST_TMP/0" "$TEST_TMP/0.txt"
finish
