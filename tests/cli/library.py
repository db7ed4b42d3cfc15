"""The Python package against a result of the program: library.py RUN.json"""
import csv
import io
import json
import math
import os
import pathlib
import subprocess
import sys

import allocrig

with open(sys.argv[1], encoding="utf-8") as file:
    expected = json.load(file)
rows = allocrig.run(["growth", "vmm"], "order_flip")
assert rows.document["runs"] == expected["runs"], "the runs differ from those of the program"
assert rows.document["schema"] == expected["schema"]
assert set(rows.document["context"]) == set(expected["context"])
assert [row["policy"] for row in rows] == ["growth", "vmm"] and all(row["passed"] for row in rows)
assert rows[0]["peak_live_bytes"] == expected["runs"][0]["metrics"]["peak_live_bytes"]
assert rows[0]["frees"] == expected["runs"][0]["metrics"]["frees"] and rows[0]["frees_mode"] == "ordered"
assert {metric["name"] for metric in allocrig.metrics()} >= set(expected["runs"][0]["metrics"]) - {"unknown"}
assert all(metric["class"] in ("exact", "timed") for metric in allocrig.metrics())

small = allocrig.run("growth", "order_flip", "sim:capacity=4MiB")[0]
assert not small["passed"] and small["cause"], small
assert len(allocrig.run("growth", "random:events=100", replicates=2)) == 2
assert allocrig.run("growth", "order_flip", on_fail="stop")[0]["passed"]

seen = []
allocrig.run("growth", "order_flip", observe=seen.append)
assert sum(event["kind"] == "alloc" for event in seen) == rows[0]["allocs"]


def complain(event):
    raise KeyError("not this one")


for wrong, exception, says in (
        (lambda: allocrig.run("growht", "order_flip"), allocrig.Error, "did you mean"),
        (lambda: allocrig.run("growth", "order_flip", fress="ordered"), allocrig.Error, "did you mean \"frees\""),
        (lambda: allocrig.run("growth", "order_flip", foo=1), allocrig.Error, "there are: policy, workload, device"),
        (lambda: allocrig.twin("missing.ini"), allocrig.Error, "missing.ini"),
        (lambda: allocrig.workload("missing.trace"), allocrig.Error, "missing.trace"),
        (lambda: allocrig.run("growth", "order_flip", observe=complain), KeyError, "not this one")):
    try:
        wrong()
    except exception as error:
        assert says in str(error), error
    else:
        raise AssertionError(f"no error that says {says}")

found = allocrig.capacity("growth", "order_flip", jobs=1)[0]
assert found["first_pass_bytes"] >= found["live_peak_bytes"] and isinstance(found["gaps"], list)
advice = allocrig.advise("tests/golden/data/snapshots/tape_small.pickle.gz", capacity="1700MiB", jobs=1)
assert [row["best"] for row in advice[:2]] == [True, False] and advice[0]["fit"] == "yes", advice[0]
assert advice[0]["policy"] == advice.document["traces"][0]["best"] and advice[0]["own"] and advice.document["schema"].startswith("allocrig.advise/")
for row in advice: # for the defaults nothing is set
    assert not row["own"] or (row["setting"] == "") == (row["policy"] == "torch"), row["setting"]
assert "torch" in [row["policy"] for row in advice if row["own"]]
apart = allocrig.run("direct", "tests/golden/data/two_gpus.trace")
assert [row["workload_spec"][-9:] for row in apart] == [":device=0", ":device=1"]
assert [row["peak_live_bytes"] for row in apart] == [12582912, 7340032]
scenario = "tests/golden/data/twin/small.ini"
if "ALLOCRIG_PROGRAM" in os.environ:
    twin = allocrig.twin(scenario, what_if=False)
    assert twin["outcome"] == "fits" and twin["peak"]["bytes"] == 13088 << 20 and str(twin).startswith("small: "), twin
    assert allocrig.twin(scenario, {"kv.bytes": "14GiB"}, what_if=False)["outcome"] == "out of memory"
