#!/bin/bash
# `twin`: pages and files of small scenarios, changes, a journal, and a sentence with file and line for
# each bad scenario.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
small=tests/golden/data/twin/small.ini

# The page and the files of a small scenario, byte by byte.
run twin $small --json "$tmp/small.json" --series "$tmp/small.csv"
check passes [ "$status" = 0 ]
check the_page cmp "$out" tests/golden/data/twin/small.txt
check the_json cmp "$tmp/small.json" tests/golden/data/twin/small.json
check the_series cmp "$tmp/small.csv" tests/golden/data/twin/small.csv
check the_page_is_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
check rows_of_an_end_are_the_card [ "$(awk -F, '$6 == "end" { sum[$1] += $9 } END { for (p in sum) print sum[p] }' "$tmp/small.csv" | sort -u | wc -l)" = 1 ]
run twin $small --what-if no
check no_what_ifs not grep -q 'What if' "$out"
run twin $small --what-if no --cycles 1 --json -
check fewer_cycles grep -q '"cycles": 1,' "$out"
check no_page_beside_json not grep -q '^small:' "$out"

# A change of a key; what does not fit, and what would.
run twin $small --set kv.bytes=14GiB
check does_not_fit [ "$status" = 1 ]
check says_where says 'It does not fit. In cycle 1, kv.load: a request of 14.00 GiB for kv/buffer fails: the card is too small'
check says_it_in_a_sentence grep -q 'it does not fit$' "$err"
run twin $small --set kv.bytes=13GiB
check a_change_makes_it_fit says 'weights.free before kv.load, weights.load at the end of the cycle \(then it fits\)'

# --check
run twin $small --check
check figures_agree [ "$status" = 0 ]
run twin $small --check --set kv.bytes=6GiB
check figures_differ grep -qE ': [0-9]+ of [0-9]+ reported figures differ by more than 5 %$' "$err"
check figures_differ_status [ "$status" = 1 ]
grep -v -A 9 '^\[reported\]' $small | sed '/^\[reported\]/,$d' >"$tmp/none.ini"
refuses nothing_to_check 2 '--check needs figures' twin "$tmp/none.ini" --check

# The journal: an interrupted command continues with the same answer; a changed scenario does not.
run twin $small --journal "$tmp/journal" --json "$tmp/no_such_folder/x.json"
check nothing_runs_without_its_files [ ! -e "$tmp/journal" ]
mkdir "$tmp/failing" # a gnuplot that fails, after all runs
printf '#!/bin/sh\nexit 1\n' >"$tmp/failing/gnuplot"
chmod +x "$tmp/failing/gnuplot"
PATH=$tmp/failing:$PATH run twin $small --journal "$tmp/journal" --figure "$tmp/x.svg"
check what_was_not_drawn_is_said grep -q 'x.svg: it was not drawn' "$err"
check the_journal_stays [ -s "$tmp/journal" ]
refuses journal_of_another 2 'journal: is the journal of .*another scenario' twin $small --journal "$tmp/journal" --set kv.bytes=4GiB
truncate -s -100 "$tmp/journal" # cut off within its last record
run twin $small --journal "$tmp/journal"
check the_same_answer cmp "$out" tests/golden/data/twin/small.txt
check the_journal_is_removed [ ! -e "$tmp/journal" ]
# A recording of each rank: another one of the last rank is another scenario.
for rank in 0 1; do printf '# allocrig-trace 1\na,0,%d\nf,0\n' $((rank + 1 << 21)) >"$tmp/$rank.trace"; done
printf '%s\n' '[machine]' 'card = sim' 'cards = 2' '[process ranks]' 'cards = all' 'policy = torch' '[trainer model]' \
    "workload = $tmp/{rank}.trace" '[schedule]' 'cycle = model.train' >"$tmp/ranks.ini"
