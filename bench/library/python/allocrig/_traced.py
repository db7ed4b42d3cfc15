"""Runs a function in a new process under `allocrig trace` or `allocrig fits`.

The tracer must be in the process before the program's modules take functions out of torch, so the function is called in
a process of its own, as multiprocessing does with its start method "spawn": it must be importable by its name. A
function of a notebook, or a lambda, is possible if cloudpickle is installed. `python -m allocrig._called FILE` is that
process."""
import json
import multiprocessing.spawn
import os
import pickle
import shutil
import subprocess
import sys
import tempfile

from . import _library

stops_script = False  # in the new process, while it runs the script of the caller for its definitions


class Reached(BaseException):
    """The script of the caller has come to the call for which the process was made; `except Exception` is not meant."""


class Answer(dict):
    """The answer of `fits` for one GPU, with the names of `fits --json`. As a text it is the page; `others` has the
    answers for further GPUs."""

    def __init__(self, answers, page):
        super().__init__(answers[0])
        self.page, self.others = page, [dict(answer) for answer in answers[1:]]

    def __str__(self):
        return self.page

    __repr__ = __str__


def find_program():
    """The path of the program: what the environment says, in this package, in the tree, beside the Python that runs."""
    places = [os.environ.get("ALLOCRIG_PROGRAM"), os.path.join(_library.HERE, "bin", "allocrig"),
              os.path.join(_library.TREE, ".build", "release", "allocrig"),
              os.path.normpath(os.path.join(_library.HERE, "..", "..", "..", "bin", "allocrig")),
              shutil.which("allocrig")]
    for place in places:
        if place and os.path.exists(place):
            return place
    raise ImportError("the program allocrig is not found: run \"make\" in its tree, \"make install\", or name it in "
                      "ALLOCRIG_PROGRAM")


def _dump(function, file):
    try:
        import cloudpickle as pickler
    except ImportError:
        pickler = pickle
    preparation = multiprocessing.spawn.get_preparation_data("allocrig")
    preparation.pop("authkey")  # which only a process of multiprocessing may pickle
    try:
        pickled = pickler.dumps(function)
    except Exception as problem:
        raise ValueError(f"{function!r} cannot be called in another process: {problem}; put it into a module, or "
                         "install cloudpickle") from None
    pickle.dump(preparation, file)
    file.write(pickled)


def call(command, function, arguments, options, folder):
    """Runs `allocrig COMMAND ARGUMENTS -- python` on the function. Returns what it prints on standard output."""
    if stops_script:
        raise Reached(command)
    path = os.path.join(folder, "function")
    with open(path, "wb") as file:
        _dump(function, file)
    words = [find_program(), command, *arguments]
    for key, value in options.items():
        if value is not None:
            words += ["--" + key.replace("_", "-"), str(value)]
    package = os.path.dirname(_library.HERE)
    there = os.environ.get("PYTHONPATH")
    environment = dict(os.environ, PYTHONPATH=package + (os.pathsep + there if there else ""))
    ended = subprocess.run(words + ["--", sys.executable, "-m", "allocrig._called", path], env=environment,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           errors="replace")
    said = ended.stderr.rstrip()
    if os.path.exists(path + ".refusal"):
        with open(path + ".refusal", encoding="utf-8") as file:
            raise _library.Error(ended.returncode, file.read())
    if ended.returncode and not (command == "fits" and ended.returncode == 1 and "it does not fit on" in said):
        raise _library.Error(ended.returncode, said[said.rfind("allocrig: ") + 10:] + (
            "\n" + said[-4000:] if "Traceback" in said else ""))
    return ended.stdout


def trace(function, path, **options):
    """See allocrig.trace."""
    with tempfile.TemporaryDirectory() as folder:
        printed = call("trace", function, ["-o", os.fspath(path)], options, folder)
    sys.stdout.write(printed)
    return os.fspath(path)


def fits(function, **options):
    """See allocrig.fits."""
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "answer.json")
        page = call("fits", function, ["--json", result], options, folder)
        with open(result, encoding="utf-8") as file:
            return Answer(json.load(file)["answers"], page)


def twin(path, changes, options):
    """See allocrig.twin."""
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "answer.json")
        words = [find_program(), "twin", os.fspath(path), "--json", result]
        for key, value in changes.items():
            words += ["--set", f"{key}={'yes' if value is True else 'no' if value is False else value}"]
        if "what_if" in options:
            options = dict(options, what_if="yes" if options["what_if"] else "no")
        for key, value in options.items():
            if value is not None:
                words += ["--" + key.replace("_", "-"), str(value)]
        ended = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors="replace")
        if not os.path.exists(result):
            said = ended.stderr.rstrip()
            raise _library.Error(ended.returncode, said[said.rfind("allocrig: ") + 10:])
        with open(result, encoding="utf-8") as file:
            return Answer([json.load(file)], ended.stdout)


def main():
    """The command `allocrig` of the wheel."""
    try:
        program = find_program()
    except ImportError as problem:
        sys.exit(str(problem))
    os.execv(program, ["allocrig", *sys.argv[1:]])

