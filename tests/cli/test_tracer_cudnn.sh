#!/bin/bash
# The tracer's rules of what cuDNN takes, without cuDNN and without PyTorch: the table, the cards, the formulas.
# shellcheck disable=SC2317 # functions are called by `check`
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only tracer_cudnn 'starts no program of this build'
python=$(command -v python3)
[ -n "$python" ] || { echo "skip tracer_cudnn: python3 is not installed" && exit 0; }
export PYTHONDONTWRITEBYTECODE=1

# sizes STATEMENTS: they see plans, sizes, a source of answers from the table, shape(...)
sizes() {
    PYTHONPATH=workloads/record/tracer "$python" - >"$out" 2>"$err" <<EOF
from allocrig_tracer import cudnn_plans as plans, cudnn_sizes as sizes
source = plans.Source("NVIDIA H200", "9.0", use_library=False)
def shape(operation, x, w, y, stride=1, padding=1, groups=1, dtype="bfloat16", last=False):
    dims = len(x) - 2
    return plans.Shape(operation, x, w, y, (stride,) * dims, (padding,) * dims, (1,) * dims, groups, dtype, last,
                       False, True)
layer = (64, 64, 56, 56), (64, 64, 3, 3), (64, 64, 56, 56)
$1
EOF
}

check copies_of_a_layer_of_the_table sizes "
answer = source.ask(shape(plans.FORWARD, *layer))
assert answer.first == sum(plans.operands(shape(plans.FORWARD, *layer))) and not answer.exact, answer"
check channels_last_copies_nothing sizes "
assert source.ask(shape(plans.FORWARD, *layer, last=True)).first == 0"
check a_shape_outside_the_table_is_unsure sizes "
answer = source.ask(shape(plans.FORWARD, (5, 33, 41, 17), (77, 33, 5, 5), (5, 77, 39, 15)))
assert answer.low <= answer.first <= answer.high and answer.high > answer.low, answer"
check a_search_takes_no_less sizes "
s = shape(plans.FORWARD, *layer)
assert source.ask(s, True).largest >= source.ask(s).first"
check plans_that_follow_if_there_is_no_memory sizes "
class Planner:
    def plans(self, *arguments):
        yield from ((1, 500, None), (2, 300, None), (3, 0, None), (4, 7, None))
    def knobs(self, configuration):
        raise plans.library.CudnnError('no knobs')
source.planner = Planner()
answer = source.ask(shape(plans.FORWARD, *layer))
assert (answer.first, answer.then) == (500, (300, 0)), answer"
check a_card_by_its_capability sizes "
cards = plans.Cards()
assert cards.find('NVIDIA H200', '9.0')[0] == 'H200'
assert cards.find('a card that is not listed', '8.0')[1] == '8.0'"
check measured_sizes_of_recurrent_networks sizes "
import gzip
types = {'0': 'float32', '2': 'float16', '9': 'bfloat16'}
right = count = 0
with gzip.open('results/published/h200/cudnn/sizes-18.tsv.gz', 'rt') as lines:
    for line in lines:
        c = line.split()
        if c[0] == 'rnn' and c[14] == '0' and c[8] == '0':
            mode, both, inputs, hidden, layers, rows = (int(c[i]) for i in (2, 3, 6, 7, 9, 13))
            got = sizes.rnn_reserve(mode, hidden, 0, layers, both, rows, 4 if c[4] == '0' else 2)
            count += 1
            right += abs(got - int(c[17])) <= 0.01 * int(c[17])
