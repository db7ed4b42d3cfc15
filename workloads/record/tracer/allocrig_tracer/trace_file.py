"""Writes a trace in the text form of workloads/trace/FORMAT.md."""

import contextlib
import gzip
import os
import shutil


LONG = {"plans": 2000}  # keys whose values are numbers; others have at most MOST bytes
MOST, LINE = 200, 511


def text_of(value, most=MOST, comma=";"):
    """The value of a key or the field of a note: no comma, no control character."""
    clean = "".join(" " if c < " " or c == "\x7f" else c for c in str(value)).replace(",", comma)
    return clean.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


class TraceFile:
    """Collects events in PATH.part; `close` writes PATH with its header. Errors: OSError from the file system."""

    def __init__(self, path):
        self.path = path
        self.header = {}
        self.pid = os.getpid()
        self.part = open(f"{path}.part", "w", encoding="utf-8", newline="\n", buffering=1 << 20)
        self.events = 0

    def event(self, letter, *fields, **keys):
        """Writes one event. Keys whose value is None or "" are left out."""
        if self.part is None:
            return
        line = ",".join([letter, *map(str, fields)])
        for key, value in keys.items():
            if value is not None and value != "":
                line += f",{key}={text_of(value, LONG.get(key, MOST)) if isinstance(value, str) else value}"
        self.events += 1
        self.part.write(line + "\n")

    def settings(self, conf):
        """The program sets its allocator's settings again: a note whose text may have commas."""
        self.event("!", "settings", text_of(conf, LINE, ","))

    def note(self, *fields):
        """Writes a note, which replays ignore."""
        self.event("!", *map(text_of, fields))

    def close(self, complete=True):
        """Writes the whole trace to its path and removes the part. A trace that is not complete says so."""
        if self.part is None or os.getpid() != self.pid:
            return
        part, self.part = self.part, None
        if not complete:
            self.header["complete"] = "no"
        try:
            part.close()
            self.write()
        except OSError:
            for path in (self.path, f"{self.path}.part"):
                with contextlib.suppress(OSError):
                    os.unlink(path)  # a part of a trace is not one
            raise
        os.unlink(f"{self.path}.part")

    def write(self):
        """Writes the header and the events."""
        opener = gzip.open if self.path.endswith(".gz") else open
        with opener(self.path, "wt", encoding="utf-8", newline="\n") as out:
            out.write("# allocrig-trace 1\n")
            for key in ("name", "conf", "card", "capacity", "limit", "complete", "let-go", "rank"):
                if key in self.header:
                    out.write(f"# {key}: {text_of(self.header[key], LINE, ',')}\n")
            with open(f"{self.path}.part", encoding="utf-8", newline="\n") as part:
                shutil.copyfileobj(part, out)
