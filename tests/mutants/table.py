"""The table of mutants: small changes of meaning, made from clang's syntax tree of each file.

A mutant replaces one expression. Its key is file, function, kind, the change, and its number among
equal changes in that function; lines move, keys stay. Left out: constants that the compiler needs
(case labels, sizes, static data), what a macro expands to, preprocessor lines, pointer arithmetic,
and calls that only free memory of the host, which the sanitizers watch.
"""

import hashlib
import json
import os
import re
import subprocess
from dataclasses import dataclass, field

SEED = "21"

# Rooms whose lines count; the weight is how much more often a mutant is taken there.
ROOMS = [
    ("allocators/skeleton/", 0), ("allocators/policies/", 4), ("allocators/base/", 4),
    ("allocators/", 2), ("workloads/io/", 4), ("workloads/formats/", 4), ("workloads/trace/", 2),
    ("workloads/record/injection/", 0), ("workloads/", 1),
    ("sim/replay/", 4), ("sim/sim_device/", 4), ("sim/device_memory/", 4), ("sim/advise/", 4),
    ("sim/search/", 4), ("sim/explain/", 4), ("sim/", 1),
    ("bench/regress/", 4), ("bench/statistics/", 4), ("bench/suite/run_files", 4),
    ("bench/suite/result_folder", 4), ("bench/report/", 1), ("bench/suite/tenants_card", 0), ("bench/suite/", 1), ("planted/", 1),
]

CHANGED_OPERATORS = {
    "<": ("<=", "bound"), "<=": ("<", "bound"), ">": (">=", "bound"), ">=": (">", "bound"),
    "==": ("!=", "comparison"), "!=": ("==", "comparison"),
    "+": ("-", "arithmetic"), "-": ("+", "arithmetic"), "*": ("/", "arithmetic"),
    "/": ("*", "arithmetic"), "%": ("/", "arithmetic"), "<<": (">>", "arithmetic"),
    ">>": ("<<", "arithmetic"), "&": ("|", "arithmetic"), "|": ("&", "arithmetic"),
    "&&": ("||", "logic"), "||": ("&&", "logic"),
    "+=": ("-=", "arithmetic"), "-=": ("+=", "arithmetic"),
}
NO_POINTERS = {"+", "-", "+=", "-="}
TRANSPARENT = {"ImplicitCastExpr", "ParenExpr", "CStyleCastExpr"}
# Statements that only free memory or close a file of the host.
FREEING = re.compile(r"^(\(void\))?\s*(free|ar_host_free|fclose|close|munmap|pclose|va_end|va_start|"
                     r"json_decref|assert|fflush|unlink|\w*_(close|free|destroy))\s*\(")


# A compiler cache would compile the preprocessed text, which has no places.
NO_CACHE = dict(os.environ, CCACHE_DISABLE="1")


# What looks for faults of the product itself: it can only fail on memory that is corrupted.
CHECKING = re.compile(r"^allocators/(?!.*(settings|conf)).*:(check|check_\w+|\w+_check|\w+_validate)$")


@dataclass
class Mutant:
    file: str
    function: str
    kind: str
    start: int
    end: int
    old: str      # as the page shows it
    new: str
    mutated: str  # C text of the changed expression
    statement: bool = False
    number: int = 0  # among equal changes in the function
    line: int = 0
    named: bool = False
    inner: list = field(default_factory=list)

    @property
    def key(self):
        return "|".join((self.file, self.function, self.kind, self.old, self.new, str(self.number)))

    def rank(self, seed):
        """Between 0 and 1, the same in each run with a seed: the lowest are taken."""
        digest = hashlib.sha256((f"seed {seed}|" + self.key).encode()).digest()
        return (int.from_bytes(digest[:8], "big") + 1) / 2.0 ** 64


def weight(path):
    for prefix, value in ROOMS:
        if path.startswith(prefix):
            return value
    return 0


def one_line(text):
    return re.sub(r"\s+", " ", text).strip()