PATH=$tmp/failing:$PATH run twin "$tmp/ranks.ini" --journal "$tmp/journal" --figure "$tmp/x.svg"
check the_journal_of_ranks_stays [ -s "$tmp/journal" ]
sed -i 's/4194304/6291456/' "$tmp/1.trace"
refuses journal_of_another_rank 2 'journal: is the journal of .*another scenario' twin "$tmp/ranks.ini" --journal "$tmp/journal"

# The figure.
if command -v gnuplot >/dev/null; then
    run twin $small --what-if no --figure "$tmp/small.svg"
    check figure grep -q '</svg>' "$tmp/small.svg"
    check figure_names_owners grep -q 'kv/buffer' "$tmp/small.svg"
    refuses figure_without_a_place 2 'small.svg: cannot be written' twin $small --what-if no --figure "$tmp/no_such_folder/small.svg"
else
    refuses no_gnuplot 3 'gnuplot is missing' twin $small --what-if no --figure "$tmp/small.svg"
fi

# Arguments.
refuses no_scenario 2 'no scenario is given' twin
refuses two_scenarios 2 'one scenario too many' twin a.ini b.ini
refuses no_file 2 'no_such.ini: cannot be read' twin no_such.ini
run twin $small --what-if no --cycles 0
check a_fit_of_no_cycle_is_called_so says '^It fits without a cycle\. The peak'
refuses no_cycles 2 '--cycles is "many"; it must be a whole number from 0 to 1000000' twin $small --cycles many
refuses no_form 2 '--figure x.gif: the name ends with .svg' twin $small --figure x.gif
refuses no_place_for_a_figure 2 'none/x.svg: cannot be written: its folder does not exist' twin $small --figure "$tmp/none/x.svg"
refuses no_answer 2 '--what-if maybe: yes or no' twin $small --what-if maybe
refuses journal_of_nothing 2 'write --what-if yes' twin $small --what-if no --journal "$tmp/j"
refuses set_without_value 2 '--set kv: "kv" is no change; write SECTION.KEY=VALUE' twin $small --set kv
refuses set_twice 2 '--set kv.bytes=2GiB: kv.bytes is given a second time' twin $small --set kv.bytes=1GiB --set kv.bytes=2GiB
refuses cycles_twice 2 '--set schedule.cycles=0: schedule.cycles is given a second time' twin $small --cycles 3 --set schedule.cycles=0
refuses set_of_another 2 '--set kw.bytes=1: .*did you mean "kv"' twin $small --set kw.bytes=1
refuses set_of_a_wrong_key 2 'kv.byte=1: .*has no key "byte"; did you mean "bytes"' twin $small --set kv.byte=1
refuses set_of_a_wrong_value 2 'kv.bytes=much: .*bytes' twin $small --set kv.bytes=much

