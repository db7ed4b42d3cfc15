#!/bin/bash
# What people say about GPU memory: the script that measures, the page that judges, the figures. On
# sim all claims but the one about the card's own memory are measured. The page must be able to say no.
set -u
# shellcheck source=tests/cli/lib.bash
. tests/cli/lib.bash
release_only claims
export ALLOCRIG
folder=$TEST_TMP/claims

# page FOLDER: into $out
page() {
    bench/suite/claims_page.sh "$1" >"$out" 2>"$err"
    status=$?
}
# says VERDICT CLAIM: the page's summary does; called through check
# shellcheck disable=SC2317
says() {
    grep -q "^| $2.* | $1 |\$" "$out"
}
check measures quietly bench/suite/claims_card.sh "$folder" sim
page "$folder"
check greedy says holds Greedy
check growth says holds Growth
check embedding says holds 'The embedding'
check tape says holds 'A tape'
check outside_needs_a_card says 'not measured in full' Workspaces
check unmeasured_is_no_success [ "$status" = 1 ]
longest=$(wc -l "$folder"/series-*.csv | awk '$2 != "total" && $1 > m { m = $1 } END { print m }')
check series_are_short [ "$longest" -lt 2000 ]

# changed NAME KEY VALUE CLAIM: with that number the claim does not hold
changed() {
    mkdir -p "$TEST_TMP/changed"
    awk -F, -v OFS=, -v key="$2" -v value="$3" '$1 == key { $2 = value } { print }' "$folder/numbers.csv" >"$TEST_TMP/changed/numbers.csv"
    page "$TEST_TMP/changed"
    check "$1" says 'does not hold' "$4"
}
changed greedy_that_takes_half greedy_first_reserved_bytes 42000000000 Greedy
changed greedy_that_takes_more greedy_later_pieces 3 Greedy
changed control_that_takes_all direct_first_reserved_bytes 82000000000 Greedy
changed growth_that_starts_large growth_first_piece_bytes 1073741824 Growth
changed growth_in_equal_pieces growth_largest_piece_bytes 4194304 Growth
changed growth_that_shrinks growth_smaller_pieces 1 Growth
changed growth_that_gives_back growth_end_reserved_bytes 0 Growth
changed control_that_keeps direct_end_reserved_bytes 4294967296 Growth
changed embedding_that_rises_at_once embedding_live_rise_before_bytes 778491392 'The embedding'
changed tape_that_drops tape_activations_at_loss_bytes 0 'A tape'
changed tape_that_keeps tape_activations_after_backward_bytes 1107296256 'A tape'
changed pool_that_gives_the_workspace_back products_torch_end_reserved_bytes 0 Workspaces

# The stand-in's cuBLAS holds nothing on the card: the claim must fail there, and only that one.
stand_in=$PWD/.build/$TEST_VARIANT/tests/cuda_stand_in
if [ ! -f "$stand_in/libcuda.so.1" ] || "$ALLOCRIG" list devices cuda | grep -q 'without nvcc'; then
    echo "skip claims_on_the_stand_in: it was not built, or the program has no kernels"
else
    check measures_on_the_stand_in quietly env LD_LIBRARY_PATH="$stand_in" bench/suite/claims_card.sh "$TEST_TMP/card" cuda
    page "$TEST_TMP/card"
    check card_keeps_what_growth_took says holds Growth
    check no_cublas_no_claim says 'does not hold' Workspaces
    check o_events_are_outside grep -q '^| outside: increase if the trace holds .* | 16 MiB | .* | yes |$' "$out"
fi

if command -v gnuplot >/dev/null; then
    check draws quietly plots/claims.sh "$folder" "$TEST_TMP/figures"
    check five_figures [ "$(find "$TEST_TMP/figures" -name 'claim-*.svg' -size +2k | wc -l)" = 5 ]
else
    echo "skip claims_figures: no gnuplot"
fi
bench/suite/claims_page.sh "$TEST_TMP" >"$out" 2>"$err"
status=$?
check nothing_there [ "$status" = 2 -a ! -s "$out" ]
finish
