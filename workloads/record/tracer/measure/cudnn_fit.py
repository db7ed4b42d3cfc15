"""Fits the tables of kernels/ that follow from plans on a card: cudnn_shares.tsv, cudnn_splits.tsv and cudnn_trees.tsv.

    python3 cudnn_fit.py FIT.tsv.gz.. [--check FILE.tsv.gz] [--parts PARTS]

The files are grid.tsv and shares.tsv of cudnn.py. It needs scikit-learn, and cuDNN for the answers without a driver.
With --check it fits nothing and says how often the tables and all rules are right for the first plans of that file.
--parts fits some of the tables alone.
"""
import argparse
import collections
import gzip
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from allocrig_tracer import cudnn_division as division  # noqa: E402
from allocrig_tracer import cudnn_fitted as fitted  # noqa: E402
from allocrig_tracer import cudnn_plans as plans  # noqa: E402
from allocrig_tracer import cudnn_products as products  # noqa: E402

ENOUGH = 4  # samples of a number of parts
FEW_BYTES = 1000  # flags take less
KNOB = division.KNOB_WORKSPACE
CUBLASLT = {plans.FORWARD: 58, plans.BACKWARD_WEIGHT: 62, plans.BACKWARD_INPUT: 63}  # its engines
NAMES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "f64": "float64"}


def numbers(text):
    return tuple(int(v) for v in text.split("x"))


def rows(path):
    """(shape, engine, bytes, knobs) of the first plan of each line."""
    for line in gzip.open(path, "rt") if path.endswith(".gz") else open(path):
        c = line.rstrip("\n").split("\t")
        if c[0] == "operation" or len(c) < 11 or not c[10]:
            continue
        x, w, y, stride, padding, dilation = (numbers(v) for v in c[1:7])
        engine, size, knobs = c[10].split(" ")[0].split(":")
        yield (plans.Shape(int(c[0]), x, w, y, stride, padding, dilation, x[1] // w[1], NAMES[c[7]], c[8] == "1", False,
                           c[9] == "1"), int(engine), int(size),
               dict(tuple(int(v) for v in k.split("=")) for k in knobs.split(",") if k))


def best_limit(samples, parts):
    """The least steps from which a tile has so many parts, with the fewest samples on the wrong side."""
    ordered = sorted(samples)
    wrong = best = sum(p >= parts for _, p in ordered)
    wrong = best = len(ordered) - wrong  # a limit below all: those with fewer parts are wrong
    at = 0
    for i, (_, p) in enumerate(ordered):
        wrong += 1 if p >= parts else -1
        if wrong < best and (i + 1 == len(ordered) or ordered[i + 1][0] > ordered[i][0]):
            best, at = wrong, i + 1
    if at == len(ordered):
        return None
    return ordered[0][0] if at == 0 else (ordered[at - 1][0] + ordered[at][0]) / 2


def doubling_of(dtype, samples):
    """The steps that a doubling of the parts costs in one wave, with which most samples agree."""
    samples = collections.Counter(v for v in samples if fitted.linear(dtype, *v[:2]) is None)
    right = {c / 2: sum(count for (steps, split, parts), count in samples.items() if parts == division.effective(
        steps, fitted.cheapest(steps, split, c / 2))) for c in range(2, 240)} if samples else {}
    best = [c for c, count in right.items() if count == max(right.values())]
    return f"{best[len(best) // 2]:g}" if best else ""


def fit_shares(source, paths, out):
    kernels = collections.defaultdict(lambda: ([], []))
    for path in paths:
        for s, _, size, knobs in rows(path):
            divided = division.divide(s, knobs, source.at_once)
            found = division.undivided(s, size, divided) if divided and divided.split > 1 else None
            if found and found[0] == division.copied(s):
                kernels[fitted.kernel(s, knobs)][divided.single].append((divided.steps, divided.split, found[1]))
    for key, (several, single) in sorted(kernels.items()):
        def limit_of(parts, chosen):
            return best_limit([(steps, found > 1 and found >= division.effective(steps, fitted.most(key[0], steps, parts)))
                               for steps, _, found in chosen], 1)
        limits = {p: limit_of(p, [v for v in several if fitted.most(key[0], *v[:2]) > p])
                  for p in fitted.POWERS if any(v[2] >= p for v in several)}
        whole = {n: limit_of(n, [v for v in several if v[1] == n])
                 for n, count in sorted(collections.Counter(v[1] for v in several).items()) if count >= ENOUGH}
        out.write("\t".join([key[0], *map(str, key[1:]), str(len(several) + len(single)), doubling_of(key[0], single), *(
            " ".join(f"{p}:{v:g}" for p, v in limit.items() if v is not None) for limit in (limits, whole))]) + "\n")