class File:
    """Collects the mutants of one file."""

    def __init__(self, root, path, flags):
        self.path = path
        self.data = (root / path).read_bytes()
        self.found = []
        self.seen = {}
        self.function = ""
        self.returns = ""
        done = subprocess.run(["clang", "-std=c11", "-D_GNU_SOURCE", "-DHAVE_CUDA=0", "-DHAVE_NVCC=0",
                               "-I.", "-w", "-fsyntax-only", "-Xclang", "-ast-dump=json", "-x", "c",
                               path, *flags], cwd=root, capture_output=True, check=False, env=NO_CACHE)
        if done.returncode != 0:
            print(f"mutants: left out, because clang does not read it: {done.stderr.decode().splitlines()[0]}")
            return
        for node in json.loads(done.stdout).get("inner", []):
            if node["kind"] != "FunctionDecl" or "includedFrom" in node.get("loc", {}):
                continue
            if "file" in node["loc"] and "expansionLoc" in node["loc"]:
                continue
            body = [part for part in node.get("inner", []) if part["kind"] == "CompoundStmt"]
            if body and not CHECKING.match(f"{path}:{node['name']}"):
                self.function = node["name"]
                self.returns = node["type"]["qualType"].split("(")[0].strip()
                self.visit(body[0], "", False)

    # ---- text ----

    def place(self, node):
        """(start, end) of a node in the file, or None: in a macro or in another file."""
        begin, end = node["range"]["begin"], node["range"]["end"]
        macro = False
        for at in (begin, end):
            if "includedFrom" in at or ("expansionLoc" in at and "includedFrom" in at["expansionLoc"]):
                return None
            macro = macro or "expansionLoc" in at
        begin, end = begin.get("expansionLoc", begin), end.get("expansionLoc", end)
        if "offset" not in begin or "offset" not in end:
            return None
        stop = end["offset"] + end["tokLen"]
        if macro and self.data[stop:stop + 1] == b"(":
            return None
        return begin["offset"], stop, macro and begin["offset"] == end["offset"]

    def text(self, start, end):
        return self.data[start:end].decode()

    def add(self, kind, node, old, new, mutated, statement=False):
        place = self.place(node)
        if place is None or place[2]:
            return
        whole = self.text(place[0], place[1])
        if "//" in whole or "#" in whole or "/*" in whole:
            return
        mutant = Mutant(self.path, self.function, kind, place[0], place[1], one_line(old), one_line(new),
                        one_line(mutated), statement)
        count = self.seen.get(mutant.key, 0)
        self.seen[mutant.key] = count + 1
        mutant.number = count
        mutant.line = self.data[:place[0]].count(b"\n") + 1
        self.found.append(mutant)

    # ---- the tree ----

    def visit(self, node, parent, index):
        kind = node.get("kind")
        if not kind or kind in ("ConstantExpr", "StaticAssertDecl", "UnaryExprOrTypeTraitExpr", "OffsetOfExpr"):
            return
        if kind == "VarDecl" and node.get("storageClass") == "static":
            return
        inner = [part for part in node.get("inner", [])]
        if kind in ("BinaryOperator", "CompoundAssignOperator"):
            self.operator(node, inner)
        elif kind == "IntegerLiteral" and not index:
            self.literal(node, parent)
        elif kind == "ReturnStmt" and inner:
            self.returned(inner[0])
        elif kind in ("IfStmt", "ConditionalOperator"):
            position = 1 if node.get("hasInit") or node.get("hasVar") else 0
            if inner[position].get("opcode") not in ("==", "!="):  # these are changed as operators
                self.condition(inner[position])
        if kind in ("CompoundStmt", "IfStmt", "ForStmt", "WhileStmt", "DoStmt", "CaseStmt", "DefaultStmt"):
            for number, part in enumerate(inner):
                head = (kind == "ForStmt" and number < 4) or (kind in ("IfStmt", "WhileStmt") and number == 0) or \
                    (kind == "DoStmt" and number == 1) or (kind == "CaseStmt" and number == 0)
                if not head:
                    self.statement(part)
        for number, part in enumerate(inner):
            self.visit(part, parent if kind in TRANSPARENT else kind,
                       kind == "ArraySubscriptExpr" and number == 1 or (kind in TRANSPARENT and index))

    def operator(self, node, inner):
        operator = node["opcode"]
        if operator not in CHANGED_OPERATORS:
            return
        if operator in NO_POINTERS:
            for part in (node, *inner):
                kind = part.get("type", {})
                if "*" in kind.get("desugaredQualType", kind.get("qualType", "")) or "[" in kind.get("qualType", ""):
                    return
        whole, left, right = self.place(node), self.place(inner[0]), self.place(inner[1])
        if not whole or not left or not right or left[1] > right[0]:
            return
        between = self.text(left[1], right[0])
        new, kind = CHANGED_OPERATORS[operator]
        if between.strip() != operator:
            return
        a, b = self.text(whole[0], left[1]), self.text(right[0], whole[1])
        self.add(kind, node, f"{a} {operator} {b}", f"{a} {new} {b}", f"{a} {new} {b}")

    def literal(self, node, parent):
        if parent not in ("BinaryOperator", "CompoundAssignOperator", "ReturnStmt", "VarDecl", "CallExpr",
                          "ConditionalOperator"):
            return
        place = self.place(node)
        if not place:
            return
        text = self.text(place[0], place[1])
        if not re.fullmatch(r"(0x[0-9a-fA-F]+|0|[1-9][0-9]*)[uUlL]*", text):
            return
        step = "+" if int(re.sub("[uUlL]", "", text), 0) == 0 or hashlib.sha256(
            (self.path + self.function + text).encode()).digest()[0] & 1 else "-"
        self.add("constant", node, self.around(place), f"{text} {step} 1", f"{text} {step} 1")

    def around(self, place):
        """A literal with what stands next to it, so that the page can be read."""
        line = self.data.rfind(b"\n", 0, place[0]) + 1
        stop = self.data.find(b"\n", place[1])
        return self.text(line, stop).strip()

    def returned(self, value):
        place = self.place(value)
        if not place:
            return
        text = self.text(place[0], place[1])
        if self.returns == "enum ar_status":
            if "no_memory(" in text or "AR_HOST_MEMORY" in text:
                return
            if text == "AR_OK":
                self.add("return", value, "return AR_OK", "return AR_INVALID", "AR_INVALID")
            else:
                self.add("return", value, f"return {text}", "... return AR_OK", f"((void)({text}), AR_OK)")
        elif self.returns in ("bool", "_Bool"):
            self.add("return", value, f"return {text}", f"return !({text})", f"!({text})")
        elif self.returns.endswith("*"):
            if text != "NULL":
                self.add("return", value, f"return {text}", "return NULL", "(void *)0")
        elif re.fullmatch(r"(const )?(u?int\d*_t|size_t|int|unsigned|double|unsigned int|u?int)", self.returns):
            new = "1" if text == "0" else "0"
            self.add("return", value, f"return {text}", f"return {new}", new)

    def condition(self, value):
        place = self.place(value)
        if place:
            text = self.text(place[0], place[1])
            self.add("negation", value, f"if ({text})", f"if (!({text}))", f"!({text})")

    def statement(self, node):
        kind = node.get("kind")
        if kind not in ("CallExpr", "BinaryOperator", "CompoundAssignOperator", "UnaryOperator"):
            return
        if kind == "BinaryOperator" and node["opcode"] != "=":
            return
        if kind == "UnaryOperator" and node["opcode"] not in ("++", "--"):
            return
        place = self.place(node)
        if not place:
            return
        text = self.text(place[0], place[1])
        if not FREEING.match(text):
            self.add("removed", node, f"{text};", ";", "", statement=True)


def of_file(root, path, flags=()):
    return File(root, path, flags).found
