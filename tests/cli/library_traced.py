"""allocrig.trace and allocrig.fits on functions, with the stand-in of the tracer: library_traced.py FOLDER"""
import functools
import os
import runpy
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


if __name__ == "__main__":
    path = os.path.join(sys.argv[1], "function.trace")
    assert allocrig.trace(functools.partial(program, 4), path, steps=2) == path
    assert allocrig.workload(path)["steps"] == 2
    answer = allocrig.fits(functools.partial(program, 4), card="l4")
    assert answer["live_peak_bytes"] == 478265344 and answer["rows"][0]["fits"], dict(answer)
    assert str(answer).startswith("stand_in, traced for NVIDIA L4"), str(answer)
    assert not allocrig.fits(functools.partial(program, 900), card="l4")["rows"][0]["fits"]
    refused(lambda: allocrig.fits(fails), allocrig.Error, "KeyError: 'not this one'")
    refused(lambda: allocrig.fits(fails, card="h1000"), allocrig.Error, 'did you mean "h100"')
