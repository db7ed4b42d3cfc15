#!/bin/bash
# The tracer's rules of what cuDNN takes, without cuDNN and without PyTorch: the table, the cards, the formulas.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only tracer_cudnn 'starts no program of this build'
python=$(command -v python3)
[ -n "$python" ] || { echo "skip tracer_cudnn: python3 is not installed" && exit 0; }
export PYTHONDONTWRITEBYTECODE=1

mkdir "$TEST_TMP/cases"
count=1000 # so that they sort
# sizes NAME STATEMENTS: a case; they see plans, sizes, a source of answers from the table, shape(...)
sizes() {
    count=$((count + 1))
    printf '%s\n' "$2" >"$TEST_TMP/cases/$count-$1"
}

sizes copies_of_a_layer_of_the_table "
answer = source.ask(shape(plans.FORWARD, *layer))
assert answer.first == sum(plans.operands(shape(plans.FORWARD, *layer))) and not answer.exact, answer"
sizes channels_last_copies_nothing "
assert source.ask(shape(plans.FORWARD, *layer, last=True)).first == 0"
sizes a_shape_outside_the_table_is_unsure "
answer = source.ask(shape(plans.FORWARD, (5, 33, 41, 17), (77, 33, 5, 5), (5, 77, 39, 15)))
assert answer.low <= answer.first <= answer.high and answer.high > answer.low, answer"
sizes a_search_takes_no_less "
s = shape(plans.FORWARD, *layer)
assert source.ask(s, True).largest >= source.ask(s).first"
sizes plans_that_follow_if_there_is_no_memory "
class Planner:
    def plans(self, *arguments):
        yield from ((1, 500, None), (2, 300, None), (3, 0, None), (4, 7, None))
    def knobs(self, configuration):
        raise plans.library.CudnnError('no knobs')
source.planner = Planner()
answer = source.ask(shape(plans.FORWARD, *layer))
assert (answer.first, answer.then) == (500, (300, 0)), answer"
sizes a_card_by_its_capability "
cards = plans.Cards()
assert cards.find('NVIDIA H200', '9.0')[0] == 'H200'
assert cards.find('a card that is not listed', '8.0')[1] == '8.0'"
sizes measured_sizes_of_recurrent_networks "
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
sizes measured_workspaces_of_packed_sequences "
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
sizes measured_workspaces_of_padded_sequences "
import gzip
types = {'0': 'float32', '2': 'float16', '9': 'bfloat16'}
right = count = 0
with gzip.open('results/published/h200/cudnn/sizes-18.tsv.gz', 'rt') as lines:
    for line in lines:
        c = line.split()
        if c[0] == 'rnn' and c[14] == c[10] == c[8] == '0':
            algorithm, mode, both, inputs, hidden, layers, steps, batch, rows = (int(c[i]) for i in (1, 2, 3, 6, 7, 9, 11, 12, 13))
            got = sizes.rnn_workspace(algorithm, mode, inputs, hidden, 0, layers, both, rows, steps, batch, False, types[c[4]],
                                      True)
            count += 1
            right += got == int(c[16])
assert count > 2900 and right >= 0.76 * count, (right, count)"
sizes measured_plans_of_sequences "
import gzip
types = {'f32': 'float32', 'f16': 'float16', 'bf16': 'bfloat16'}
right = count = 0
with gzip.open('results/published/h200/cudnn/held-601.tsv.gz', 'rt') as lines:
    next(lines)
    for line in lines:
        c = line.split()
        if len(c) > 10 and c[9] == '1':
            x, w, y = (tuple(int(v) for v in t.split('x')) for t in c[1:4])
            engine, size, knobs = c[10].split(':')
            cublaslt = engine in ('58', '62', '63') and len(knobs.split(',')) == 1
            got = source.products_of(shape(int(c[0]), x, w, y, padding=0, dtype=types[c[7]]))[:1]
            count += 1
            right += got == ([int(size)] if cublaslt else [])
