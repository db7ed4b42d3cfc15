#!/bin/bash
# `trace` of a JAX program: what is read of XLA's plan (without JAX), and, if JAX is installed, the requests of a
# program, donation, steps, values that are known, and refusals.
# shellcheck disable=SC2317 # functions are called by `check`
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
[ -d workloads/record/tracer ] || { echo "skip trace_jax: the tracer is not in this tree" && exit 0; }
command -v python3 >/dev/null || { echo "skip trace_jax: python3 is not installed" && exit 0; }
trace=$TEST_TMP/out.trace

# ---- XLA's texts

cat >"$TEST_TMP/m.gpu_after_optimizations-buffer-assignment.txt" <<'END_OF_FILE'
BufferAssignment:
allocation 0: size 4096, page 0, parameter 1, shape |f32[1024]| at ShapeIndex {}, maybe-live-out:
 value: <3 p1 @0> (size=4096,offset=0): f32[1024]{0}
 value: <7 new @0> (size=4096,offset=0): f32[1024]{0}
allocation 1: size 4, page 0, maybe-live-out:
 value: <8 sum @0> (size=4,offset=0): f32[]
allocation 2: size 400, page 0, parameter 0, shape |f32[100]| at ShapeIndex {}:
 value: <2 p0 @0> (size=400,offset=0): f32[100]{0}
allocation 3: size 16, page 0, output shape is |(f32[1024], f32[])|, maybe-live-out:
 value: <9 out{} @0> (size=16,offset=0): (f32[1024]{0}, f32[])
allocation 4: size 4, page 0, thread-local:
 value: <0 x @0> (size=4,offset=0): f32[]
allocation 5: size 64, page 0, constant:
 value: <1 c @0> (size=64,offset=0): f32[16]{0}
allocation 6: size 8192, color 5, page 0, preallocated-temp:
 value: <5 t @0> (size=8192,offset=0): f32[2048]{0}
END_OF_FILE
cat >"$TEST_TMP/m.gpu_after_optimizations-buffer-assignment-values.txt" <<'END_OF_FILE'

Total bytes used: 12776

Used values:
<7 new @0>
 positions:
  new
  out {0}
 uses:
  out, operand 0
 from instruction: %new = f32[1024]{0} add(%p1, %p1)
<8 sum @0>
 positions:
  sum
  out {1}
 uses:
  out, operand 1
<9 out{} @0>
 positions:
  out {}
 uses:
  (none)
END_OF_FILE
cat >"$TEST_TMP/m.gpu_after_optimizations.txt" <<'END_OF_FILE'
HloModule jit_step, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias) }, buffer_donor={ (0, {}) }, entry_computation_layout={(f32[100]{0}, f32[1024]{0})->(f32[1024]{0}, /*index=1*/f32[])}

ENTRY %main (p0: f32[100], p1: f32[1024]) -> (f32[1024], f32[]) {
  %p0 = f32[100]{0} parameter(0)
  %s = (f32[64,2]{1,0}, s32[]) custom-call(%p0), custom_call_target="cusolver_potrf_ffi"
  %w = (f32[8]{0}, s8[64]{0}) custom-call(%p0), custom_call_target="__cublas$lt$matmul"
  ROOT %out = (f32[1024]{0}, f32[]) tuple(%new, %sum)
}
END_OF_FILE
cat >"$TEST_TMP/m.gpu_after_optimizations-live-range.txt" <<'END_OF_FILE'
HloLiveRange (max 3):
  InstructionSequence:
    0:p0
    1:t
    2:gemm
  BufferLiveRange:
    p0{}:0-3
    t{}:1-2
END_OF_FILE
cat >"$TEST_TMP/reads.py" <<'END_OF_FILE'
import sys

sys.path.insert(0, "workloads/record/tracer")
from allocrig_tracer import jax_assignment, jax_autotune, jax_cards, jax_compile

