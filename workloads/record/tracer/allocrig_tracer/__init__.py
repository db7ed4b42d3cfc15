"""Records the GPU memory requests of a Python program without a GPU (see ../README.md).

`allocrig trace` starts it through ../start/sitecustomize.py; `session.start` and `session.stop` do the same inside a
program.
"""

import importlib.abc
import importlib.machinery
import os
import sys

from .children import adopt_path  # noqa: F401  ../start asks it whether this process is traced


class _AfterImport(importlib.abc.Loader):
    """Runs `then` after the module has been executed by its own loader."""

    def __init__(self, loader, then):
        self.loader, self.then = loader, then

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        self.then()

    def __getattr__(self, name):
        return getattr(self.loader, name)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds torch and jax as usual, once each, and starts the tracer after their import."""

    def __init__(self, actions):
        self.actions = actions

    def find_spec(self, name, path=None, target=None):
        then = self.actions.pop(name, None)
        if then is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _AfterImport(spec.loader, then)
        return spec


def after_import(name, then):
    """Runs `then` after the module has been imported, or now if it has been."""
    if sys.modules.get(name) is not None:
        then()
    else:
        sys.meta_path.insert(0, _Finder({name: then}))


def name_rank():
    """Sets what torchrun sets on hosts of 8 GPUs, before the program reads it, if a rank is to be traced."""
    world = os.environ.get("ALLOCRIG_TRACE_WORLD")
    if not world:
        return
    rank, local = int(os.environ.get("ALLOCRIG_TRACE_RANK") or 0), min(int(world), 8)
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=world, LOCAL_RANK=str(rank % local), LOCAL_WORLD_SIZE=str(local),
        MASTER_ADDR="127.0.0.1", MASTER_PORT="29500",
    )  # fmt: skip


def start_at_import():
    """Starts the tracer as soon as the program has imported torch or jax. Reads ALLOCRIG_TRACE and the others."""
    name_rank()

    def torch_imported():
        from . import release

        release.refuse_old(os.environ["ALLOCRIG_TRACE"])
        from . import session

        session.start_from_environment()

    def jax_imported():
        from . import jax_program

        jax_program.start_from_environment()

    sys.meta_path.insert(0, _Finder({"torch": torch_imported, "jax": jax_imported}))
