"""Real values where they are cheap: the small results that depend on small known values alone.

Of a function that runs, the part is taken that needs known arguments only (a step counter, a key, a mask, a schedule)
and has small intermediates, and JAX computes it on the CPU. All other results are unknown and read as zeros.
"""

import numpy

from .jax_arrays import SMALL_BYTES

MOST_ELEMENTS = 1 << 18  # of any value in between
_SILENT = ("debug_callback", "debug_print")


def _jaxprs_in(value):
    if hasattr(value, "eqns"):
        yield value
    elif hasattr(value, "jaxpr"):
        yield from _jaxprs_in(value.jaxpr)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _jaxprs_in(item)


def _elements(aval):
    """The number of elements, or None if it is not a number."""
    shape = getattr(aval, "shape", ())
    return numpy.prod(shape, dtype=object) if all(isinstance(n, int) for n in shape) else None


def is_small(jaxpr):
    """Whether every value that the function makes is small."""
    for equation in jaxpr.eqns:
        for out in equation.outvars:
            elements = _elements(out.aval)
            if elements is None or elements > MOST_ELEMENTS:
                return False
        for value in equation.params.values():
            if not all(is_small(inner) for inner in _jaxprs_in(value)):
                return False
    return True


def _is_key(aval):
    import jax

    return jax.dtypes.issubdtype(getattr(aval, "dtype", numpy.dtype(bool)), jax.dtypes.extended)


class Part:
    """What known arguments determine of a function. `outputs` and `inputs` are numbers."""

    def __init__(self, function, outputs, inputs):
        self.function, self.outputs, self.inputs = function, outputs, inputs


class Values:
    """Computes the small results of one function. `closed` is its jaxpr; `constant` gives the value of a constant, or
    None; `real` is a context in which JAX runs on the CPU as if there were no tracer."""

    def __init__(self, closed, constant, real):
        from jax._src.interpreters import partial_eval

        self.real, self.parts = real, {}
        jaxpr = getattr(closed, "jaxpr", closed)
        self.constants = [constant(c) for c in getattr(closed, "consts", ())]
        self.jaxpr = partial_eval.convert_constvars_jaxpr(jaxpr)
        if any(e.primitive.name in _SILENT for e in self.jaxpr.eqns):
            kept = [e for e in self.jaxpr.eqns if e.primitive.name not in _SILENT]
            self.jaxpr = self.jaxpr.replace(eqns=kept, effects=set())
        self.small = [self._is_small_result(v.aval) for v in self.jaxpr.outvars]

    @staticmethod
    def _is_small_result(aval):
        elements = _elements(aval)
        size = 16 if _is_key(aval) else getattr(getattr(aval, "dtype", None), "itemsize", 1)
        return elements is not None and elements * size <= SMALL_BYTES

    def part(self, known):
        """The Part for these known arguments (booleans), or None."""
        if known not in self.parts:
            self.parts[known] = self._part(known) if any(self.small) else None
        return self.parts[known]

    def _part(self, known):
        from jax._src import core
        from jax._src.interpreters import partial_eval
        import jax

        count = len(self.small)
        wanted = []
        for number, small in enumerate(self.small):
            if small:
                part, used = partial_eval.dce_jaxpr(self.jaxpr, [n == number for n in range(count)])
                if all(k or not u for k, u in zip(known, used)) and is_small(part):
                    wanted.append(number)
        if not wanted:
            return None
        part, used = partial_eval.dce_jaxpr(self.jaxpr, [n in wanted for n in range(count)])
        inputs = [n for n, u in enumerate(used) if u]
        avals = [self.jaxpr.invars[n].aval for n in inputs]

        def function(*arguments):
            arguments = [
                jax.random.wrap_key_data(a, impl=aval.dtype._impl) if _is_key(aval) else a
                for a, aval in zip(arguments, avals)
            ]
            results = core.eval_jaxpr(part, (), *arguments)
            return [jax.random.key_data(r) if _is_key(r) else r for r in results]

        return Part(jax.jit(function), wanted, inputs)

    def compute(self, arguments):
        """{output: value} for the arguments, numpy arrays or None if unknown."""
        arguments = self.constants + arguments
        if len(arguments) != len(self.jaxpr.invars) or not any(self.small):
            return {}
        known = tuple(a is not None for a in arguments)
        try:
            with self.real():
                part = self.part(known)
                if part is None:
                    return {}
                results = part.function(*[arguments[n] for n in part.inputs])
                return {n: numpy.array(r) for n, r in zip(part.outputs, results)}
        except Exception:  # for example a kernel that only the card has
            self.parts[known] = None
            return {}
