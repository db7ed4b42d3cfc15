#!/bin/bash
# The tracer's rules of what kernels take for themselves, against the calls measured on a card. Needs no PyTorch.
# shellcheck disable=SC2317 # functions are called by `check`
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only tracer_kernels 'starts no program of this build'
python=$(command -v python3)
[ -n "$python" ] || { echo "skip tracer_kernels: python3 is not installed" && exit 0; }
export PYTHONDONTWRITEBYTECODE=1
measured=results/published/h200/kernels
compare() { "$python" workloads/record/tracer/measure/check_kernels.py "$@" >"$out" 2>"$err"; }
fitted='aten\.(linalg|_linalg|_fft|cholesky)' # sizes of cuFFT and cuSOLVER are fits
others="(?!$fitted).*"

# plans STATEMENTS: they see plan(name, tensors...) and context(sm=...)
plans() {
    PYTHONPATH=workloads/record/tracer:workloads/record/tracer/measure "$python" - >"$out" 2>"$err" <<EOF
from allocrig_tracer import kernels
from check_kernels import Context, Tensor
from allocrig_tracer.kernels_reduce import plain_strides
def tensor(*shape, dtype="float32"):
    return Tensor(dtype, shape, plain_strides(shape), "cuda", 0)
def context(**values):
    made = Context("main")
    made.__dict__.update(values)
    return made
def plan(name, args, outs, ctx=context(), **named):
    return kernels.plan("aten." + name, args, named, outs, ctx)
$1
EOF
}

check exact_in_measured_calls compare --every 4 --least 0.95 "$measured/measured.tsv.gz" --operator "$others"
check exact_in_unseen_calls compare --every 2 --least 0.99 "$measured/unseen.tsv.gz" --operator "$others"
check transforms_and_linear_algebra compare --least 0.55 "$measured/unseen.tsv.gz" --operator "$fitted.*"
check eigenvalues_within_a_thousandth plans "
words = lambda *shape, dtype='float32': plan('_linalg_eigh.default', (tensor(*shape, dtype=dtype),),
                                             [tensor(*shape[:-1], dtype=dtype), tensor(*shape, dtype=dtype)])
taken = lambda *args, **named: [s[1] for s in words(*args, **named) if s[0] == 'take'][1]
assert [taken(n, n) for n in (32, 48, 256, 512)] == [12436, 21768, 301088, 1124416]  # as measured
assert [taken(n, n) for n in (768, 1500, 4096)] == [9959308, 36893996, 270648204]
near = lambda got, seen: abs(got - seen) < seen / 1000
assert near(taken(24, 24), 342988) and near(taken(600, 600), 6425676) and near(taken(6, 10, 10), 1764616)
assert near(taken(100, 100, dtype='float64'), 1379416)"
check singular_values_of_square_matrices plans "
for n, seen in ((24, 3968), (33, 29568), (96, 103040), (305, 833280), (2048, 34156800)):
    made = plan('_linalg_svd.default', (tensor(n, n), True), [tensor(n, n), tensor(n), tensor(n, n)])
    got = [s[1] for s in made if s[0] == 'take'][2]
    assert abs(got - seen) < seen / 200, (n, got)"
failing() { ! compare --every 50 --least 1 "$measured/measured.tsv.gz" --operator 'aten\.linalg_qr.*'; }
check a_miss_fails failing
check it_says_why grep -q 'the share of exact rows is below 1' "$err"