assert count > 1000 and right >= 0.98 * count, (right, count)"
check measured_workspaces_of_packed_sequences sizes "
import gzip
types = {'0': 'float32', '2': 'float16', '9': 'bfloat16'}
right = count = 0
with gzip.open('results/published/h200/cudnn/sizes-18.tsv.gz', 'rt') as lines:
    for line in lines:
        c = line.split()
        if c[0] == 'rnn' and c[14] == '0' and c[1] == c[8] == '0' and c[10] == '1':
            mode, both, inputs, hidden, layers, steps, batch, rows = (int(c[i]) for i in (2, 3, 6, 7, 9, 11, 12, 13))
            for training, seen in ((True, c[16]), (False, c[18])):
                got = sizes.rnn_workspace(0, mode, inputs, hidden, 0, layers, both, rows, steps, batch, True,
                                          types[c[4]], training)
                count += 1
                right += abs(got - int(seen)) <= 512
assert count > 700 and right >= 0.97 * count, (right, count)"
check measured_parts_of_weight_gradients_and_bytes_of_leading_engines sizes "
import gzip
from allocrig_tracer import cudnn_division as division, cudnn_fitted as fitted
types = {'f32': 'float32', 'f16': 'float16', 'bf16': 'bfloat16'}
right = count = led = 0
with gzip.open('results/published/h200/cudnn/grid-41.tsv.gz', 'rt') as lines:
    next(lines)
    for number, line in enumerate(lines):
        c = line.split()
        engine, size, knobs = c[10].split(':') if len(c) == 11 else (0, 0, '')
        if number % 8 or c[0] != '11' or engine not in ('17', '18', '65', '68'):
            continue
        x, w, y, stride, padding = (tuple(int(v) for v in t.split('x')) for t in c[1:6])
        s = shape(11, x, w, y, stride[0], padding[0], dtype=types[c[7]], last=c[8] == '1')
        if engine in ('17', '18'):
            assert int(size) == (fitted.winograd(s) if engine == '17' else plans.fourier(s)), line
            led += 1
            continue
        knobs = dict(tuple(int(v) for v in k.split('=')) for k in knobs.split(','))
        divided = division.divide(s, knobs, source.at_once)
        found = divided and division.undivided(s, int(size), divided)
        if found:
            count += 1
            right += found[0] + divided.taken(source.fitted_shares.parts(s, knobs, divided)) == int(size)
assert led > 200 and count > 1000 and right >= 0.94 * count, (led, right, count)"
check an_engine_that_cudnn_leaves_out sizes "
class Planner:
    def plans(self, *arguments):
        yield from ((50, 7442448, None), (34, 0, None))
    def knobs(self, configuration):
        raise plans.library.CudnnError('no knobs')
source.planner = Planner()
def first(side, dtype='float32', **more):
    return source.ask(shape(plans.BACKWARD_WEIGHT, (16, 128, side, side), (64, 128, 3, 3), (16, 64, side, side),
                            dtype=dtype, **more))
answer = first(14)
assert answer.first == 144 * (256 * 192 + 8192) and answer.then == (7442448, 0), answer
assert first(14, last=True).first == first(80).first == 7442448
gate = shape(plans.BACKWARD_WEIGHT, (128, 1632, 1, 1), (68, 1632, 1, 1), (128, 68, 1, 1), padding=0)
assert source.ask(gate).first == 7442448 and source.ask(gate._replace(dtype='float32')).first == 7442448
layer = shape(plans.BACKWARD_WEIGHT, (16, 128, 14, 14), (64, 128, 3, 3), (16, 64, 14, 14), dtype='float32')
assert source.ask(layer._replace(deterministic=True)).first == 7442448"
check products_of_samples_lead_in_weight_gradients_of_1x1 sizes "
def gradient(n, c, k, side, dtype):
    s = shape(plans.BACKWARD_WEIGHT, (n, c, side, side), (k, c, 1, 1), (n, k, side, side), padding=0, dtype=dtype)
    return source.ask(s).first == 4 * n * c * k
assert gradient(16, 512, 1024, 14, 'float32') and not gradient(64, 1280, 320, 14, 'float32')
assert gradient(64, 512, 144, 14, 'bfloat16') and not gradient(24, 1024, 256, 14, 'bfloat16')
assert not gradient(1, 512, 32, 14, 'bfloat16')"
