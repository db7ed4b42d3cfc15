"""What the environment asks of a recording, and the end of a recording that ends with the program: PyTorch's and JAX's."""

import atexit
import os
import signal
import sys
import threading

from . import children

CARD_NAME, CARD_BYTES, CARD_SM = "NVIDIA H100 80GB HBM3", 85028372480, "9.0"  # unless ALLOCRIG_TRACE_CARD says another


def options():
    """The arguments of `start` that both kinds of programs have, from the variables that `allocrig trace` sets."""
    get = os.environ.get
    return {
        "card_name": get("ALLOCRIG_TRACE_CARD") or CARD_NAME,
        "card_bytes": int(get("ALLOCRIG_TRACE_CARD_BYTES") or CARD_BYTES),
        "sm": get("ALLOCRIG_TRACE_CARD_SM") or CARD_SM,
        "max_steps": int(get("ALLOCRIG_TRACE_STEPS") or 0),
        "progress": get("ALLOCRIG_TRACE_PROGRESS") == "1",
    }


def with_program(session):
    """Stops a session at the end of the program, however it ends, and says so if the trace cannot be written."""
    os.environ.setdefault(children.VARIABLE, os.environ.pop("ALLOCRIG_TRACE"))  # of programs that this one starts
    failed = []
    hook = sys.excepthook

    def on_error(kind, value, trace):
        failed.append(kind)
        hook(kind, value, trace)

    leave = os._exit

    def end(complete):
        try:
            session.stop(complete)
        except OSError as error:
            print(f"allocrig trace: the trace cannot be written to {session.trace.path}: {error.strerror}", file=sys.stderr)
            leave(1)

    def on_end():
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C would cut the trace off
        end(not failed)

    def on_exit(status):
        end(status == 0)
        leave(status)

    def on_signal(number, frame):
        end(False)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    sys.excepthook = on_error
    os._exit = on_exit
    atexit.register(on_end)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
            signal.signal(number, on_signal)
