"""torch.optim.LBFGS for values that are not known: it neither converges nor meets a slope that does not descend.

PyTorch's own step runs, with the conditions that end it early answered: every iteration is made, the curvature is
positive, and a line search accepts its first point.
"""

import ast
import functools
import inspect
import textwrap

import torch
import torch.optim.lbfgs as module

ENDS = ("opt_cond", "tolerance_change")  # names in conditions that are false here


class Answer(ast.NodeTransformer):
    """Conditions are evaluated, for their requests, and answered."""

    def visit_If(self, node):
        self.generic_visit(node)
        names = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
        if names.intersection(ENDS) or "ys" in names:
            given = ast.Tuple([node.test, ast.Constant("ys" in names)], ast.Load())
            node.test = ast.Subscript(given, ast.Constant(1), ast.Load())
        return node


def accepts(obj_func, x, t, d, f, g, gtd, *args, **kwargs):
    """_strong_wolfe, if the first point is accepted."""
    d.abs().max()
    g = g.clone(memory_format=torch.contiguous_format)
    f_new, g_new = obj_func(x, t, d)
    g_new.dot(d)
    return f_new, g_new, t, 1


def install(current):
    """Puts the step in place of PyTorch's, once."""
    plain = module.LBFGS.step
    try:
        tree = ast.fix_missing_locations(Answer().visit(ast.parse(textwrap.dedent(inspect.getsource(plain)))))
        names = {**vars(module), "_strong_wolfe": accepts}
        exec(compile(tree, module.__file__, "exec"), names)  # noqa: S102  PyTorch's own code
    except (OSError, SyntaxError):
        return

    @functools.wraps(plain)
    def step(self, closure):
        if current() is None:
            return plain(self, closure)
        current().drawn("LBFGS (all iterations)")
        return names["step"](self, closure)

    module.LBFGS.step = step