info = allocrig.workload(pathlib.Path("order_flip"))
assert info["events"] == sum(1 for _ in allocrig.events(pathlib.Path("order_flip"))) == rows[0]["events"]
assert allocrig.version().count(".") == 2 and allocrig.__version__ == allocrig.version()
assert found["frees_mode"] == "ordered" and "frees" not in found
if "ALLOCRIG_PROGRAM" in os.environ:
    said = subprocess.run([os.environ["ALLOCRIG_PROGRAM"], "run", "-d", "sim", "-p", "growth", "-p", "vmm", "-w", "order_flip",
                           "--csv", "-"], stdout=subprocess.PIPE, text=True, check=True).stdout
    for of_csv, of_python in zip(csv.DictReader(io.StringIO(said)), rows):
        assert list(of_csv) == list(of_python), set(of_csv) ^ set(of_python)
        for key in list(of_csv)[:10]:
            assert of_csv[key].lower() == str(of_python[key]).lower(), key
        for key in expected["runs"][0]["metrics"]:
            number = of_python[key]
            assert isinstance(number, (int, float)), key
            assert (of_csv[key] == "") == math.isnan(number) and (of_csv[key] == "" or float(of_csv[key]) == number), key
try:
    import pandas
except ImportError:
    pass
else:
    assert len(pandas.DataFrame(rows)) == 2

# A policy by hand: what is free, what is too large, and what a free gives back.
hand = allocrig.Session("offset:size=1MiB,unit=1,round_up=true", "sim:profile=bump,capacity=1MiB")
first = hand.alloc(1000)
assert first and first.granted_bytes >= 1000 and hand.stats()["live_bytes"] == 1000
assert hand.alloc(2**20) is None and hand.stats()["failures"] == 1
assert hex(first.address) in repr(first)
other = allocrig.Session("torch")
foreign, twice = other.alloc(1000), other.alloc(1000)
other.free(twice)
for refused, why in ((lambda: hand.free(12), "takes the block that alloc() returned"),
                     (lambda: hand.free(foreign), "freed already, or of another session"),
                     (lambda: other.free(twice), "freed already, or of another session"),
                     (lambda: hand.alloc(5, stream=65536), "stream is 65536; write a whole number from 0 to 65535"),
                     (lambda: hand.free(first, stream=2**32 + 1), "stream is 4294967297"),
                     (lambda: hand.alloc(5, stream=-1), "stream is -1"),
                     (lambda: hand.alloc(2**64 + 5), "size is 18446744073709551621"),
                     (lambda: allocrig.Session("torch", seed=-1), "seed is -1; write a whole number from 0 to"),
                     (lambda: allocrig.run("tor\0ch", "order_flip"), "contains a NUL character")):
    try:
        refused()
        raise AssertionError("nothing was refused")
    except (TypeError, ValueError) as error:
        assert why in str(error)
# What would have no effect is refused.
for refused, why in (
        (lambda: allocrig.run("torch", "\udcff.csv"), "cannot be opened"),
        (lambda: allocrig.run("torch", "order_flip", capacity="1MiB"), "capacity has no effect on runs; a device has a capacity"),
        (lambda: allocrig.run("torch", "order_flip", limit="1MiB"), "limit has no effect on runs"),
        (lambda: allocrig.capacity("torch", "order_flip", capacity=3), "capacity has no effect on a search of capacities"),
        (lambda: allocrig.capacity("torch", "order_flip", capacities="1MiB"), "capacities has no effect on a search"),
        (lambda: allocrig.capacity("torch", "order_flip", name="x"), "name has no effect on a search"),
        (lambda: allocrig.run("torch", "order_flip", jobs=4), "jobs has no effect on runs, which are one after the other"),
        (lambda: allocrig.advise("order_flip", policy="vmm"), "policy has no effect on advice; leave it out"),
        (lambda: allocrig.advise("order_flip", name="x"), "name has no effect on advice"),
        (lambda: allocrig.advise("order_flip", replicates=3), "replicates has no effect on advice")):
    try:
        refused()
        raise AssertionError("nothing was refused")
    except allocrig.Error as error:
        assert why in str(error), error
hand.free(first)
assert hand.stats()["live_bytes"] == 0 and hand.stats()["largest_free_block_bytes"] > 2**19
hand.close()
hand.close()
try:
    hand.alloc(1)
    raise AssertionError("it is closed")
except ValueError as error:
    assert "closed" in str(error)