assert count > 1500 and right >= 0.92 * count, (right, count)"
sizes measured_products_of_pictures_and_volumes "
import gzip
types = {'f32': 'float32', 'f16': 'float16', 'bf16': 'bfloat16'}
right, count = [0, 0], [0, 0]
with gzip.open('results/published/h200/cudnn/held-701.tsv.gz', 'rt') as lines:
    next(lines)
    for line in lines:
        c = line.split()
        x, w, y = (tuple(int(v) for v in t.split('x')) for t in c[1:4])
        engine, size, _ = c[10].split(':') if len(c) > 10 else (0, 0, '')
        if w[1] == x[1] and x[2:] == y[2:] and set(w[2:]) == {1} and x[2] > 1:
            cublaslt = int(engine) in (58, 62, 63)
            got = source.products_of(shape(int(c[0]), x, w, y, padding=0, dtype=types[c[7]], last=c[8] == '1'))[:1]
            count[len(x) == 5] += 1
            right[len(x) == 5] += got == ([int(size)] if cublaslt else [])
assert min(count) > 100 and right[0] > 0.82 * count[0] and right[1] > 0.77 * count[1], (right, count)"
sizes measured_products_of_small_maps "
import gzip
types = {'f32': 'float32', 'f16': 'float16', 'bf16': 'bfloat16'}
right = count = 0
with gzip.open('results/published/h200/cudnn/held-899.tsv.gz', 'rt') as lines:
    next(lines)
    for line in lines:
        c = line.split()
        x, w, y = (tuple(int(v) for v in t.split('x')) for t in c[1:4])
        if w[1] == x[1] and set(w[2:]) == {1}:
            engine, size, _ = c[10].split(':')
            got = source.products_of(shape(int(c[0]), x, w, y, padding=0, dtype=types[c[7]], last=c[8] == '1'))[:1]
            count += 1
            right += got == ([int(size)] if int(engine) in (58, 62, 63) else [])
assert count > 1800 and right > 0.85 * count, (right, count)
# knob 25 at 1 divides nothing: a gradient of the input between maps that are listed with parts
undivided = shape(12, (10, 768, 6, 6), (768, 768, 1, 1), (10, 768, 6, 6), padding=0, dtype='float32', last=True)
assert source.products_of(undivided) == [544] and source.products.knob(undivided) == 1, source.products_of(undivided)"
sizes engines_of_depthwise_filters "
from allocrig_tracer import cudnn_fitted as fitted
def led(s, engine, kilobytes):
    return source.trees.leaf(fitted.tree_of_channels(s), fitted.features_of_channels(s, engine, kilobytes << 10))
def first(s, by_cudnn, engine):
    return (plans.leading(s, by_cudnn, [], engine) or (by_cudnn,))[0]
small = shape(11, (4, 384, 14, 14), (384, 1, 3, 3), (4, 384, 14, 14), groups=384, dtype='bfloat16', last=True)
assert [first(small, 500, engine) for engine in (16, 19, 0)] == [32 * 4 * 9 * 384, 0, 500]
assert fitted.tree_of_channels(small) == 'channels-weight-nhwc'
assert led(small._replace(x=(10, 176, 6, 6), w=(176, 1, 3, 3), y=(10, 176, 6, 6), groups=176), 0, 0) == 19  # lists of held-899
large = small._replace(x=(20, 416, 61, 61), w=(416, 1, 3, 3), y=(20, 416, 61, 61), groups=416)
assert led(large, 9, 495459344 >> 10) == 16 and first(large, 495459344, 16) == 2396160"
sizes measured_parts_of_weight_gradients_and_bytes_of_leading_engines "
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
            right += found[0] + division.taken(s, divided, source.fitted_shares.parts(s, knobs, divided)) == int(size)
assert led > 200 and count > 1000 and right >= 0.98 * count, (led, right, count)
# 75 steps in two parts, 81 in three; 49 in parts of seven; several waves: no part has less than four steps
assert [fitted.cheapest(n, 3, 13.5) for n in (27, 75, 81)] == [1, 2, 3] and division.effective(49, 8) == 7
tiles = division.Division(rest=16, split=7, buffer=65536, steps=36, single=False, counted=True)
forward = shape(10, (8, 64, 32, 32), (64, 64, 3, 3), (8, 64, 32, 32), dtype='float32')
several = [source.fitted_shares.parts(forward, {2: 9}, tiles._replace(steps=n)) for n in (20, 36, 48)]
assert several == [2, 4, 7], several  # tiles of 64 x 256 in several waves
assert fitted.linear('float32', 640, 33) == 19 and fitted.most('float32', 72, 33) == 18
point = shape(11, (16, 160, 128, 128), (160, 160, 1, 1), (16, 160, 64, 64), 2, 0, dtype='float32')
assert division.copied(point) == 209715216  # without the filters"
sizes parts_and_flags_to_the_byte "
from allocrig_tracer import cudnn_division as division
assert [division.nodes(n) for n in (1, 2, 3, 4, 7, 11, 13)] == [0, 1, 3, 3, 7, 12, 14]
def knob(tile, m, n, workspace=0):
    return {2: tile, 25: workspace, 27: m, 28: n}