product='m = tensor(64, 32), tensor(32, 16); o = [tensor(64, 16)]; mib = 2**20'
check workspace_of_hopper plans "$product
assert ('keep', ('cublas', 0, 'main', 0), 32 * mib) in plan('mm.default', m, o)"
check workspace_of_others plans "$product
assert plan('mm.default', m, o, context(sm=8.0))[1][2] == 8 * mib + 2**17"
check a_thread_has_its_own plans "$product
assert plan('mm.default', m, o, context(thread='backward'))[1][1][2] == 'backward'"
CUBLAS_WORKSPACE_CONFIG=:16:8 check workspace_of_the_environment plans "$product
assert plan('mm.default', m, o)[1][2] == 2**17"
check a_bias_takes_cublaslt plans "$product
steps = plan('addmm.default', (tensor(16),) + m, o)
assert [s[1][0] for s in steps if s[0] == 'keep'] == ['cublas', 'cublaslt'], steps"
check a_loss_keeps_its_elements plans "x = tensor(1000, 333)
assert plan('mse_loss.default', (x, x), [tensor()])[0] == ('out', 0, 1332000)"
check fake_quantisation_looks_for_bounds_first plans "x = tensor(64, 3, 8, 8)
call = lambda *rows, axis=0, **named: plan('_fused_moving_avg_obs_fq_helper.default', (x, *[tensor()] * 6, 0.01, 0, 255, axis, *rows), [x, x], **named)
outs = [('give', 1), ('give', 0), ('out', 0), ('out', 1)]
assert call(True) == call(axis=-4, per_row_fake_quant=True) == [('take', 256), ('take', 256)] + outs, call(True)
assert call()[:2] == [('take', 4), ('take', 4)] and call()[-4:] == outs, call()"
check pooling_of_volumes_copies_what_lies_otherwise plans "
flat, turned = tensor(2, 4, 6, 6, 6), Tensor('float32', (2, 4, 6, 6, 6), (864, 1, 144, 24, 4), 'cuda', 0)
half, mixed = tensor(2, 4, 3, 3, 3), Tensor('float32', (2, 4, 3, 3, 3), (27, 54, 9, 3, 1), 'cuda', 0)
pool = lambda *args: [s for s in plan(*args) or [] if s[0] == 'take']
assert pool('max_pool3d_with_indices.default', (flat,), [half] * 2) == pool('avg_pool3d.default', (flat,), [half]) == []
assert pool('max_pool3d_with_indices.default', (turned,), [half] * 2) == [] != pool('avg_pool3d.default', (turned,), [half])
gradient = lambda g, x: pool('max_pool3d_with_indices_backward.default', (g, x, 2, 2, 0, 1, False, half), [x])
assert gradient(half, flat) == [] and gradient(mixed, flat) == [('take', 864)] and len(gradient(half, turned)) == 2"
check pooling_of_pictures_between_other_elements plans "
whole, part = (Tensor('float32', (4, 64, 8, 8), (n * 64, 1, 512, 64), 'cuda', 0) for n in (64, 65))
half, plain = tensor(4, 64, 4, 4), tensor(4, 64, 8, 8)
takes = lambda *args: [s[1] for s in plan(*args) or [] if s[0] == 'take']
pool = lambda x: takes('max_pool2d_with_indices.default', (x, 2), [half] * 2)
assert pool(plain) == pool(whole) == [] and pool(part) == [65536], pool(part)
back = lambda x: takes('max_pool2d_with_indices_backward.default', (half, x, 2, 2, 0, 1, False, half), [x])
assert back(plain) == [] and back(whole) == [16384] and back(part) == [65536, 16384], back(part)"
check copies_of_what_lies_otherwise plans "
part = Tensor('float32', (4, 8, 30), (8 * 40, 40, 1), 'cuda', 0)
assert plan('reflection_pad1d.default', (part, (2, 2)), [tensor(4, 8, 34)]) == [('out', 0), ('take', 3840), ('give', 0)]
assert plan('max.default', (part,), [tensor()])[:2] == [('out', 0), ('take', 3840)]
grad, image = tensor(2, 8, 5, 5), Tensor('float32', (2, 8, 10, 10), (800, 1, 80, 8), 'cuda', 0)
assert plan('avg_pool2d_backward.default', (grad, image, (2, 2)), [image]) == [('out', 0), ('take', 1600), ('give', 0)]
waves = tensor(8, 33, 32, dtype='complex64')
assert plan('_fft_r2c.default', (tensor(8, 64, 32), [1], 0, True), [waves]) == [('out', 0), ('take', 65536), ('give', 0)]
assert plan('_fft_r2c.default', (tensor(8, 32, 64), [2], 0, True), [waves]) is None
x, row, columns = tensor(64, 64), tensor(8, 1, dtype='int32'), tensor(8, 5, dtype='int32')
steps = plan('index_put_.default', (x, [row, columns], tensor(8, 5)), [x])
assert steps[:3] == [('take', 320)] * 3, steps"
check lists_of_pieces plans "x, y = tensor(7, 300), tensor(5, dtype='float32')
assert plan('_chunk_cat.default', ([x, y], 0, 4), [tensor(4, 602)]) == [('out', 0), ('take', 8 * (14 + 3)), ('give', 0)]
out = [tensor(2, 1000), tensor(2, 24)]
args = tensor(2, 1024), [1000, 24], 1
from allocrig_tracer.kernels_misc import split_copy
assert split_copy(args, {'out': out}, [], context(sms=132)) == [('take', 8 * (9 + 3)), ('give', 0)]"
check seeds_on_the_host plans "q = tensor(2, 4, 64, 32)
outs = [q, tensor(2, 4, 64), tensor(dtype='int64'), tensor(dtype='int64')]
steps = plan('_scaled_dot_product_efficient_attention.default', (q, q, q, None, True), outs)
assert steps == [('out', 0), ('out', 1), ('out', 2, 0), ('out', 3, 0)], steps"
check a_reduction_by_multiprocessors plans "x = tensor(1 << 24)
a, b = (plan('sum.default', (x,), [tensor()], context(sms=n))[1][1] for n in (132, 66))
assert a == 2 * b, (a, b)"
check a_rule_that_cannot_read_is_outside plans "assert kernels.known('aten.sort.default')
assert plan('sort.default', (None,), []) is None and not kernels.known('aten.sort.default')"
check known_to_take_nothing plans "assert kernels.known('aten.add.Tensor') and not plan('add.Tensor', (), [])"
check in_place_is_alike plans "x = tensor(5000); i = tensor(5000, dtype='int64')
assert plan('cumsum_.default', (x, 0), [x]) == plan('cumsum.default', (x, 0), [x])
assert all(kernels.known('aten.' + n) for n in ('scatter_.src', '_foreach_log_.default', 'sort.values'))"
check a_power_in_place_takes_nothing plans "x = tensor(5000)
assert plan('pow.Scalar', (2.0, x), [x]) == [('out', 0), ('take', 8), ('give', 0)], plan('pow.Scalar', (2.0, x), [x])
assert plan('pow_.Scalar', (x, 2), []) is None and kernels.known('aten.pow_.Scalar')"
check not_known plans "assert not kernels.known('torchvision.nms.default')"