folder = sys.argv[1]
*read, hlo, live_range, temporaries = jax_assignment.read_folder(folder)
program = jax_compile.Program("step", *read)
print("requests", program.requests)
print("aliases", program.aliases, "donors", sorted(program.donors), "shapes", program.shapes)
print("bytes", program.parameters, program.temp, program.constants, program.unplaced)
print("calls", jax_compile.unplanned_calls(hlo))
print("values", temporaries)
print("bits", jax_autotune.type_bytes("(f32[10,3]{1,0}, bf16[8], s4[16], f8e4m3fn[5], pred[])"))
kernels = jax_autotune.kernels("""
%add_computation (p0: f32[4,8], p1: f32[8,2]) -> f32[4,2] {
  %p0 = f32[4,8]{1,0} parameter(0)
  ROOT %dot.1 = f32[4,2]{1,0} dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
%turned (p3: f32[4,2]) -> f32[2,4] {
  ROOT %transpose.1 = f32[2,4]{1,0} transpose(%p3), dimensions={1,0}
}
%turned.1 (p4: f32[4,2]) -> f32[2,4] {
  ROOT %transpose.2 = f32[2,4]{1,0} transpose(%p4), dimensions={1,0}
}
%move (p2: f32[4,2]) -> f32[2,4] {
  ROOT %scatter.1 = f32[2,4]{1,0} scatter(%p2), to_apply=%x
}
ENTRY %main {
  %a = (f32[4,8]{1,0}, s32[]) parameter(0)
  %b = f32[8,2]{1,0} parameter(1)
  %gemm = f32[4,2]{1,0} fusion(%a#0, %b), kind=kCustom, calls=%add_computation, backend_config={"kind":"__triton_nested_gemm_fusion"}
  %turn = f32[2,4]{1,0} fusion(%gemm), kind=kInput, calls=%turned
  %again = f32[2,4]{1,0} fusion(%gemm), kind=kInput, calls=%turned.1
  %put = f32[2,4]{1,0} fusion(%gemm), kind=kInput, calls=%move
  ROOT %loop = f32[2,4]{1,0} fusion(%turn), kind=kLoop, calls=%l
}""")
print("kernels", [(k.name, k.inputs, k.outputs, k.flops) for k in kernels])
zone = jax_autotune.RED_ZONE_BYTES
print("trials", [([n - zone for n in i], r) for i, r in jax_autotune.trials(kernels, 4 << 20)])
large = [jax_autotune.Kernel("gemm", [], 0, 1e9), jax_autotune.Kernel("t", [], 0, 1e6)]
text = "  InstructionSequence:\n    1:t\n    2:gemm\n  BufferLiveRange:\n    t{}:1-2\n    later{}:3-4\n"
print("temp", jax_autotune.temp_with_workspaces(8192, large, 4096, text, {"t{}": 8192, "later{}": 9000}))
print("workspaces", jax_autotune.workspace_bytes("9.0"), jax_autotune.workspace_bytes("8.6"))
for card, cores in ("NVIDIA GH200 480GB", 132), ("NVIDIA A100-SXM4-80GB", 108), ("NVIDIA L4", 58), ("unknown", 132):
    print(card, f"core_count: {cores}\n" in jax_cards.target_config(card, 1 << 34, "8.9"))
END_OF_FILE
python3 "$TEST_TMP/reads.py" "$TEST_TMP" >"$out" 2>"$err" || cat "$err"
check requests_in_order grep -qxF "requests [(4, 1, 'output', False), (16, None, 'output', False), (8192, None, 'temp', True)]" "$out"
check donated_parameters grep -qxF "aliases {0: 1} donors [0, 1] shapes [('f32', (1024,)), ('f32', ())]" "$out"
check sums grep -qxF "bytes 4496 8192 64 []" "$out"
check calls_outside_the_plan grep -qxF "calls {'cusolver_potrf_ffi': [1, 516]}" "$out"
check bytes_of_temporary_values grep -qxF "values {'t{}': 8192}" "$out"
check bytes_of_types grep -qxF "bits 150" "$out"
check kernels_that_are_tried grep -qxF "kernels [('gemm', [128, 64], 32, 128.0), ('turn', [32], 32, 0), ('again', [32], 32, 0)]" "$out"
check trials_of_equal_kernels_once grep -qxF "trials [([128, 64], [32, 4194304]), ([32], [32])]" "$out"
check workspaces_in_temporary_memory grep -qxF "temp 12544" "$out"
check workspaces_by_card grep -qxF "workspaces 33554432 4194304" "$out"
check cards [ "$(grep -c ' True$' "$out")" = 4 ]

