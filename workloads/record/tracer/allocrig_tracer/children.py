"""Child processes of a traced program: each runs on a stand-in card and writes a trace of its own, PATH.child-PID.

If the program itself makes no request, as a launcher does, its trace is that of its child with the rank that is traced,
or of the first child that makes one. Else the children's requests are missing, which `gather` says in a sentence.
"""

import contextlib
import glob
import os

VARIABLE = "ALLOCRIG_TRACE_CHILDREN"  # the path of the program's own trace, in the environment of its children


def adopt_path():
    """In a process that a traced program has started: names its trace. In the program itself: nothing."""
    if "ALLOCRIG_TRACE" not in os.environ and os.environ.get(VARIABLE):
        os.environ["ALLOCRIG_TRACE"] = f"{os.environ[VARIABLE]}.child-{os.getpid()}"
        os.environ.pop("ALLOCRIG_TRACE_PROGRESS", None)
    return "ALLOCRIG_TRACE" in os.environ


def follow_forks(session, new_file):
    """A process that is forked before the first request of the program may use the card itself."""

    def in_child():
        if session.stopped or session.ledger.next_number:
            return
        header = session.trace.header
        session.trace = session.ledger.trace = new_file(f"{os.environ[VARIABLE]}.child-{os.getpid()}")
        session.trace.header = dict(header)
        session.pid = session.ledger.pid = os.getpid()

    os.register_at_fork(after_in_child=in_child)


def drop_empty(session):
    """A child that made no request leaves no trace. Returns whether it was dropped."""
    if ".child-" not in os.path.basename(session.trace.path) or session.ledger.next_number:
        return False
    session.trace.part.close()
    with contextlib.suppress(OSError):
        os.unlink(f"{session.trace.path}.part")
    return True


def header_of(path):
    with open(path, encoding="utf-8") as f:
        return dict(line[2:].rstrip("\n").split(": ", 1) for line in f if line.startswith("# ") and ": " in line)


def gather(session, rank):
    """After the end of the program: its children's traces are read and removed."""
    path = session.trace.path
    files = sorted((f for f in glob.glob(glob.escape(path) + ".child-*") if f.rpartition("-")[2].isdigit()),
                   key=lambda f: int(f.rpartition("-")[2]))  # fmt: skip
    headers = {f: header_of(f) for f in files}
    ranks = [f for f in files if "rank" in headers[f]]
    names = ", ".join(dict.fromkeys(headers[f].get("name", "") for f in files))
    count = f"{len(files)} child processes" if len(files) > 1 else "a child process"
    if files and session.ledger.next_number:
        session.refuse(f"the card also serves {count} of the program ({names}), whose memory is not in the trace")
    elif files:
        wanted = [f for f in ranks if headers[f]["rank"] == str(rank or 0)] or files
        if len(ranks) < len(files) > 1:
            say(wanted[0], f"the card serves {count} of the program ({names}): the trace is of the first")
        session.replaced_by = wanted[0]
        files.remove(wanted[0])
    for f in files + glob.glob(glob.escape(path) + ".child-*.part"):
        os.unlink(f)


def say(path, sentence):
    with open(path, "a", encoding="utf-8") as f:
        f.write(f"!,traced,outside_envelope,{sentence.replace(',', ';')}\n")