# Bad scenarios, each with its line. bad NAME PATTERN LINES..: below a machine and a process
bad() {
    local name=$1 pattern=$2
    shift 2
    printf '%s\n' '[machine]' 'card = sim:profile=h100' '[process rl]' 'policy = torch' "$@" >"$tmp/bad.ini"
    refuses "$name" 2 "bad.ini:?$pattern" twin "$tmp/bad.ini" --what-if no
}
step='start = b.load'
part='[buffer b]'
bad no_kind '5: there is no section \[bufer b\]; did you mean \[buffer NAME\]' '[bufer b]'
bad no_key '6: \[buffer b\] has no key "byte"; did you mean "bytes"' "$part" 'byte = 1GiB'
bad no_size '6: .*bytes' "$part" 'bytes = much'
bad no_choice '6: .*pool' "$part" 'where = here'
bad a_part_refuses '5: .*it needs a size; write bytes = 64MiB' "$part" '[schedule]' "$step"
bad no_process '6: \[buffer b\]: there is no process "lr"; did you mean rl' "$part" 'process = lr'
bad two_processes '7: \[buffer b\] is in no process; write process = rl or another' '[process other]' 'policy = torch' "$part"
bad no_policy '6: .*torhc' '[process other]' 'policy = torhc'
bad no_pinned '6: .*torch-pined' '[process other]' 'pinned = torch-pined'
bad no_context '6: context = big: write a size' '[process other]' 'context = big'
bad no_process_key '6: \[process other\] has no key "polcy"; did you mean "policy"' '[process other]' 'polcy = torch'
bad no_card '6: cards = 1: the machine has 1 card, from 0' '[process other]' 'cards = 1'
bad no_cards '6: cards = 2-1: write all, a card as 0' '[process other]' 'cards = 2-1'
bad no_steps ': there is no step; write \[schedule\]' "$part" 'bytes = 1'
bad no_part '8: schedule: start, phase 2: there is no part or process "c"; did you mean "b"' "$part" 'bytes = 1' '[schedule]' 'start = b.load, c.load'
bad no_action '8: schedule: start, phase 1: b has no action "laod"; did you mean "load"' "$part" 'bytes = 1' '[schedule]' 'start = b.laod'
bad no_action_of_a_process '8: schedule: start, phase 1: rl has no action "flush"; there are: empty_cache' "$part" 'bytes = 1' '[schedule]' 'start = rl.flush'
bad too_many_arguments '8: schedule: start, phase 1: b.load takes no arguments, and got 1' "$part" 'bytes = 1' '[schedule]' 'start = b.load 3'
bad a_step_is_wrong '10: t.update: .*' '[trainer t]' 'weights = 1GiB' "$part" 'bytes = 1' '[schedule]' 'start = t.load, t.offload, t.update b'
bad no_cycle '9: "cycles = 2" repeats nothing; write cycle = PART.ACTION' "$part" 'bytes = 1' '[schedule]' "$step" 'cycles = 2'
bad no_cycle_that_is_unknown '10: "cycles = 3" repeats nothing; write cycle' "$part" 'bytes = 1' '[schedule]' "$step" '[unknown]' 'schedule.cycles = 1 | 3' '[reported]' 'b.load: owner b = 1'
printf '%s\n' '[process rl]' "$part" 'bytes = 1' '[schedule]' "$step" >"$tmp/once.ini"
refuses no_cycle_of_an_option 2 'allocrig: --cycles: "cycles = 5" repeats nothing' twin "$tmp/once.ini" --cycles 5
refuses no_cycle_of_a_set 2 'allocrig: --set schedule.cycles: "cycles = 5" repeats nothing' twin "$tmp/once.ini" --set schedule.cycles=5
bad unknown_key '10: \[buffer b\] has no key "nope"' "$part" 'bytes = 1' '[schedule]' "$step" '[unknown]' 'b.nope = 1 | 2'
bad reported_elsewhere '10: "b.free" is no step of the schedule' "$part" 'bytes = 1' '[schedule]' "$step" '[reported]' 'b.free: residue = 1'
bad reported_cycle '12: the schedule has 1 cycle, not 3; write cycles = 3' "$part" 'bytes = 1' '[schedule]' "$step" 'cycle = b.free' '' '[reported]' 'cycle 3 b.free: residue = 1'
bad reported_drift '10: "b.load" is no step of the cycle' "$part" 'bytes = 1' '[schedule]' "$step" '[reported]' 'drift b.load = 1'
printf '# allocrig-trace 1\n# card: NVIDIA H100 80GB HBM3\na,0,1048576\nf,0\nm,step\n' >"$tmp/other.trace"
printf '[machine]\ncard = sim:profile=%s\n[process p]\npolicy = torch\n[trainer t]\nprocess = p\nworkload = %s\n[schedule]\nstart = t.train 1\n' rtx4090 "$tmp/other.trace" >"$tmp/name.ini"
run twin "$tmp/name.ini" --what-if no
check a_workload_of_another_card grep -q '^  t: its workload was made on NVIDIA H100 80GB HBM3; workspaces of libraries$' "$out"
sed -i 's/rtx4090/h100/' "$tmp/name.ini"
run twin "$tmp/name.ini" --what-if no
check a_workload_of_this_card not grep -q 'its workload was made on' "$out"
# Of two free blocks of 64 MiB the one with the lower address is taken: the driver of a card places the
# second segment below the first, which is then released; with rising addresses the second one is.
printf '# allocrig-trace 1\na,0,100663296\na,1,67108864\nf,0\na,2,33554432\nf,1\na,3,41943040\nm,step\n' >"$tmp/tie.trace"
printf '[machine]\ncard = sim:profile=h200\n[process p]\n[trainer t]\nworkload = %s\n[schedule]\nstart = t.train 1, p.empty_cache\n[reported]\np.empty_cache: reserved = %s\n' "$tmp/tie.trace" 160MiB >"$tmp/tie.ini"
run twin "$tmp/tie.ini" --check
check addresses_of_the_driver [ "$status" = 0 ]
sed 's/sim:profile=h200/h200/' "$tmp/tie.ini" >"$tmp/name.ini"
run twin "$tmp/name.ini" --check
check a_card_by_its_name [ "$status" = 0 ]
printf 'ordinal,bytes,address\n' >"$tmp/rising.csv"
sed -i "s/160MiB/96MiB/; s,h200,h200:addresses=$tmp/rising.csv,; s/h200:/h200,/" "$tmp/tie.ini"
run twin "$tmp/tie.ini" --check
check rising_addresses [ "$status" = 0 ]
printf '[machine]\ncard = cuda\n' >"$tmp/bad.ini"
refuses no_simulated_card 2 'bad.ini:2: card = cuda: write a simulated card' twin "$tmp/bad.ini"
printf '[machine]\ncards = 65\n' >"$tmp/bad.ini"
refuses too_many_cards 2 'bad.ini:2: cards = 65: write a number of cards from 1 to 64' twin "$tmp/bad.ini"
printf '[machine]\nhost = 0\n' >"$tmp/bad.ini"
refuses no_host_memory 2 'bad.ini:2: host = 0: write at least a byte, or leave it out' twin "$tmp/bad.ini"
bad too_large '5: buffer b: all buffers together must be below 2.60 bytes' "$part" 'bytes = 1PiB' 'count = 1024' '[schedule]' "$step"
bad too_large_request '8: e.load: .*a request of 2.60 bytes or more' '[engine e]' 'model = custom:layers=100000,hidden=1000000000,heads=1,head=1000000000,vocabulary=1000000000' '[schedule]' 'start = e.load'
bad no_graphs '8: g.replay: g has no graphs; call capture first' '[graphs g]' 'sizes = 1' '[schedule]' 'start = g.replay'