# ---- a program

python=${ALLOCRIG_PYTHON:-python3}
if ! "$python" -c 'import jax' 2>/dev/null; then
    echo "skip a_jax_program: jax is not installed for $python (ALLOCRIG_PYTHON names another one)"
    finish
fi
cat >"$TEST_TMP/train.py" <<'END_OF_FILE'
import sys

import jax
import jax.numpy as jnp
import numpy as np


def step(w, m, count, x):
    g = jax.grad(lambda w: ((jnp.tanh(x @ w) @ w) ** 2).sum())(w)
    m = 0.9 * m + g
    return w - 0.1 * m, m, count + 1


step = jax.jit(step, donate_argnums=(0, 1))
w = jax.random.normal(jax.random.key(0), (1024, 1024))
m, count = jnp.zeros((1024, 1024)), jnp.array(0)
while count < 5:  # known: no argument but itself determines it
    w, m, count = step(w, m, count, np.ones((2048, 1024), np.float32))
print("count", int(count), "device", jax.devices()[0].platform, jax.default_backend(), w.shape)
print("stats", jax.devices()[0].memory_stats()["bytes_in_use"])
if "branch" in sys.argv:
    print("large" if w.sum() > 0 else "small")
if "fail" in sys.argv:
    raise SystemExit(5)
END_OF_FILE
run trace -o "$trace" -- "$python" "$TEST_TMP/train.py"
check it_succeeds [ "$status" = 0 ]
check a_known_value_is_computed grep -qx 'count 5 device gpu gpu (1024, 1024)' "$out"
check the_devices_memory grep -qxE 'stats 838[89][0-9]{3}' "$out"
check it_counts_steps grep -qE 'wrote .*, 5 steps$' "$err"
check an_argument_from_the_host [ "$(grep -c '^a,[0-9]*,8388608,tag=device_put,at=train.py:18$' "$trace")" = 5 ]
check donated_arguments_make_no_requests [ "$(grep -c '^a,[0-9]*,4194304,tag=step:output' "$trace")" = 0 ]
check temporary_memory [ "$(grep -c '^a,[0-9]*,[0-9]*,tag=step:temp,at=train.py:18$' "$trace")" = 5 ]
check step_of_the_largest_function grep -qx '!,traced,step,step,5' "$trace"
check versions grep -q '^!,traced,versions,jax [0-9.]*; jaxlib [0-9.]*; compiled for c' "$trace"
check what_the_autotuner_asks_for grep -qxE '!,traced,(rule,jax_autotune|unsure,jax_compiled_for_cpu),.*' "$trace"
check no_refusal [ "$(grep -c outside_envelope "$trace")" = 0 ]
run run -p bfc:framework=jax,growth=true -p greedy -w "$trace" -d sim
check policies_serve_it [ "$status" = 0 ]
run trace -o "$trace" --steps 3 -- "$python" "$TEST_TMP/train.py" branch fail
check steps_are_limited grep -qE ', 3 steps$' "$err"
run trace -o "$trace" -- "$python" "$TEST_TMP/train.py" branch fail
check the_exit_status_is_passed_on [ "$status" = 5 ]
check a_branch_is_refused grep -qx '!,traced,outside_envelope,the program branches at train.py:22 on a value that only the card computes' "$trace"
if "$python" -c 'import jax_plugins.xla_cuda13' 2>/dev/null; then
    run trace -o "$trace" -- "$python" tests/gpu/programs/jax_programs.py embedding
    check the_requests_of_a_recording grep -q '^allocations=439 ' "$out" # workloads/data/driver/README.md
else
    echo "skip the_requests_of_a_recording: jax-cuda13-plugin is not installed for $python"
fi
finish