# lists of results/published/h200/cudnn/grid-41 and grid-81, without the copies of operands
def taken(s, parts, knobs):
    return division.divide(s, knobs, source.at_once).taken(parts)
weight = shape(11, (6, 48, 30, 80), (48, 48, 3, 3), (6, 48, 30, 80), dtype='float32', last=True)
assert taken(weight, 13, knob(5, 1, 1)) == 117 * 16384 + 663
groups = shape(11, (20, 2048, 8, 48), (2048, 64, 3, 3), (20, 2048, 8, 48), groups=32, dtype='float32')
assert taken(groups, 5, knob(5, 1, 1)) == 1966819
forward = shape(10, (8, 1024, 7, 48), (1024, 64, 5, 5), (8, 1024, 7, 48), padding=2, groups=16, dtype='float32')
assert taken(forward, 2, knob(5, 7, 1)) == 1376587
narrow = shape(10, (12, 512, 14, 14), (512, 8, 5, 5), (12, 512, 14, 14), padding=2, groups=64, dtype='float32')
assert taken(narrow, 0, knob(16, 2, 1, 1)) == 0  # four groups share a tile
many = shape(10, (128, 128, 56, 56), (32, 128, 3, 3), (128, 32, 56, 56), dtype='float32', last=True)
assert taken(many, 0, knob(16, 2, 1, 1)) == 131"
sizes wide_groups_are_computed_one_after_another "
from allocrig_tracer import cudnn_division as division
def right(size, x, w, y, groups, knobs, parts):
    s = shape(11, x, w, y, groups=groups, last=True)
    return size == division.copied(s) + division.taken(s, division.divide(s, knobs, source.at_once), parts)