# Options of parts have the line of their key.
any=('[schedule]' 'start = e.start')
engine='[engine e]'
model='model = llama-3.1-8b'
sleep='enable_sleep_mode = yes'
bad a_model '6: .*is no preset' "$engine" 'model = llama-99' "${any[@]}"
bad a_unit '7: .*option weights: 16 are bytes; write its unit, such as 16GiB' "$engine" "$model" 'weights = 16' "${any[@]}"
bad a_version '7: .*"banana" is not a version' "$engine" "$model" 'version = banana' "${any[@]}"
bad a_range '7: .*"100-50" is no list' "$engine" "$model" 'prompts = 100-50' "${any[@]}"
bad a_prompt '8: .*may have 100 tokens .*cannot have 500' "$engine" "$model" 'max_model_len = 100' 'prompts = 500' "${any[@]}"
bad other_rules '7: .*mem_fraction_static is SGLang.s; write gpu_memory_utilization' "$engine" "$model" 'mem_fraction_static = 0.5' "${any[@]}"
bad other_rules_of_sglang '8: .*is vLLM.s; write mem_fraction_static' "$engine" "$model" 'rules = sglang' 'gpu_memory_utilization = 0.5' "${any[@]}"
bad rules_that_share '8: .*mem_fraction_static is SGLang.s; write free_fraction' "$engine" "$model" 'rules = lmdeploy' 'mem_fraction_static = 0.5' "${any[@]}"
bad other_rules_that_share '7: .*free_fraction is TensorRT-LLM.s; write gpu_memory_utilization, or write rules = trtllm' "$engine" "$model" 'free_fraction = 0.5' "${any[@]}"
bad no_sleep_of_those '8: .*enable_sleep_mode is vLLM.s; leave it out' "$engine" "$model" 'rules = trtllm' 'enable_sleep_mode = yes' "${any[@]}"
bad no_unknown_input '10: "bytes" is no input; write SECTION.KEY = VALUE' "$part" 'bytes = 1' '[schedule]' "$step" '[unknown]' 'bytes = 1'
bad no_unknown_value '10: "b.bytes" has no values, or too many' "$part" 'bytes = 1' '[schedule]' "$step" '[unknown]' 'b.bytes = 1 |'
bad no_unknown_section '10: there is no process or part "x"; did you mean "b"[?]$' "$part" 'bytes = 1' '[schedule]' "$step" '[unknown]' 'x.bytes = 1' '[reported]' 'b.load: owner b = 1GiB'
bad no_draft_model '7: .*write draft_model = ' "$engine" "$model" 'speculative = draft' "${any[@]}"
bad no_drafts '7: .*write speculative = draft' "$engine" "$model" 'draft_model = llama-3.2-1b' "${any[@]}"
bad drafts_of_sglang '8: .*known for vLLM V1 only' "$engine" "$model" 'rules = sglang' 'speculative = ngram' "${any[@]}"
bad no_experts '7: .*the model has no experts' "$engine" "$model" 'expert_parallel = yes' "${any[@]}"
bad no_such_file '6: trainer t: nowhere.csv' '[trainer t]' 'workload = nowhere.csv' '[schedule]' 'start = t.load'
bad no_ranks '6: nccl n: groups = 0' '[nccl n]' 'groups = 0' '[schedule]' 'start = n.init'
bad too_few_cards '7: .*tensor_parallel: 2 ranks need as many cards, or a multiple, and the process has 1; write cards = 2' \
    "$engine" "$model" 'tensor_parallel = 2' "${any[@]}"

