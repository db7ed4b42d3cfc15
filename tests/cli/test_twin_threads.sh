#!/bin/bash
# The scenarios of public reports: all run, the figures that are claimed in their README agree within
# 5 %, the directions are right, and each recorded miss is what it was.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
folder=workloads/scenarios/threads
series=$TEST_TMP/series.csv

# Reported figures that differ by more than 5 % or whose outcome is another one: the scenario, what
# was reported, the twin's figure, the difference in per cent, least and most with the values of what
# is unknown, and whether the figure is within. A change of a rule that moves one of them changes
# this list and the table of the README. The figures of all others agree.
cat >"$TEST_TMP/known" <<'END'
actuation-746 0.24GiB 748.5 MiB +204.6 229.4 MiB 748.5 MiB in range
actuation-746 1.27GiB 1.051 GiB -17.3 1.029 GiB 1.480 GiB in range
club3090-612 5.98GiB 6.597 GiB +10.3 4.738 GiB 6.597 GiB in range
club3090-612 567978 626866 +10.4 450203 626866 in range
nccl-864 1600000000 1.381 GiB -7.3 1.369 GiB 2.084 GiB in range
nccl-864 6000000000 3.396 GiB -39.2 2.713 GiB 6.115 GiB in range
nemorl-223 774MiB 722.0 MiB -6.7 off
nemorl-2619 43.82GiB 46.40 GiB +5.9 off
nemorl-2619 4.11GiB 3.051 GiB -25.8 off
sglang-11830 2243474 2580003 +15.0 2227154 2560031 in range
sglang-11830 1.44GiB 970.0 MiB -34.2 970.0 MiB 1.217 GiB off
sglang-7873 0.6GiB 656.0 MiB +6.8 off
sglang-7873 1GiB 1.342 GiB +34.2 off
skyrl-1768-sleep 6.42GiB 8.445 GiB +31.5 5.941 GiB 8.445 GiB in range
vllm-21489 0.65GiB 570.0 MiB -14.4 off
vllm-32714 6GiB 6.846 GiB +14.1 5.627 GiB 6.846 GiB in range
vllm-45178 245840 783424 +218.7 209072 783424 in range
vllm-46203 3.94GiB 1.012 GiB -74.3 off
vllm-47654 1503657984 592.0 MiB -58.7 592.0 MiB 2.701 GiB in range
vllm-47654 6962MiB 5.455 GiB -19.8 5.455 GiB 7.578 GiB in range
END
for file in "$folder"/*.ini; do
    name=$(basename "$file" .ini)
    run twin "$file" --what-if no
    check "$name.runs" [ "$status" = 0 -o "$status" = 1 ]
    check "$name.compares" grep -q '^Reported figures: ' "$out"
    awk -v name="$name" 'match($0, / (off|in range) /) { verdict = substr($0, RSTART + 1, RLENGTH - 2)
        $0 = substr($0, 1, RSTART); $1 = $1; print name, $0, verdict }' "$out" >>"$TEST_TMP/misses"
done
check misses_are_those_recorded diff "$TEST_TMP/known" "$TEST_TMP/misses"
long the_same_scenarios_again || finish

# Each file is in the table, and --check says the same as the page.
for file in "$folder"/*.ini; do
    name=$(basename "$file" .ini)
    check "$name.is_in_the_table" grep -qE "^\| \`$name\`" $folder/README.md
    ! grep -q "^$name " "$TEST_TMP/known" || continue
    [ "$(grep -c "^| \`$name\`.*within 5 %" $folder/README.md)" = 0 ] || claimed="${claimed:-} $name"
done
for name in ${claimed:-}; do
    run twin "$folder/$name.ini" --check --what-if no
    check "$name.check" grep -qE '^Reported figures: ([0-9]+) of \1 agree' "$out"
done

# bytes FILE CYCLE STEP CARD OWNER: of a beginning of an owner's name, at the end of the step; "used": all
bytes() {
    local series=$series.$1 # of each file once
    [ -s "$series" ] || "$ALLOCRIG" twin "$folder/$1.ini" --what-if no --series "$series" >"$out" 2>"$err"
    awk -F, -v cycle="$2" -v step="$3" -v card="$4" -v owner="$5" '
        $3 == cycle && $4 == step && $5 == card && $6 == "end" &&
        (owner == "used" ? $7 != "free" : index($7, owner) == 1) { sum += $9 }
        END { printf "%.0f\n", sum }' "$series"
}

# Sleep: with expandable segments nothing is released in vLLM 0.7, all of it from 0.20.1 on.
check sleep_keeps_segments [ "$(bytes vllm-14189 1 'llm.sleep 1' 0 llm/weights)" -gt 15000000000 ]
check sleep_releases_segments [ "$(bytes vllm-40812 1 'llm.sleep 1' 0 llm/weights)" = 0 ]
awake=$(bytes vllm-40812 1 llm.wake 0 used)
check sleep_leaves_a_twentieth [ $((20 * $(bytes vllm-40812 1 'llm.sleep 1' 0 used))) -lt "$awake" ]
# In 0.14 the weights stay on the card, in 0.13 they do not.
check weights_stay_in_0_14 [ "$(bytes vllm-32714 1 'llm.sleep 1' 0 llm/weights)" -gt 15000000000 ]
check weights_leave_in_0_13 [ "$(bytes vllm-32714-013 1 'llm.sleep 1' 0 llm/weights)" = 0 ]
# Discarded graphs leave their pool, not what the driver keeps of them.
check pool_of_graphs_leaves [ "$(bytes vllm-57899 20 'llm.sleep 1' 0 decode/outputs)" = 0 ]
# Several parts of a process have NCCL loaded once.
check nccl_is_loaded_once [ "$(bytes vllm-47654 1 llm.wake 0 logits/kernels)" = 0 ]
check nccl_is_loaded [ "$(bytes vllm-47654 1 llm.wake 0 groups/kernels)" = $((286 << 20)) ]
# Expandable segments of a trainer: the same live bytes, 2 to 5 GB less of the card.
step='without.train 20 & with.train 20'
saved=$(($(bytes trl-5794 1 "$step" 0 used) - $(bytes trl-5794 1 "$step" 1 used)))
check segments_save_2_to_5_gb [ "$saved" -ge 2000000000 -a "$saved" -le 5000000000 ]
check live_bytes_are_the_same [ "$(bytes trl-5794 1 "$step" 0 without/weights)" = "$(bytes trl-5794 1 "$step" 1 with/weights)" ]
# A request in a MemPool does not get what it holds and has free; outside of a MemPool it does.
run twin $folder/pytorch-159674.ini --what-if no
check mempool_does_not_fit says 'a request of 70.00 GiB'
# What the twin would have told: the change that the thread found.
run twin $folder/slime-1086.ini
check empty_cache_helps_nccl says 'megatron.empty_cache before data.use \(then it fits\)'
run twin $folder/openrlhf-1274.ini
check segments_are_refused says 'expandable_segments=true: is refused.*vllm-project/vllm#14189'
run twin $folder/nemorl-223-v1.ini
check empty_cache_before_sleep says '49[0-9]{2}\.[0-9] +vllm.empty_cache before llm.sleep 1' # 7392 - 2440 MiB
run twin $folder/vllm-15248-before.ini
check a_cache_of_the_sampler says '19[0-9]{2}\.[0-9] +vllm.empty_cache before llm.sleep 1' # 1.93 GiB
run twin $folder/vllm-14189.ini
check default_segments_release says '[67][0-9]{4}\.[0-9] +vllm.policy: expandable_segments=false'
# A trainer by its source: the request that failed is the one that fails, and the change that was made helps.
run twin $folder/skyrl-1768.ini
check the_same_request_fails says 'In cycle 2, actor.train: a request of 18.91 GiB'
check segments_help says 'megatron.policy: expandable_segments=true \(then it fits\)'
if command -v python3 >/dev/null; then
    python3 $folder/skyrl_1768.py >"$TEST_TMP/skyrl"
    check requests_are_those_of_the_script cmp "$TEST_TMP/skyrl" <(gzip -dc $folder/skyrl-1768.trace.gz)
fi
# More communicators take more, linear in their number.
run twin $folder/nccl-864.ini --what-if no
one=$(bytes nccl-864 0 'first.use all_reduce' 0 first/communicators)
three=$(bytes nccl-864 0 'more.use all_reduce' 0 more/communicators)
check linear_in_communicators [ "$one" -gt 0 -a "$three" = $((3 * one)) ]
finish
