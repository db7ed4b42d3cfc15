#!/usr/bin/env python3
"""results/schema.json against results as they are written. Usage:
schema.py RESULT REPLICATES   a result with every part, and one of six replicates of two policies
METRICS on standard input: the names of all metrics, one a line.

The validator knows the keywords that the schema uses, and fails on one that it does not know: nothing
in the schema goes unchecked. Prints a line for each case."""
import copy
import json
import re
import sys

SILENT = {"$schema", "$id", "title", "description"}
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "null": type(None)}


def has_type(value, name):
    if name == "boolean" or isinstance(value, bool):
        return name == "boolean" and isinstance(value, bool)
    return isinstance(value, TYPES[name])


def faults(value, schema, where="result"):
    """What is wrong with a value, as sentences."""
    known = schema.get("properties", {})
    members = value if isinstance(value, dict) else {}
    others = [(name, member) for name, member in members.items() if name not in known]
    for keyword, rule in schema.items():
        if keyword == "type":
            if not any(has_type(value, name) for name in ([rule] if isinstance(rule, str) else rule)):
                yield f"{where} has the wrong type"
        elif keyword == "enum":
            if not any(type(value) is type(choice) and value == choice for choice in rule):
                yield f"{where} is none of those allowed"
        elif keyword == "const":
            if value != rule:
                yield f"{where} is not what it must be"
        elif keyword == "minimum":
            if isinstance(value, (int, float)) and value < rule:
                yield f"{where} is too small"
        elif keyword == "pattern":
            if not re.search(rule, value):
                yield f"{where} has the wrong form"
        elif keyword == "required":
            yield from (f"{where}: {name} is missing" for name in rule if isinstance(value, dict) and name not in value)
        elif keyword == "additionalProperties":
            for name, member in others:
                yield from [f"{where}.{name} is not in the schema"] if rule is False else faults(member, rule, f"{where}.{name}")
        elif keyword == "properties":
            for name, member in members.items():
                yield from faults(member, rule[name], f"{where}.{name}") if name in rule else ()
        elif keyword == "items":
            for number, item in enumerate(value if isinstance(value, list) else []):
                yield from faults(item, rule, f"{where}[{number}]")
        elif keyword not in SILENT:
            yield f"{keyword} is a keyword that this test does not know"


def load(path):
    def once(pairs):
        assert len(dict(pairs)) == len(pairs), f"{path}: a key is there twice: {[name for name, _ in pairs]}"
        return dict(pairs)
    with open(path, encoding="utf-8") as file:
        return json.load(file, object_pairs_hook=once)


def check(name, good, why=""):
    print(f"{'ok' if good else 'not ok'} {name}{'' if good or not why else ': ' + str(why)}")


def spoiled(result, change):
    """Whether a result with a change is refused."""
    result = copy.deepcopy(result)
    change(result)
    return any(faults(result, schema))


def put(*path):
    """A change that sets the member at a path, whose last entry is its value."""
    def change(result):
        for key in path[:-2]:
            result = result[key]
        result[path[-2]] = path[-1]
    return change


schema, result, replicates = load("results/schema.json"), load(sys.argv[1]), load(sys.argv[2])
metrics = schema["properties"]["runs"]["items"]["properties"]["metrics"]

check("a_result_is_valid", not any(faults(result, schema)), next(faults(result, schema), ""))
passed = sum(run["outcome"]["passed"] for run in result["runs"])
check("it_has_both_outcomes", 0 < passed < len(result["runs"]), passed)
check("two_runs_of_each_have_statistics", 2 * len(result["statistics"]) == len(result["runs"]))
check("statistics_have_times", "alloc_ns_p50" in result["statistics"][0]["metrics"])

check("a_result_of_replicates_is_valid", not any(faults(replicates, schema)), next(faults(replicates, schema), ""))
pair = replicates["draw_pairs"][0]["metrics"]["peak_physical_bytes"]
check("replicates_are_counted", len(replicates["draws"]) == 2 and replicates["draws"][1]["passed"] == 6)
check("policies_are_paired", len(replicates["draw_pairs"]) == 1 and pair["pairs"] == 6)
check("a_ratio_has_an_interval", has_type(pair["ratio"]["low"], "number"))
of_pair = "draw_pairs", 0, "metrics", "peak_physical_bytes"
check("a_low_end_is_no_text", spoiled(replicates, put(*of_pair, "ratio", "low", "1")))
check("a_low_end_may_be_null", not spoiled(replicates, put(*of_pair, "ratio", "low", None)))
check("a_pair_has_a_difference", spoiled(replicates, lambda r: r["draw_pairs"][0]["metrics"]["peak_physical_bytes"].pop("difference")))

for name, change in {
        "no_context": lambda r: r.pop("context"),
        "another_version": put("schema", "allocrig.result/2"),
        "another_way_of_frees": put("runs", 0, "frees", "sometimes"),
        "another_key_of_a_run": put("runs", 0, "colour", "red"),
        "a_metric_as_text": put("runs", 0, "metrics", "overhead", "1.5"),
        "a_short_hash": put("runs", 0, "workload", "sha256", "abc"),
        "a_negative_repetition": put("runs", 0, "repetition", -1),
        "no_slowdown": lambda r: r["runs"][0]["metrics"].pop("slowdown"),
        "a_median_as_text": put("statistics", 0, "metrics", "alloc_ns_p50", "median", "1")}.items():
    check(f"{name}_is_refused", spoiled(result, change))

names = sys.stdin.read().split()
check("the_schema_has_every_metric", set(metrics["properties"]) == set(names), set(names) ^ set(metrics["properties"]))
check("those_that_each_run_has_are_required", metrics["required"] == names[:len(metrics["required"])] and
      set(metrics["required"]) == set(result["runs"][0]["metrics"]), metrics["required"])