def knob_of(s, engine, knobs):
    """How much cublasLt may take (knob 25), or OTHER if another engine leads."""
    return knobs[KNOB] if engine == CUBLASLT[s.operation] and set(knobs) == {KNOB} else products.OTHER


def fewest(points, multiple):
    """The points from which all others follow."""
    points, kept, at = sorted((r, *v) for r, v in points.items()), [], 0
    while at < len(points):
        kept.append(points[at])
        to = len(points) - 1
        while to > at + 1 and any(products.between([points[at], points[to]], p[0], multiple) != p[1:] for p in points[at + 1:to]):
            to = at + (to - at) // 2 if to - at > 8 else to - 1
        at = to if to > at else len(points)
    return kept


def fit_splits(paths, out, known=None):
    """known: rows of the table that are kept, where they and the lists do not differ."""
    layers = collections.defaultdict(dict)
    for key, points in (known or {}).items():
        layers[key].update({p[0]: p[1:] for p in points})
    for path in paths:
        for s, engine, size, knobs in rows(path):
            if s.operation == plans.BACKWARD_WEIGHT and s.channels_last and plans.pointwise(s):
                knob = knob_of(s, engine, knobs)
                if knob > 0:
                    layer = layers[products.bits(s.dtype), s.w[0], s.w[1], knob]
                    layer[s.x[0] * plans.product(s.x[2:])] = divmod(size, 4 * s.w[0] * s.w[1])
    for key in sorted(layers):
        kept = fewest(layers[key], products.MULTIPLE[key[0]])
        texts = [(f"{r}:{n}", f"{r}:{n}:{flags}", (r, n, flags)) for r, n, flags in kept]
        out.write("\t".join([*map(str, key), " ".join(
            short if products.point(short, key[0]) == p else long for short, long, p in texts)]) + "\n")


def preorder(tree, classes, names, node=0):
    if tree.children_left[node] < 0:
        yield f"={classes[tree.value[node][0].argmax()]}"
        return
    both = [list(preorder(tree, classes, names, child)) for child in (tree.children_left[node], tree.children_right[node])]
    if both[0] == both[1] and len(both[0]) == 1:  # the same answer
        yield both[0][0]
        return
    yield f"{names[tree.feature[node]]}\t{tree.threshold[node]:.9g}"
    yield from both[0] + both[1]


def fit_tree(name, names, samples, out, **options):
    from sklearn.tree import DecisionTreeClassifier
    model = DecisionTreeClassifier(random_state=1, **options)
    model.fit([x for x, _ in samples], [y for _, y in samples])
    out.write(f"#tree\t{name}\t{' '.join(names)}\t{len(samples)} lists\n")
    out.writelines(line + "\n" for line in preorder(model.tree_, model.classes_, names))


def fit_trees(source, paths, out):
    samples = collections.defaultdict(list)
    for path in paths:
        for s, engine, _, _ in rows(path):
            name = fitted.tree_of(s)
            if name:
                first = next(source.plans(s), None)
                leads = engine if engine in fitted.LEFT_OUT[name] else 0
                if first:
                    samples[name].append((fitted.features(s, *first[:2]), leads))
    for name in sorted(samples):
        fit_tree(name, fitted.FEATURES, samples[name], out, max_depth=12, min_samples_leaf=3)


def fit_channels(source, paths, out):
    samples = collections.defaultdict(list)
    for path in paths:
        for s, engine, _, _ in rows(path):
            name = plans.depthwise(s) and fitted.tree_of_channels(s)
            first = name and next(source.plans(s), None)
            if first:
                samples[name].append((fitted.features_of_channels(s, *first[:2]), engine if engine in fitted.DEPTHWISE else 0))
    for name in sorted(samples):
        fit_tree(name, fitted.CHANNELS, samples[name], out, min_samples_leaf=2)


