"""Which release of PyTorch runs, and which of its rules depend on that."""

import importlib.metadata

import torch

from .trace_file import TraceFile

LEAST = (2, 8)
MEASURED = (2, 11)  # the release of which kernels/*.tsv and kernels_*.py were measured
CUDNN = (((2, 8), 91002), ((2, 11), 91900), ((2, 15), 92600))  # what the wheels of a release and later ones have


def release():
    """Major and minor number of PyTorch's release."""
    return tuple(int("".join(c for c in n if c.isdigit()) or 0) for n in torch.__version__.split("+")[0].split(".")[:2])


def text(numbers):
    return ".".join(map(str, numbers))


def too_old():
    """A sentence if the tracer cannot serve this release, else None."""
    if release() >= LEAST:
        return None
    return f"the tracer needs PyTorch {text(LEAST)} or later and this is {torch.__version__}: pip install --upgrade torch"


def refuse_old(path):
    """Ends a program whose PyTorch is too old. Its trace has no request and says why."""
    sentence = too_old()
    if sentence is None:
        return
    trace = TraceFile(path)
    trace.note("traced", "versions", f"torch {torch.__version__}")
    trace.note("traced", "outside_envelope", sentence)
    trace.close(complete=False)
    raise SystemExit(f"allocrig trace: {sentence}")


def read_cudnn():
    """cuDNN's version as PyTorch says it: of the CUDA build's own library, of the wheel beside a build without CUDA."""
    try:
        found = torch.backends.cudnn.version()
    except (AttributeError, ImportError, RuntimeError):
        found = None
    if found:
        return found
    for name in ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12"):
        try:
            major, minor, patch = (int(n) for n in importlib.metadata.version(name).split(".")[:3])
            return major * 10000 + minor * 100 + patch
        except (importlib.metadata.PackageNotFoundError, ValueError):
            pass
    return next((number for least, number in reversed(CUDNN) if release() >= least), CUDNN[0][1])


CUDNN_VERSION = read_cudnn()


def cudnn_version():
    """The number that torch.backends.cudnn.version() returns."""
    return CUDNN_VERSION