# Sections that no step names. An argument of a step is enough.
bad an_idle_part '7: no step of the schedule names \[buffer c\], so it has no effect; write start = c.load' \
    "$part" 'bytes = 1' '[buffer c]' 'bytes = 1' '[schedule]' "$step"
bad an_idle_process '5: no step of the schedule starts \[process other\]' \
    '[process other]' 'policy = torch' "$part" 'process = rl' 'bytes = 1' '[schedule]' "$step"

# Actions on what is not there: refused where the real program fails, a line where it goes on.
acts() {
    local name=$1 pattern=$2 steps=$3
    shift 3
    bad "$name" "$(($# + 6)): $pattern" "$@" '[schedule]' "start = $steps"
}
buffer=("$part" 'bytes = 1GiB')
trainer=('[trainer t]' 'weights = 1GiB' 'gradients = 1GiB' 'optimizer = 1GiB' 'region = saver')
acts free_twice 'b.free: it is not loaded' 'b.load, b.free, b.free' "${buffer[@]}"
acts load_twice 'b.load: it is loaded already' 'b.load, b.load' "${buffer[@]}"
acts end_twice 'rl.end: process rl has ended' 'b.load, rl.end, rl.end' "${buffer[@]}"
acts finalize_nothing 'n.finalize: there are no communicators' 'n.finalize' '[nccl n]' 'groups = 2'
acts init_twice 'n.init: the communicators are there' 'n.init, n.init' '[nccl n]' 'groups = 2'
acts capture_nothing 'n.capture: there are no communicators' 'n.capture 3' '[nccl n]' 'groups = 2'
acts release_no_graphs 'g.release: g has no graphs' 'g.release' '[graphs g]' 'sizes = 1'
acts release_no_engine 'e.release: e has no weights' 'e.release' "$engine" "$model"
acts capture_twice 'e.capture: e has its graphs' 'e.start, e.capture' "$engine" "$model"
acts profile_twice 'e.profile: e is profiled' 'e.start, e.profile' "$engine" "$model"
acts wake_awake 'e.wake: weights does not sleep' 'e.start, e.wake' "$engine" "$model" "$sleep" 'rules = sglang'
acts sleep_asleep 'e.sleep: kv_cache sleeps already' 'e.start, e.sleep kv_cache, e.sleep kv_cache' "$engine" "$model" "$sleep" 'rules = sglang'
acts trainer_wakes 't.wake: its region does not sleep' 't.load, t.wake' "${trainer[@]}"
acts trainer_sleeps 't.sleep: its region sleeps already' 't.load, t.sleep, t.sleep' "${trainer[@]}"
acts trainer_offloads 't.offload: its region sleeps' 't.load, t.sleep, t.offload' "${trainer[@]}"
acts trainer_frees 't.free: it has nothing to free' 't.free' "${trainer[@]}"
acts trainer_loads 't.load: its weights are there' 't.load, t.load' "${trainer[@]}"
acts trainer_sends 't.update: it has no weights' 'e.start, t.update e' "$engine" "$model" "${trainer[@]}"
bad the_second_step '11: e.wake: weights does not sleep' "$engine" "$model" "$sleep" 'rules = sglang' '[schedule]' 'start = e.start, e.sleep, e.wake' 'end = e.wake'
printf '%s\n' '[process rl]' "$engine" "$model" "$sleep" 'num_gpu_blocks_override = 512' 'enforce_eager = yes' '[trainer t]' 'weights = 1GiB' '[schedule]' \
    'start = e.start, e.wake, e.sleep 1, e.sleep 2, e.wake weights, e.wake weights, e.sleep 1, t.load, t.onload, t.offload gradients' >"$tmp/idle.ini"
