"""The older names of allocrig.torch and allocrig.cupy (bench/library/python), kept for one release.

    import allocrig_torch
    allocrig_torch.install()            # before anything is put on a GPU; ALLOCRIG_POLICY says which policy"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [folder for folder in (HERE, os.path.join(HERE, "..", "library", "python"))
                if os.path.exists(os.path.join(folder, "allocrig", "torch.py"))]

from allocrig._plugin import address, figure, library, mark, path  # noqa: E402, F401


def install():
    """Makes PyTorch take all of its device memory from the policy."""
    import allocrig.torch

    return allocrig.torch.use()


def install_cupy(stream=0):
    """Makes CuPy take device memory from the policy, for work on `stream` (a pointer; 0: the default stream)."""
    import allocrig.cupy

    return allocrig.cupy.use(stream=stream)