def knob_code(s, engine, size, knobs):
    """The leaf of a tree that says which knob leads: where cublasLt divides nothing, whether it takes flags."""
    knob = knob_of(s, engine, knobs)
    if knob > 0 and not (s.operation == plans.BACKWARD_WEIGHT and (s.channels_last or s.x[0] == 1)):
        knob = int(size > (4 * s.x[0] * s.w[0] * s.w[1] if s.operation == plans.BACKWARD_WEIGHT else 0))
    return knob


def fit_products(paths, out, kinds=("",)):
    """kinds: ends of the names of trees."""
    samples = collections.defaultdict(list)
    for path in paths:
        for s, engine, size, knobs in rows(path):
            if plans.pointwise(s) and s.allow_tf32 and s.dtype != "float64" and products.tree_of(s).endswith(kinds):
                samples[products.tree_of(s)].append((products.features(s), knob_code(s, engine, size, knobs)))
    for name in sorted(samples):
        fit_tree(name, products.FEATURES, samples[name], out, min_samples_leaf=5 if name.endswith("line") else 2 if name.endswith("volume") else 1)


def part_code(s, size):
    """PARTS:FLAGS of a forward pass or a gradient of the input, or all bytes as flags."""
    rows, columns, _ = products.product_of(s)
    count, flags = divmod(size, 4 * rows * columns)
    return f"{count}:{flags}" if size > FEW_BYTES and count and flags <= FEW_BYTES else f"0:{size}"


def fit_parts(paths, out):
    samples = collections.defaultdict(list)
    for path in paths:
        for s, engine, size, knobs in rows(path):
            whole = plans.pointwise(s) and s.allow_tf32 and s.dtype != "float64" and s.operation != plans.BACKWARD_WEIGHT
            if whole and size and knob_of(s, engine, knobs) > 0:
                name = products.tree_of(s).replace("product", "parts")
                samples[name].append((products.features_of_parts(s), part_code(s, size)))
    for name in sorted(samples):
        fit_tree(name, products.FEATURES + products.MORE, samples[name], out, min_samples_leaf=4)


KEPT = "product-weight-nhwc-16", "product-weight-nhwc-32", "product-input-nchw-16"  # another tree is wrong more often in older lists
LEAST = {("product", False): 10, ("parts", False): 5, ("product", True): 5, ("parts", True): 3, ("split", True): 10}  # lists of a leaf
PER_PART = (64, 32, 128, 96, 48)  # positions