run twin "$tmp/idle.ini" --what-if no
check idle_steps [ $status = 0 ]
check idle_wake says 'wake does nothing: the executor is not sleeping'
check idle_sleep says 'sleep does nothing: the executor is already sleeping'
check idle_tag says 'wake does nothing: tag weights is not in the sleeping tags'
check idle_half says 'sleep does nothing: the executor counts as sleeping until all tags are awake'
check idle_onload says 'onload does nothing: none of these are offloaded'
check idle_offload says 'offload gradients does nothing: it has none of these on the card'

# With no size of the cache does it pass: the reason is that of the run that comes furthest.
printf '%s\n' '[process rl]' "$engine" "$model" 'enforce_eager = yes' '[schedule]' 'start = e.start' 'cycle = e.sleep 1' >"$tmp/off.ini"
run twin "$tmp/off.ini"
check no_size_helps says 'With no value of gpu_memory_utilization of e does the schedule pass. It comes furthest with [0-9.]+: cycle 1, e.sleep 1: e cannot sleep: enable_sleep_mode is off'

# Two caches of 30 GiB beside a request of 60: neither of them alone makes room, both do.
printf '[process a]\n[process b]\n[process c]\n[buffer x]\nprocess = a\nbytes = 30GiB\n[buffer y]\nprocess = b\nbytes = 30GiB\n[buffer z]\nprocess = c\nbytes = 60GiB\n[schedule]\ncycle = x.load, x.free, y.load, y.free, z.load, z.free\n' >"$tmp/pair.ini"
run twin "$tmp/pair.ini"
check a_pair_helps says '[ab].empty_cache before [a-z.]+, and [ab].empty_cache before [a-z.]+ \(then it fits\)'
check three_pairs_are_listed [ "$(grep -c 'then it fits' "$out")" = 3 ]
check no_change_alone_helps not grep -qE '^ +- +- +[ab]\.empty_cache before [a-z.]+ \(then it fits' "$out"
# A change that is refused is not one with which it does not fit.
run twin workloads/scenarios/wake_up.ini
check refused_is_no_misfit says 'expandable_segments=true: is refused, in start, rollout.start'