# lists of results/published/h200/cudnn/layers-401
two = (512, 14, 14), (1024, 256, 3, 3), (1024, 14, 14), 2, {2: 1, 25: 1, 27: 1, 28: 8}
assert right(3010592, (5, *two[0]), two[1], (5, *two[2]), *two[3:], 0)
eleven = (10, 4103, 24, 24), (4103, 373, 3, 3), (10, 4103, 24, 24), 11, {2: 7, 25: 1, 27: 1, 28: 8}
assert right(89662592, *eleven, 0)  # counters of eight groups"
sizes products_of_single_elements_as_a_card_listed_them "
import gzip, itertools, os
types = {'f32': 'float32', 'f16': 'float16', 'bf16': 'bfloat16'}
right, count = [0, 0], [0, 0]
every = 1 if os.environ.get('TEST_SOAK') == '1' else 5
with gzip.open('results/published/h200/cudnn/held-191.tsv.gz', 'rt') as lines:
    for line in itertools.islice(lines, 1, None, every):
        c = line.split()
        x, w, y, stride, padding = (tuple(int(v) for v in t.split('x')) for t in c[1:6])
        s = shape(int(c[0]), x, w, y, stride[0], padding[0], x[1] // w[1], types[c[7]], c[8] == '1')
        engine, size, _ = c[10].split(':')
        if plans.pointwise(s) and int(engine) in (58, 62, 63):
            divided = s.operation == plans.BACKWARD_WEIGHT and s.channels_last
            count[divided] += 1
            right[divided] += source.products.sizes(s)[:1] == [int(size)]
assert min(count) * every > 2000 and right[0] > 0.8 * count[0] and right[1] > 0.87 * count[1], (right, count)"
sizes parts_between_measured_numbers_of_positions "
from allocrig_tracer import cudnn_products as products
assert products.parts(4800, 66, 4) == 64 and products.parts(9600, 132, 4) == 127
points = [(4992, 66, 256), (9984, 66, 256), (20480, 132, 256), (49152, 131, 976)]
assert products.between(points, 9984, 4) == (66, 256)
assert products.between(points, 5184, 4) == (65, 256)  # 66 were asked for
assert products.between([(8192, 6, 272), (18432, 14, 272)], 12544, 8) == (9, 272)  # a part for each 1290 or so
assert products.between([(784, 0, 0), (1024, 16, 256)], 800, 4) == (0, 0)"
sizes plans_of_products_that_follow_with_other_knobs "
s = shape(plans.BACKWARD_WEIGHT, (64, 512, 14, 14), (1024, 512, 1, 1), (64, 1024, 14, 14), padding=0, dtype='float32')
whole = 4 * 64 * 512 * 1024
assert sorted(source.products.sizes(s)) == [whole, whole + 400, whole + 400], source.products.sizes(s)
assert len(source.products.sizes(s._replace(channels_last=True))) == 2
assert source.products_of(s._replace(allow_tf32=False)) == [] == source.products_of(s._replace(w=(1024, 512, 3, 3)))"
sizes layers_that_were_not_measured "
far = source.products.far
assert far(('16', 128, 128, 2), 120, 120) < far(('16', 116, 116, 2), 120, 120)  # 116 values are not aligned
assert far(('32', 128, 64, 2), 120, 64) < far(('32', 136, 64, 2), 120, 64)  # two tiles"
sizes engines_between_the_plans_that_follow "
s = shape(plans.BACKWARD_WEIGHT, (8, 64, 28, 28), (128, 64, 3, 3), (8, 128, 28, 28), dtype='float32')
from allocrig_tracer import cudnn_fitted as fitted
assert plans.between(s, [9, 8, 7, 6, 5, 4, 3, 2, 0], 0) == [9, 8, 7, 6, 5, 4, fitted.winograd(s), 3, plans.fourier(s), 2, 0]
assert plans.between(s, [9, 8], 0) == [9, 8]
assert plans.between(s._replace(channels_last=True), [9, 0], 0) == [9, 0]"
sizes an_engine_that_cudnn_leaves_out "
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
layer = shape(plans.BACKWARD_WEIGHT, (16, 128, 14, 14), (64, 128, 3, 3), (16, 64, 14, 14), dtype='float32')
assert answer.first == 144 * (256 * 192 + 8192) and answer.then == (7442448, plans.fourier(layer), 0), answer
assert first(14, last=True).first == first(14, dtype='bfloat16').first == 7442448
assert source.ask(layer._replace(deterministic=True)).first == 7442448"
sizes products_of_samples_lead_in_weight_gradients_of_1x1 "
def gradient(n, c, k, side, dtype):
    s = shape(plans.BACKWARD_WEIGHT, (n, c, side, side), (k, c, 1, 1), (n, k, side, side), padding=0, dtype=dtype)
    return source.ask(s).first - 4 * n * c * k
assert gradient(64, 512, 1024, 14, 'float32') in (0, 400) and gradient(64, 1280, 10, 14, 'bfloat16') in (0, 272)
assert gradient(64, 1280, 320, 14, 'float32') not in (0, 400)
assert gradient(10, 48, 3, 256, 'float16') not in (0, 272)  # large pictures: the first of cuDNN's list"

# All of them in one process, which reads the tables once, each in a copy of it.
PYTHONPATH=workloads/record/tracer "$python" - "$TEST_TMP"/cases/* <<'EOF'
import os
import sys
import traceback
from allocrig_tracer import cudnn_plans as plans, cudnn_sizes as sizes
source = plans.Source("NVIDIA H200", "9.0", use_library=False)
def shape(operation, x, w, y, stride=1, padding=1, groups=1, dtype="bfloat16", last=False):
    dims = len(x) - 2
    return plans.Shape(operation, x, w, y, (stride,) * dims, (padding,) * dims, (1,) * dims, groups, dtype, last,
                       False, True)
layer = (64, 64, 56, 56), (64, 64, 3, 3), (64, 64, 56, 56)
failed = 0
for path in sys.argv[1:]:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            with open(path, encoding="utf-8") as case:
                exec(case.read(), globals())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    bad = os.waitpid(child, 0)[1] != 0
    failed += bad
    print("not ok" if bad else "ok", os.path.basename(path).split("-", 1)[1])
sys.exit(failed != 0)
EOF
