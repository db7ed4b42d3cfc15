"""allocrig.trace and allocrig.fits on functions, with the stand-in of the tracer: library_traced.py FOLDER"""
import functools
import os
import runpy
import subprocess
import sys

import allocrig


def program(batch):
    sys.argv = ["stand_in", str(batch)]
    runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tracer_stand_in.py"), run_name="__main__")


def fails():
    raise KeyError("not this one")


def refused(call, exception, says):
    try:
        call()
    except exception as error:
        assert says in str(error), error
    else:
        raise AssertionError(f"no {exception.__name__}: {says}")


SCRIPT = """import functools, sys
import allocrig, library_traced
print("script", file=open("runs", "a"))
def train():
    library_traced.program(4)
for function in (functools.partial(library_traced.program, 4), train):
    assert allocrig.fits(function)["live_peak_bytes"] == 478265344
    print("answer")
class Later:
    def train(self):
        library_traced.program(4)
try:
    allocrig.trace(Later().train, "later.trace")
except allocrig.Error as error:
    print(error)
"""


def without_guard(folder):
    """A script that calls at its top level, without cloudpickle: it runs again only for functions of its own, up to
    the first call."""
    for name, text in ("unguarded.py", SCRIPT), ("cloudpickle.py", "raise ImportError\n"):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    there = os.pathsep.join((os.path.dirname(os.path.abspath(__file__)), os.environ["PYTHONPATH"]))
    for how in ["unguarded.py"], ["-m", "unguarded"]:
        ran = subprocess.run([sys.executable, *how], cwd=folder, env=dict(os.environ, PYTHONPATH=there), text=True,
                             check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert ran.stdout.startswith("answer\nanswer\nunguarded.py runs in a new process up to its first call of "
                                     "allocrig.fits, and Later is not defined there: "), ran.stdout
        with open(os.path.join(folder, "runs"), encoding="utf-8") as file:
            assert file.read() == "script\n" * 3  # the caller, `train` and `Later`; none for the function of a module
        os.remove(os.path.join(folder, "runs"))


if __name__ == "__main__":
    without_guard(sys.argv[1])
    path = os.path.join(sys.argv[1], "function.trace")
    assert allocrig.trace(functools.partial(program, 4), path, steps=2) == path
    assert allocrig.workload(path)["steps"] == 2
    answer = allocrig.fits(functools.partial(program, 4), card="l4")
    assert answer["live_peak_bytes"] == 478265344 and answer["rows"][0]["fits"], dict(answer)
    assert str(answer).startswith("stand_in, traced for NVIDIA L4"), str(answer)
    assert not allocrig.fits(functools.partial(program, 900), card="l4")["rows"][0]["fits"]
    refused(lambda: allocrig.fits(fails), allocrig.Error, "KeyError: 'not this one'")
    refused(lambda: allocrig.fits(fails, card="h1000"), allocrig.Error, 'did you mean "h100"')