def asked_for(s, count):
    """The numbers of parts that may have been asked for, or positions of a part below 0."""
    rows, multiple = s.x[0] * plans.product(s.x[2:]), products.MULTIPLE[products.bits(s.dtype)]
    each = [-v for v in PER_PART if count and rows // v == count][:1]
    return each or [a for a in range(count, count + count // products.SLACK + 2) if products.parts(rows, a, multiple) == count] if count else [0]


def small_samples(source, paths):
    """(tree, features, answer, whether the tables say the same) of small maps. Trees see the answers of the tables. Lists that
    the tables are fitted to are among the files as well: where these are many, the trees change little."""
    table, splits, common = source.products, [], collections.Counter()
    for path in paths:
        for s, engine, size, knobs in rows(path):
            if not plans.pointwise(s) or not s.allow_tf32 or s.dtype == "float64" or not products.small(s):
                continue
            name, knob, known = products.tree_of(s), knob_of(s, engine, knobs), source.trees.leaf(products.tree_of(s), products.features(s))
            whole = s.operation != plans.BACKWARD_WEIGHT and s.channels_last  # what is divided there depends on the knob
            code = min(knob, 2 * (size > 0)) if whole else knob_code(s, engine, size, knobs)
            if name not in KEPT:
                yield name, (*products.features(s), known), code, code == known and not whole
            if s.operation != plans.BACKWARD_WEIGHT and size and knob > 0:
                known, parts = table.known_parts(s), part_code(s, size)
                yield (name.replace("product", "parts"), (*products.features_of_parts(s), *known, code), parts,
                       parts == "{}:{}".format(*known) and not whole)
            if s.operation == plans.BACKWARD_WEIGHT and s.channels_last and knob > 0:
                known, far, near = table.known_split(s, knob)
                count, flags = divmod(size, 4 * s.w[0] * s.w[1])
                common.update(asked_for(s, count))
                splits.append((name.replace("product-weight", "split"), products.features_of_split(s, knob, known[0], far, near),
                               (asked_for(s, count), flags), known == (count, flags)))
    for name, values, (asked, flags), same in splits:
        if asked:
            yield name, values, f"{max(asked, key=lambda a: (common[a], -a))}:{flags}", same


def fit_small(source, paths, out):
    samples = collections.defaultdict(list)
    for name, values, answer, same in small_samples(source, paths):
        samples[name].append((values, str(products.SAME if same else answer)))
    for name in sorted(samples):
        kind = name.split("-")[0]
        fit_tree("small-" + name, products.SMALL_FEATURES[kind], samples[name], out, min_samples_leaf=LEAST[kind, "-nhwc-" in name])


def check(source, path, most):
    table = collections.defaultdict(lambda: [0, 0, 0])
    for i, (s, _, size, _) in enumerate(rows(path)):
        if i == most:
            break
        kind = ("images as filters" if s.operation != plans.BACKWARD_WEIGHT and min(s.w[2:]) > 7 else
                "forward" if s.operation == plans.FORWARD else "input" if s.operation == plans.BACKWARD_INPUT else
                "1x1" if plans.pointwise(s) else "depthwise" if plans.depthwise(s) else
                "groups" if s.groups > 1 else "larger filters")
        row = table[kind, "float32" if s.dtype == "float32" else "16 bits", "NHWC" if s.channels_last else "NCHW"]
        got = source.ask(s).first
        row[0], row[1], row[2] = row[0] + 1, row[1] + (abs(got - size) <= 2048), row[2] + (abs(got - size) > 1 << 20)
    for key, (count, right, far) in sorted(table.items()):
        print(f"{', '.join(key):40} {count:6} within 2 KiB {right / count:6.1%}  beyond 1 MiB {far / count:6.1%}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("files", nargs="*")
    options.add_argument("--check", default="")
    options.add_argument("--most", type=int, default=1 << 30)
    options.add_argument("--parts", default="shares,splits,trees,products", help="products, volumes and parts are added to the file of "
                         "trees, more to the table of splits")
    o = options.parse_args()
    source = plans.Source("NVIDIA H200", "9.0")
    if o.check:
        return check(source, o.check, o.most)
    tables = {"shares": ("cudnn_shares.tsv", SHARES, lambda f: fit_shares(source, o.files, f)),
              "splits": (products.NAME, SPLITS, lambda f: fit_splits(o.files, f)),
              "trees": ("cudnn_trees.tsv", TREES, lambda f: fit_trees(source, o.files, f)),
              "products": ("cudnn_trees.tsv", "", lambda f: fit_products(o.files, f)),
              "channels": ("cudnn_trees.tsv", "", lambda f: fit_channels(source, o.files, f)),
              "small": ("cudnn_trees.tsv", "", lambda f: fit_small(source, o.files, f)),
              "volumes": ("cudnn_trees.tsv", "", lambda f: fit_products(o.files, f, "-volume")),
              "parts": ("cudnn_trees.tsv", "", lambda f: fit_parts(o.files, f)),
              "more": (products.NAME, SPLITS, lambda f: fit_splits(o.files, f, source.products.layers))}
    for part in o.parts.split(","):
        name, head, fit = tables[part]
        with open(fitted.HERE / name, "w" if head else "a") as f:
            f.write(head)
            fit(f)


SHARES = """# type, weight gradient, tile (knob 2), samples; in one wave: the steps that a doubling of the parts costs; in more:
# parts of a tile and from how many steps on it has them, if it can have more; the same for the most that it can have:
# measure/cudnn_fit.py
"""
SPLITS = """# Weight gradients of 1x1 filters in NHWC: bits of the type, filters, channels, knob 25; positions, parts and
# flags, if they are not the usual ones: measure/cudnn_fit.py
"""
TREES = """# A node: a feature and its limit, then the nodes of those below it, then of the others. =ENGINE: a leaf, 0 if the first of
# cuDNN's list without a driver leads; for products: knob 25, -1 if cublasLt does not lead. measure/cudnn_fit.py
"""


if __name__ == "__main__":
    main()