# A closed standard output does not get the number of a file.
"$ALLOCRIG" twin $small --json "$tmp/closed.json" >&- 2>"$err"
check a_closed_output_is_said [ $? = 2 -a "$(cat "$err")" = 'allocrig: standard output cannot be written' ]
check the_table_is_in_no_file [ ! -e "$tmp/closed.json" -o "$(cmp "$tmp/closed.json" "$tmp/small.json" 2>&1)" = "" ]

# What the how-to page shows.
run twin workloads/scenarios/wake_up.ini
check wake_up_fails says 'It does not fit. In cycle 1, rollout.wake kv_cache: a request of 1.672 GiB'
check wake_up_size says 'gpu_memory_utilization = 0.61 .now 0.7'
check wake_up_change says 'rl.empty_cache before rollout.wake kv_cache .then it fits'
check wake_up_blocks says 'the cache has 109568 blocks'
run twin workloads/scenarios/wake_up.ini --what-if no --set rollout.gpu_memory_utilization=0.6
check wake_up_passes says 'It fits'
printf '[machine]\ncrad = sim\n' >"$tmp/bad.ini"
refuses no_machine_key 2 'bad.ini:2: \[machine\] has no key "crad"; did you mean "card"' twin "$tmp/bad.ini"
printf '[machine]\ncard = sim:profile=nothing\n[process a]\n[schedule]\nstart = a.empty_cache\n' >"$tmp/bad.ini"
refuses no_profile 2 'bad.ini:2: .*nothing' twin "$tmp/bad.ini"
printf '[buffer b]\n' >"$tmp/bad.ini"
refuses no_processes 2 'bad.ini: there is no process; write \[process NAME\]' twin "$tmp/bad.ini"

# What is unknown has a range: buffers of 1 to 3 GiB, and 2 GiB were reported.
printf '[process rl]\n[buffer b]\nbytes = 1GiB\n[schedule]\nstart = b.load\n[unknown]\nb.bytes = 1GiB | 3GiB\n[reported]\nb.load: owner b = 2GiB\nb.load: owner rl/context = 9GiB\n' >"$tmp/unknown.ini"
run twin "$tmp/unknown.ini" --what-if no
check a_figure_in_range grep -qE '^ *2GiB +1\.000 GiB +-50\.0 +1\.000 GiB +3\.000 GiB +in range' "$out"
check a_figure_out_of_range grep -qE '^ *9GiB .* off +b.load: owner' "$out"
check what_fits says 'It fits with 2 of the 2 combinations of .unknown., with peaks of 1.5[0-9]+ GiB to 3.5[0-9]+ GiB'
check what_is_in_range says 'Reported figures: 0 of 2 agree within 5 %, 1 is in range'
run twin "$tmp/unknown.ini" --what-if no --json -
check json_has_the_range grep -q '"most": 3221225472' "$out"
check json_says_what_fits grep -q '"combinations": 2' "$out"
sed '/reported/,$d; s/3GiB/300GiB/' "$tmp/unknown.ini" >"$tmp/no_figures.ini"
run twin "$tmp/no_figures.ini" --what-if no
check ranges_without_figures says 'It fits with 1 of the 2 combinations of .unknown., with peaks of 1.5[0-9]+ GiB to 1.5[0-9]+ GiB'
sed -i '/context/d' "$tmp/unknown.ini"
run twin "$tmp/unknown.ini" --check
check in_range_is_no_miss [ "$status" = 0 ]
finish
