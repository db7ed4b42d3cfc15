"""The page and the rows of a run."""

COLUMNS = ("file", "line", "function", "kind", "original", "changed", "state", "set", "killed_by", "how", "reason",
           "key")


def result(mutant, entry, with_reason, reason):
    """One row. state: killed, lived, unreached (no test executes it), with a reason: same or beyond; not run."""
    by = entry["by"] if entry else ""
    if not entry:
        state = "not run"
    elif by:
        state = "killed"
    elif reason:
        state = with_reason
    else:
        state = "lived" if entry["reached"] else "unreached"
    stage = "" if not by else {1: "quick", 2: "whole", 3: "san"}[entry["stage"]]
    return {"file": mutant.file, "line": mutant.line, "function": mutant.function, "kind": mutant.kind,
            "original": mutant.old, "changed": mutant.new, "state": state, "set": stage, "killed_by": by,
            "how": entry["how"] if entry else "", "stage": entry["stage"] if entry else 0, "reason": reason if state == with_reason else "", "key": mutant.key}


def room(path):
    return path.rsplit("/", 1)[0] if "/" in path else path


def count(results, **wanted):
    return sum(all(row[name] == value for name, value in wanted.items()) for row in results)


def figures(results):
    ran = [row for row in results if row["state"] != "not run"]
    same, beyond = count(ran, state="same"), count(ran, state="beyond")
    changing = len(ran) - same
    quick, killed = count(ran, set="quick"), count(ran, state="killed")
    return {"all": len(results), "ran": len(ran), "same": same, "beyond": beyond, "changing": changing,
            "quick": quick, "killed": killed, "lived": changing - killed - beyond, "not_run": len(results) - len(ran)}


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def last_lines(results):
    f = figures(results)
    lines = []
    for row in results:
        if row["state"] in ("lived", "unreached"):
            lines.append(f"{row['state']}: {row['file']}:{row['line']} {row['function']}(): "
                         f"{row['original']} -> {row['changed']}")
    lines.append(f"{f['ran']} mutants, {f['same']} the same program; of {f['changing']} the quick tests kill "
                 f"{f['quick']} ({percent(f['quick'], f['changing'])}), all tests {f['killed']} "
                 f"({percent(f['killed'], f['changing'])}); {f['lived']} lived"
                 + (f", {f['beyond']} not reached by a test, with a reason" if f["beyond"] else "")
                 + (f", {f['not_run']} not run for lack of time" if f["not_run"] else ""))
    return lines


def cell(text):
    """As code in a table of Markdown."""
    short = text if len(text) <= 150 else text[:147] + "..."
    return "`" + short.replace("|", "\\|").replace("`", "'") + "`"


def how_group(row):
    how = row["how"]
    if how.startswith("signal"):
        return "crash"
    return "time limit" if how == "time limit" else "failed check"


def text(results, left_out, options):
    f = figures(results)
    out = ["# Mutants", ""]
    if options.changed:
        out += [f"Files changed since `{options.changed}`, quick tests.", ""]
    else:
        out += ["Small changes of meaning in the product, one at a time, and the tests that notice them. Written by",
                "`make mutants`; [tests/mutants](../tests/mutants/README.md) says how. `mutants.csv` has a row for each.",
                ""]
    out += ["| | mutants | of those that change behaviour |", "| --- | ---: | ---: |",
            f"| all | {f['ran']} | |", f"| the same program, with a reason | {f['same']} | |",
            f"| killed by the quick tests (`make check`) | {f['quick']} | {percent(f['quick'], f['changing'])} |",
            f"| killed by the whole suite | {f['killed']} | {percent(f['killed'], f['changing'])} |",
            f"| not reached by a test, with a reason | {f['beyond']} | {percent(f['beyond'], f['changing'])} |",
            f"| lived | {f['lived']} | {percent(f['lived'], f['changing'])} |", ""]
    if f["not_run"]:
        out += [f"{f['not_run']} more were not run, because the time was over.", ""]
    alone = sum(row["state"] not in ("killed", "not run") and row["stage"] == 1 for row in results)
    if alone and not options.changed:
        out += [f"{alone} that no quick test notices did not run against the rest of the suite.", ""]
    killed = [row for row in results if row["state"] == "killed"]
    out += ["## By room", "", "| room | mutants | quick tests | whole suite | same program | not reached | lived |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for name in sorted({room(row["file"]) for row in results}):
        some = [row for row in results if room(row["file"]) == name and row["state"] != "not run"]
        out.append(f"| `{name}` | {len(some)} | {count(some, set='quick')} | {count(some, state='killed')} | "
                   f"{count(some, state='same')} | {count(some, state='beyond')} | "
                   f"{count(some, state='lived') + count(some, state='unreached')} |")
    out += ["", "## By kind of change", "", "| kind | mutants | killed | same program | not reached | lived |",
            "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for kind in sorted({row["kind"] for row in results}):
        some = [row for row in results if row["kind"] == kind and row["state"] != "not run"]
        out.append(f"| {kind} | {len(some)} | {count(some, state='killed')} | {count(some, state='same')} | "
                   f"{count(some, state='beyond')} | "
                   f"{count(some, state='lived') + count(some, state='unreached')} |")
    out += ["", "## Killed by", "", "| test | mutants |", "| --- | ---: |"]
    tests = {}
    for row in killed:
        tests[row["killed_by"]] = tests.get(row["killed_by"], 0) + 1
    for name, times in sorted(tests.items(), key=lambda pair: (-pair[1], pair[0])):
        out.append(f"| `{name}` | {times} |")
    groups = {}
    for row in killed:
        groups[how_group(row)] = groups.get(how_group(row), 0) + 1
    out += ["", "How: " + ", ".join(f"{name} {times}" for name, times in sorted(groups.items())) + ".", ""]
    lived = [row for row in results if row["state"] in ("lived", "unreached")]
    out += ["## Lived", ""]
    if lived:
        out += ["| place | change | reached by a test |", "| --- | --- | --- |"]
        out += [f"| {row['file']}:{row['line']} `{row['function']}` | {cell(row['original'])} to {cell(row['changed'])} | "
                f"{'yes' if row['state'] == 'lived' else 'no'} |" for row in lived]
    else:
        out.append("None.")
    for state, title in (("same", "The same program"), ("beyond", "Not reached by a test")):
        some = [row for row in results if row["state"] == state]
        if some:
            out += ["", f"## {title}", "", "| place | change | reason |", "| --- | --- | --- |"]
        out += [f"| {row['file']}:{row['line']} `{row['function']}` | {cell(row['original'])} to {cell(row['changed'])} | "
                f"{row['reason']} |" for row in some]
    if left_out:
        out += ["", "Left out, because they fail without a mutant: "
                + ", ".join(f"{variant} `{name}` ({reason})" for variant, name, reason in left_out) + "."]
    return "\n".join(out) + "\n"
