#!/bin/bash
# `trace`: what the program is told, the trace, and the sentences if something is missing. A stand-in writes the trace,
# so that neither torch nor jax is needed; the last part traces a program with the real tracer, if torch is installed.
# shellcheck disable=SC2317 # functions are called by `check`
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
python=$(command -v python3)
[ -n "$python" ] || { echo "skip trace: python3 is not installed" && exit 0; }
program=$PWD/tests/cli/tracer_stand_in.py
tree=$PWD
mkdir -p "$TEST_TMP/tracer/start"
export ALLOCRIG_TRACER=$TEST_TMP/tracer TMPDIR=$TEST_TMP
trace=$TEST_TMP/out.trace

# said REGEX: the report or the error
said() {
    grep -qE -e "$1" "$err" || { echo "  wanted /$1/, said: $(cat "$err")" && return 1; }
}
leaves_nothing() { [ -z "$(find "$TEST_TMP" -name 'allocrig-*')" ]; }

run trace -o "$trace" -- python3 "$program"
check it_succeeds [ "$status" = 0 ]
check a_line_of_report [ "$(cat "$err")" = "wrote $trace: 76 allocations, live peak 456.1 MiB, 4 steps" ]
check unknown_keys_stay grep -q '^a,0,41943040,tag=layers.0.fc:aten.empty,at=model.py:10$' "$trace"
check notes_stay grep -q '^!,traced,outside_table,aten.unfold,4,8388608$' "$trace"
check the_default_card grep -qx '# card: NVIDIA H100 80GB HBM3' "$trace"
run trace -o "$TEST_TMP/out.bin.zst" --card l4 -- python3 "$program"
check a_binary_trace [ "$status" = 0 ]
run inspect "$TEST_TMP/out.bin.zst"
check of_the_card_named grep -q '^card  *NVIDIA L4$' "$out"
(cd "$TEST_TMP" && "$ALLOCRIG" trace -- "$python" "$program") >"$out" 2>"$err"
check a_default_output [ -s "$TEST_TMP/out.trace" ]
MODE=environment run trace -o "$trace" --card 'NVIDIA A100-SXM4-80GB' --seed 7 --steps 2 -- python3 "$program"
check what_the_program_is_told grep -qx 'TRACE_CARD=NVIDIA A100-SXM4-80GB TRACE_CARD_BYTES=84987740160 TRACE_CARD_SM=8.0 TRACE_PROGRESS=0 TRACE_SEED=7 TRACE_STEPS=2' "$out"
check where_python_finds_the_tracer grep -q "^$TEST_TMP/tracer/start:$TEST_TMP/tracer" "$out"
check steps_are_limited said ' 2 steps$'
PYTHONPATH=/there MODE=environment run trace -o "$trace" --rank 3 --world 8 -- python3 "$program"
check a_rank_of_several grep -q 'TRACE_RANK=3 .*TRACE_WORLD=8$' "$out"
check the_path_of_the_user_stays grep -q "tracer:/there$" "$out"

# ---- failures

MODE=fails run trace -o "$trace" -- python3 "$program"
check the_exit_status_is_passed_on [ "$status" = 3 ]
check a_failed_program_has_a_trace said '^allocrig: python3 ended with status 3; its trace is written$'
MODE=dies run trace -o "$trace" -- python3 "$program"
check an_incomplete_trace said '4 steps; the program ended early, so the rest is missing$'
MODE=killed run trace -o "$trace" -- python3 "$program"
check a_signal_is_named said 'python3 was ended by signal 9 \(Killed\); its trace is written'
check a_signal_is_in_the_status [ "$status" = 137 ]
# killed itself, it takes the program along
# shellcheck disable=SC2016 # for the shell that it starts
{ "$ALLOCRIG" trace -o "$trace" -- sh -c 'echo $$ >"$0"; exec sleep 1000000' "$TEST_TMP/pid" & } >/dev/null 2>&1
until [ -s "$TEST_TMP/pid" ]; do sleep 0.01; done
{ kill -s KILL $! && wait $!; } 2>/dev/null
runs() { grep -qs 'State:.[^Z]' "/proc/$(<"$TEST_TMP/pid")/status"; }
while runs; do sleep 0.01; done
check the_program_ends_with_it eval '! runs'
rm -f "$trace"
MODE=invalid run trace -o "$trace" -- python3 "$program"
check an_invalid_trace said 'the trace is kept in .*: the tracer wrote a trace that is not valid: .*:[0-9]+: '
check and_no_output [ ! -e "$trace" ]
rm -rf "$TEST_TMP"/allocrig-*
refuses no_framework_was_imported 3 'no trace was written: true imported neither torch nor jax' trace -o "$trace" -- true
refuses it_failed_before_that 7 'bash ended with status 7; no trace was written: it imported neither torch nor jax, or ended .* pip install torch\)$' trace -o "$trace" -- bash -c 'exit 7'
refuses a_signal_before_that 143 'signal 15 \(Terminated\); no trace was written$' trace -o "$trace" -- bash -c 'kill $$'
refuses python_is_not_installed 2 'pythonx: cannot be run: No such file' trace -o "$trace" -- pythonx train.py
refuses no_program 2 'the word after -- is empty; name a program' trace -o "$trace" -- ''
refuses no_command 2 'no command is given; write trace -- python3 train.py' trace -o "$trace"
refuses no_dashes 2 'write -- before the command' trace python3 train.py
refuses unknown_card 2 'there is no card "h10"; did you mean "h100"' trace --card h10 -- true
refuses a_card_without_cuda 2 'mi300x is not an NVIDIA card' trace --card mi300x -- true
refuses a_rank_without_a_world 2 '--rank 1 needs --world with a larger number' trace --rank 1 -- true
refuses no_number 2 'trace: --seed: "x"' trace --seed x -- true
refuses an_unknown_ending 2 'the ending does not tell the format' trace -o "$TEST_TMP/out.csv" -- true
check leaves_nothing leaves_nothing
ALLOCRIG_TRACER='' run trace -o "$trace" -- true
[ -d "$tree/workloads/record/tracer" ] || check no_tracer said 'the tracer is neither in the tree'

# ---- the real tracer

unset ALLOCRIG_TRACER
python=${ALLOCRIG_PYTHON:-python3}
if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "skip the_real_tracer: torch is not installed for $python (ALLOCRIG_PYTHON names another one)"
    finish
fi
[ -d "$tree/workloads/record/tracer" ] || { echo "skip the_real_tracer: it is not in this tree" && finish; }
cat >"$TEST_TMP/train.py" <<'END'
import torch

model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(5):
    loss = model(torch.randn(256, 1024, device="cuda")).logsumexp(1).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
END
run trace -o "$trace" --steps 3 -- "$python" "$TEST_TMP/train.py"
check the_real_tracer_succeeds [ "$status" = 0 ]
check it_counts_steps said 'wrote .*, live peak [0-9.]+ MiB, 3 steps$'
check it_names_modules_and_lines grep -qE 'tag=[^,]*:[^,]*.*at=[^,]*train\.py:[0-9]+' "$trace"
finish
