#!/bin/bash
# What is printed for people has 80 columns; only one word that cannot be broken, as a setting to be
# copied, may be longer, and then stands alone, behind its number at most.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only narrow
tmp=$TEST_TMP
data=workloads/data
snapshots=tests/golden/data/snapshots
alone='^ *([0-9]+|-)? *[^ ]+$|^wrote [^ ]+$' # a word that must not be broken, a path among them
# narrow NAME ARGUMENTS...: such lines, and some
narrow() {
    local name=$1
    shift
    run "$@"
    grep -E '.{81}' "$out" | grep -vE "$alone"
    check "$name" [ "$(grep -E '.{81}' "$out" | grep -cvE "$alone")" = 0 -a -s "$out" ]
}
while read -r command; do
    narrow "help_$command" "$command" --help
done < <("$ALLOCRIG" help | awk '/^  [a-z]+ / && !/ allocrig / { print $1 }' | grep -vx help)
narrow run run -d sim:capacity=4GiB -p all -w $data/tape_small.default.csv.gz
narrow run_long_specs run -d sim -w order_flip -p torch:max_split_size_mb=64,garbage_collection_threshold=0.6,roundup_power2_divisions=8 -p growth
run run -d sim -p torch -p growth:limit=70GiB -w order_flip
check a_spec_that_fits_has_its_row grep -qE '^1 +growth:limit=70GiB +128\.0 ' "$out"
narrow run_replicates run -d sim -p all -w random:events=500 --replicates 3
narrow run_times run -d sim -p growth -p torch -w random:events=500 --reps 3 --time
narrow capacity capacity -p torch -p growth -w $data/side_streams.default.csv.gz
narrow curve capacity -p torch -p growth -w order_flip --curve
for suite in workloads/suites/tenants/*.ini; do
    name=tenants_$(basename "$suite" .ini)
    case $name in *card_*) continue ;; esac # for a card
    narrow "$name" tenants "$suite"
    narrow "$name.free" tenants "$suite" --mode free --replicates 3
done
for scenario in workloads/scenarios/*.ini; do
    changes=yes
    [ "$scenario" != workloads/scenarios/eight_cards.ini ] || changes=no # those of the others look the same
    narrow "twin_$(basename "$scenario" .ini)" twin "$scenario" --what-if $changes
done
narrow tenants_refused tenants workloads/suites/claims/fraction_beyond_the_card.ini
for trace in $data/{side_streams,graphs}.default.csv.gz $snapshots/tape_small.pickle.gz; do
    name=$(basename "$trace" | cut -d . -f 1)
    narrow "inspect_$name" inspect "$trace"
    narrow "fidelity_$name" fidelity "$trace"
    narrow "bound_$name" bound "$trace"
    [ "$name" = side_streams ] || narrow "advise_$name" advise "$trace" --jobs 2 # test_advise.sh looks at that page
    narrow "explain_torch_$name" explain "$trace" -p torch -d sim:capacity=400MiB
    narrow "explain_growth_$name" explain "$trace" -p growth -d sim:capacity=1GiB
done
narrow inspect_pinned inspect tests/golden/data/pages/pinned.trace
long=$tmp/a_program_with_a_long_name_of_many_words_that_people_do_give_to_files
printf '# allocrig-trace 1\n# recorder: torch 2.11.0\na,0,4194304\na,1,1048576\nf,0\nf,1\n' >"$long.1.trace"
cp "$long.1.trace" "$long.2.trace"
narrow advise_long_names advise "$long.1.trace" "$long.2.trace" -d sim:capacity=1GiB
check traces_by_number grep -qE '^torch \(recorded\) +[0-9.]+ +trace 1 +yes$' "$out"
cp $snapshots/tape_small.pickle.gz "$long.pickle.gz"
narrow fidelity_long_name fidelity "$long.pickle.gz"
narrow fidelity_differs fidelity $data/tape_small.default.csv.gz -p torch:expandable_segments=true
narrow fidelity_of_another fidelity $snapshots/tape_small.pickle.gz -p growth
narrow import convert tests/golden/data/kineto/mlp.json.gz "$tmp/mlp.trace"
run bound $data/graphs.default.csv.gz --plan "$tmp/plan.csv"
narrow plan_is_right bound --check "$tmp/plan.csv" $data/graphs.default.csv.gz
narrow plan_is_wrong bound --check "$tmp/plan.csv" $data/side_streams.default.csv.gz
narrow history history results/history.jsonl --last 0 --all
narrow compare compare results/baselines/results.json results/baselines/results.json
narrow minimize minimize $data/tape_small.default.csv.gz --until 'differs(growth,torch)' -o "$tmp/small.txt"
narrow message_of_pytorch explain --message 'CUDA out of memory. Tried to allocate 158.00 MiB (GPU 0; 23.69 GiB total capacity; 22.14 GiB already allocated; 115.69 MiB free; 23.03 GiB reserved in total by PyTorch)'
narrow message_of_cupy explain --message 'cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 2,147,483,648 bytes (allocated so far: 1,022,468,608 bytes, limit set to: 3,022,468,608 bytes).'
finish
