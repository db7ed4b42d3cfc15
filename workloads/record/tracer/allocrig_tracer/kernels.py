"""What CUDA operators allocate besides their outputs: plan() for one dispatched operator.

The rules are in kernels_*.py, by family, and kernels/*.tsv; kernels/README.md says how they were
measured, how often they are right, and what is outside.
"""
from importlib import import_module
from pathlib import Path

FAMILIES = ("reduce", "blas", "attention", "norm", "cudnn", "sort", "index", "image", "misc", "linalg")
RULES = {}
NOTHING = set()
QUIET = set()  # operators without their overloads, if every overload takes nothing
NAMES = {}  # name_of of the operators so far
OUT_FORMS = ("out", "grad_input", "values", "values_stable", "dim_values", "result", "X")
MULTI_TENSOR = ("aten._foreach_", "aten._fused_ad", "aten._fused_sgd")  # their lists are kernel arguments
UNREAD = {}  # operator -> why its rule could not read the arguments; it counts as not known


def load():
    here = Path(__file__).resolve().parent
    for family in FAMILIES:
        try:
            RULES.update(import_module(__package__ + ".kernels_" + family).RULES)
        except ModuleNotFoundError as error:
            if error.name != "torch":  # the rules of cuDNN need its types; a comparison does without
                raise
    NOTHING.update(read(here / "kernels" / "nothing.tsv"))
    ruled = {name.rpartition(".")[0].removesuffix("_") for name in RULES}
    QUIET.update({name.rpartition(".")[0].removesuffix("_") for name in NOTHING} - ruled)
    QUIET.update(read(here / "kernels" / "by_source.tsv"))


def read(path):
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {line.split("\t")[0] for line in lines if line and not line.startswith("#")}


load()


def name_of(func):
    """The operator's name, or that of the measured one with the same kernel: the form without out=, as
    compiled programs call it, or the one that does not work in place."""
    name = str(func)
    if name not in NAMES:
        base, _, overload = name.rpartition(".")
        others = [name, base + ".default"] if overload in OUT_FORMS else [name]
        if base.endswith("_"):
            others.append(base[:-1] + "." + overload)
        NAMES[name] = next((n for n in others if n in RULES), None) or next((n for n in others if n in NOTHING), name)
    return NAMES[name]


def plan(func, args, kwargs, outs, ctx):
    """The steps of an operator's own memory, or None if it allocates its outputs alone.

    func: the operator (an OpOverload, or its name aten.NAME.OVERLOAD); outs: its new outputs.
    Steps, in the order of the real kernel: ("out", i) or ("out", i, bytes) if they differ from
    the output's, ("take", bytes), ("give", n) for the n-th take, ("keep", key, bytes), ("unsure",
    low, high), and those of kernels_cudnn.py: ("probe", bytes, what), ("empty_cache",). What is not given
    is freed at the end.
    """
    rule = RULES.get(name_of(func))
    if rule is None:
        return None
    try:
        steps = rule(args, kwargs or {}, outs, ctx)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        UNREAD[name_of(func)] = repr(error)
        return None
    if not steps:
        return None
    order = [step[1] if step[:1] == ("out",) and len(step) == 2 else -1 for step in steps]
    return None if -1 not in order and order == sorted(order) else steps


def known(func):
    """Whether the operator was measured, or one with the same kernel: it has a rule, or takes nothing."""
    name = name_of(func)
    if name in UNREAD:
        return False
    if name in RULES or name in NOTHING:
        return True
    base = name.rpartition(".")[0]
    if base.startswith(MULTI_TENSOR) or base.removesuffix("_") in QUIET:
        return True
    tags = getattr(func, "tags", ())
    return any(str(tag).endswith(("pointwise",)) for tag in tags) or bool(
        getattr(func, "is_view", False))
