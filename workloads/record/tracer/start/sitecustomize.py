"""Starts the tracer in a Python program that `allocrig trace` runs.

Python imports this file because its folder is first in PYTHONPATH. The machine's own sitecustomize, if any, runs
first. The tracer starts when the program imports torch or jax, and not at all in a program that imports neither.
"""

import importlib.util
import os
import sys


def run_other_sitecustomize(here):
    """Runs the sitecustomize that this file hides, if the machine has one."""
    for folder in sys.path:
        if os.path.abspath(folder or ".") == here:
            continue
        path = os.path.join(folder, "sitecustomize.py")
        if os.path.isfile(path):
            spec = importlib.util.spec_from_file_location("_hidden_sitecustomize", path)
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
            return


run_other_sitecustomize(os.path.dirname(os.path.abspath(__file__)))
if os.environ.get("ALLOCRIG_TRACE") or os.environ.get("ALLOCRIG_TRACE_CHILDREN"):
    import allocrig_tracer

    if allocrig_tracer.adopt_path():
        allocrig_tracer.start_at_import()
