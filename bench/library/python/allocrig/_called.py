"""Calls the function in a file of allocrig._traced, in a process of its own.

The script of the caller runs here only if the function is one of the script. It runs up to its first call of allocrig's
`trace` or `fits`, which is where the caller is, so it needs no `if __name__ == "__main__"`."""
import importlib.machinery
import importlib.util
import multiprocessing.spawn
import os
import pickle
import sys
import types

from . import _traced


class Refused(Exception):
    """The function is not found; the text says what to do."""


def _code(name, path):
    """The code of the caller's main module, and the package that it belongs to."""
    if name:
        loader = importlib.util.find_spec(name).loader
        return loader.get_code(name), name if loader.is_package(name) else name.rpartition(".")[0]
    loader = importlib.machinery.SourceFileLoader("__mp_main__", path)
    return loader.source_to_code(loader.get_data(path), path), None


def _run_script(name, path, wanted):
    if not name and not (path and os.path.exists(path)):
        raise Refused(f"{wanted} is of an interactive session: put it into a module, or install cloudpickle")
    module = types.ModuleType("__mp_main__")
    code, module.__package__ = _code(name, path)
    module.__file__ = code.co_filename
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    _traced.stops_script = True
    try:
        exec(code, module.__dict__)
    except _traced.Reached as call:
        if not hasattr(module, wanted.split(".")[0]):
            raise Refused(f"{os.path.basename(module.__file__)} runs in a new process up to its first call of "
                          f"allocrig.{call}, and {wanted} is not defined there: define it above that call, put the "
                          'calls under if __name__ == "__main__":, or put it into a module') from None
    finally:
        _traced.stops_script = False


class _Reader(pickle.Unpickler):
    script = None

    def find_class(self, module, name):
        if module == "__main__" and self.script:
            script, self.script = self.script, None
            _run_script(*script, name)
        return super().find_class(module, name)


def main(path):
    with open(path, "rb") as file:
        preparation = pickle.load(file)
        reader = _Reader(file)
        reader.script = (preparation.pop("init_main_from_name", None), preparation.pop("init_main_from_path", None))
        multiprocessing.spawn.prepare(preparation)
        try:
            function = reader.load()
        except Refused as refusal:
            with open(path + ".refusal", "w", encoding="utf-8") as told:
                told.write(str(refusal))
            sys.exit(1)
    function()


if __name__ == "__main__":
    main(sys.argv[1])
