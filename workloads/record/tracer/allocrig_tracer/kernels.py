"""What CUDA operators allocate besides their outputs: plan() for one dispatched operator.

The rules are in kernels_*.py, by family, and kernels/*.tsv; kernels/README.md says how they were
measured, how often they are right, and what is outside.
"""
from importlib import import_module
from pathlib import Path

FAMILIES = ("reduce", "blas", "attention", "norm", "cudnn", "sort", "index", "image", "misc", "linalg")
RULES = {}
NOTHING = set()
UNREAD = {}  # operator -> why its rule could not read the arguments; it counts as not known


def load():
    here = Path(__file__).resolve().parent
    for family in FAMILIES:
        try:
            RULES.update(import_module(__package__ + ".kernels_" + family).RULES)
        except ModuleNotFoundError as error:
            if error.name != "torch":  # the rules of cuDNN need its types; a comparison does without
                raise
    names = here / "kernels" / "nothing.tsv"
    if names.exists():
        for line in names.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                NOTHING.add(line.split("\t")[0])


load()


def name_of(func):
    """The operator's name. One that writes to `out=`, as compiled programs call it, has the kernel of the plain one."""
    name = str(func)
    return name[:-3] + "default" if name.endswith(".out") and name not in RULES else name


def plan(func, args, kwargs, outs, ctx):
    """The steps of an operator's own memory, or None if it allocates its outputs alone.

    func: the operator (an OpOverload, or its name aten.NAME.OVERLOAD); outs: its new outputs.
    Steps, in the order of the real kernel: ("out", i) or ("out", i, bytes) if they differ from
    the output's, ("take", bytes), ("give", n) for the n-th take, ("keep", key, bytes), ("unsure",
    low, high), and those of kernels_cudnn.py: ("probe", bytes), ("empty_cache",). What is not given
    is freed at the end.
    """
    rule = RULES.get(name_of(func))
    if rule is None:
        return None
    try:
        steps = rule(args, kwargs or {}, outs, ctx)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        UNREAD[name_of(func)] = repr(error)
        return None
    if not steps:
        return None
    order = [step[1] if step[:1] == ("out",) and len(step) == 2 else -1 for step in steps]
    return None if -1 not in order and order == sorted(order) else steps


def known(func):
    """Whether the operator was measured: it has a rule, or was seen to take nothing."""
    name = name_of(func)
    if name in UNREAD:
        return False
    if name in RULES or name in NOTHING:
        return True
    tags = getattr(func, "tags", ())
    return any(str(tag).endswith(("pointwise",)) for tag in tags) or bool(
        getattr(func, "is_view", False))
