#!/usr/bin/env python3
"""Every layout of PyTorch's memory snapshots, made from snapshots of runs by leaving keys out, as the three kinds of
files that programs write. Each is read, each address and the state at the end are those of the run, and what is written
again as a snapshot is the same trace. The keys are those of PyTorch's torch/csrc/cuda/Module.cpp and memory_snapshot.cpp.
Usage: snapshot_layouts.py ALLOCRIG FOLDER [quick]"""
import gc
import json
import os
import pickle
import re
import subprocess
import sys

gc.disable()  # millions of values without cycles: looking for some takes a fifth of the time

PROGRAM, FOLDER = sys.argv[1:3]
QUICK = len(sys.argv) > 3
WHOLE = 1 if os.environ.get("TEST_SOAK") == "1" else 3
REQUESTED, HISTORY, POOLS, ADDRESSES, TIMES, SETTINGS, ANNOTATIONS, CONTEXT, METADATA, ENTRY_POOLS, SEGMENTS_ALONE = (
    1 << bit for bit in range(11))
OF_2_1 = REQUESTED | POOLS | ADDRESSES
OF_2_5 = OF_2_1 | TIMES | SETTINGS | ANNOTATIONS
OF_2_10 = OF_2_5 | CONTEXT | METADATA
LAYOUTS = {  # by the first version that wrote it
    "1.12": HISTORY | SEGMENTS_ALONE,
    "1.13": HISTORY,
    "2.0": REQUESTED | HISTORY,
    "2.1 in the making": REQUESTED | HISTORY | POOLS,
    "2.1": OF_2_1,
    "2.2": OF_2_1 | TIMES,
    "2.3": OF_2_1 | TIMES | SETTINGS,
    "2.5": OF_2_5,
    "2.7": OF_2_5 | CONTEXT,
    "2.10": OF_2_10,
    "behind 2.11": OF_2_10 | ENTRY_POOLS,
    "segments of 2.11": OF_2_10 | SEGMENTS_ALONE}
FORMS = {"pickle of C++": lambda value: pickle.dumps(value, 2), "pickle": lambda value: pickle.dumps(value, 4),
         "JSON": lambda value: json.dumps(value).encode()}
LIBRARY = "/usr/lib/python3/dist-packages/torch/nn/modules/module.py"
FRAMES = [{"name": "step", "filename": LIBRARY, "line": 7 + line} for line in range(64, 0, -1)]
PROGRAM_FRAME = {"name": "step", "filename": "/srv/job/train.py", "line": 7}


def layout(run, keys, dropped=0, completions=True, library_frames=0):
    """A run in a layout: without the first entries, perhaps without completed frees, as if they were not recorded."""
    def frames():
        return FRAMES[len(FRAMES) - library_frames:] + [PROGRAM_FRAME]

    def chosen(wanted):
        return {key: value() if callable(value) else value for key, condition, value in wanted if condition}

    def block(it):
        return chosen([("address", keys & ADDRESSES, it["address"]), ("size", True, it["size"]),
                       ("requested_size", keys & REQUESTED, it["requested_size"]), ("state", True, it["state"]),
                       ("frames", keys & ADDRESSES, frames),
                       ("history", keys & HISTORY and it["state"] != "inactive", lambda: [
                           {"addr": it["address"], "real_size": it["requested_size"], "frames": frames()}])])

    def segment(it):
        return chosen([(key, True, it[key]) for key in ("device", "address", "total_size", "allocated_size", "active_size")] +
                      [("requested_size", keys & REQUESTED, 0), ("stream", True, it["stream"]),
                       ("segment_type", True, it["segment_type"]), ("segment_pool_id", keys & POOLS, it["segment_pool_id"]),
                       ("is_expandable", keys & ADDRESSES, it["is_expandable"]), ("frames", keys & ADDRESSES, frames),
                       ("blocks", True, [block(one) for one in it["blocks"]])])

    def entry(it):
        place = "device_free" if it["action"] == "oom" else "addr"
        return chosen([("frames", not keys & TIMES, frames), ("action", True, it["action"]), (place, True, it[place]),
                       ("size", True, it["size"]), ("stream", True, it["stream"]),
                       ("time_us", keys & TIMES, 1700000000000000 + it["time_us"]), ("compile_context", keys & CONTEXT, "N/A"),
                       ("user_metadata", keys & METADATA, ""), ("pool_id", keys & ENTRY_POOLS, it["pool_id"]),
                       ("frames", keys & TIMES, frames)])

    segments = [segment(it) for it in run["segments"]]
    if keys & SEGMENTS_ALONE:
        return segments
    conf = run["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"]
    return chosen([
        ("segments", True, segments),
        ("device_traces", True, [[entry(it) for it in trace if completions or it["action"] != "free_completed"][dropped:]
                                 for trace in run["device_traces"]]),
        ("allocator_settings", keys & SETTINGS, {
            "PYTORCH_CUDA_ALLOC_CONF": conf, "expandable_segments": "expandable_segments:True" in conf,
            "a_setting_of_tomorrow": "x"}),
        ("external_annotations", keys & ANNOTATIONS, [
            {"name": it["name"], "stage": it["stage"], "device": it["device"], "time_us": 1700000000000000 + it["time_us"]}
            for it in run["external_annotations"]]),
        ("host_segments", keys & ENTRY_POOLS, []), ("host_traces", keys & ENTRY_POOLS, [[]])])


def path(name):
    return os.path.join(FOLDER, name)


def allocrig(*arguments):
    """What the program prints; "" if it fails."""
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(" ", *arguments, done.stderr.strip())
    return done.stdout if done.returncode == 0 else ""


def write(value, form="pickle", name="layout"):
    with open(path(name), "wb") as file:
        file.write(FORMS[form](value))
    return path(name)


def agrees(file, *options):
    """Each address, segment and block at the end is met, and there are some."""
    text = allocrig("fidelity", file, *options)
    met = [re.search(what + r" +([1-9]\d*) of +(\d+)  all agree", text) for what in ("requests and frees", "blocks at the end")]
    return all(found and found[1] == found[2] for found in met)


def hash_of(file):
    return re.search(r"^sha256 +\w+", allocrig("inspect", file), re.M)


def comes_back(file):
    allocrig("convert", file, path("again.pickle"))
    one, other = hash_of(file), hash_of(path("again.pickle"))
    return one and other and one[0] == other[0]


def events(file):
    """The lines of a trace, without its head."""
    allocrig("convert", file, path("text.txt"))
    with open(path("text.txt"), encoding="utf-8") as text:
        return [line for line in text.read().splitlines() if not line.startswith("#")]


def snapshot(policy, workload):
    frees = ["--frees", "recorded"] if ".csv" in workload else []
    assert allocrig("run", "-d", "sim", "-p", policy, "-w", workload, *frees, "--snapshot", path("run.pickle"))
    with open(path("run.pickle"), "rb") as file:
        return pickle.load(file)


def check(name, faults):
    print(f"{'not ok' if faults else 'ok'} {name}{': ' if faults else ''}{', '.join(map(str, faults))[:400]}")


def check_layouts(run, needed, share):
    """Of the layouts with these keys, in each form, whole and with two parts missing, one of so many."""
    cases = [(name, keys, form, part) for i, (name, keys) in enumerate(LAYOUTS.items()) for f, form in enumerate(FORMS)
             for part in range(3) if keys & needed == needed and (i + f + part) % share == 0]
    entries = len(run["device_traces"][0])
    for name, keys, form, part in cases:
        file = write(layout(run, keys, part * entries // 3), form)
        if not agrees(file) or not comes_back(file):
            yield f"{name}, {form}, {part} of 3 entries missing"


TAPE, STREAMS = "gradient_tape:steps=4", "workloads/data/side_streams.default.csv.gz"
tape, streams = snapshot("torch", TAPE), snapshot("torch", STREAMS)
check("every_layout_of_segments_is_met", [*check_layouts(tape, 0, 9 if QUICK else WHOLE), *check_layouts(streams, 0, 9 if QUICK else WHOLE)])
check("every_layout_of_growing_segments_is_met",
      list(check_layouts(snapshot("torch:expandable_segments=true", TAPE), ADDRESSES, 9 if QUICK else WHOLE)))
check("private_pools_are_met",
      list(check_layouts(snapshot("torch", "workloads/data/graphs.default.csv.gz"), 0, 9 if QUICK else WHOLE)))

twice = dict(streams, device_traces=2 * streams["device_traces"],
             segments=streams["segments"] + [dict(it, device=1) for it in streams["segments"]])
check("each_of_two_devices_is_met", [(name, device) for name, keys in LAYOUTS.items() for file in [write(layout(twice, keys))]
                                     for device in "01" if not agrees(file, "--device", device)])
check("frees_without_completions_are_met", [
    (name, part) for name, keys in LAYOUTS.items() for part in range(3)
    if not agrees(write(layout(tape, keys, part * len(tape["device_traces"][0]) // 4, completions=False)))])
check("annotations_stand_by_their_times", [
    name for name, keys in LAYOUTS.items()
    if events(write(layout(tape, keys))).count("m,step") != (4 if keys & ANNOTATIONS and not keys & SEGMENTS_ALONE else 0)])

with open(path("marks.trace"), "w", encoding="utf-8") as marks:
    marks.write("""# allocrig-trace 1
# recorder: torch 2.11.0
t,0
!,segment_alloc,2097152,2097152,0
m,fwd,stage=start
a,0,1024
!,alloc,2097152
m,fwd,stage=end
m,step
m,mine
m,other,device=1,stage=x
f,0
m,step,name=ProfilerStep#3
m,step_begins,name=step,stage=start
t,5000
a,1,512
!,alloc,2097152
!,annotate,2097152,packed
m,last
""")
allocrig("convert", marks.name, path("marks.pickle"))
wanted, got = events(marks.name), events(path("marks.pickle"))
check("marks_of_every_kind_come_back", [] if got[:len(wanted)] == wanted and got[len(wanted)].startswith("!,final") else got)

with open(path("marks.pickle"), "rb") as file:
    noted = [entry for entry in pickle.load(file)["device_traces"][0] if entry["user_metadata"]]
check("an_annotation_is_of_no_line", [entry for entry in noted if entry["frames"]] if noted else ["none"])

# ---- long ones -------------------------------------------------------------------------------------------------------


def peak_kib(file):
    with subprocess.Popen([PROGRAM, "convert", file, path("out.bin")], stdout=subprocess.DEVNULL) as process:
        return os.wait4(process.pid, 0)[2].ru_maxrss


long_run = snapshot("torch", "random:target=1GiB,max=8MiB,events=20000")
tagged = [line for line in events(write(layout(long_run, OF_2_10, library_frames=39))) if line.startswith("a,")]
check("frames_become_tags", [line for line in tagged if ",tag=train.py:" not in line] or [] if tagged else ["none"])
whole, part = (write(layout(long_run, OF_2_10, dropped), name=f"{dropped}.pickle") for dropped in (0, 20000))
reports = [allocrig("convert", file, path("out.bin")) for file in (whole, part)]
start, end, unmatched, double = ([int(re.search(rf"^  {what} +(\d+)", text, re.M)[1]) for text in reports] for what in (
    "live at the start", "live at the end", "unmatched frees", "double frees"))
check("a_head_that_is_missing_is_live_at_the_start", [] if start[0] == 0 < start[1] and end[0] == end[1] and unmatched[0] == 0
      < unmatched[1] < start[1] and double == [0, 0] and "Nothing was guessed" in reports[1] else reports)
if not QUICK:
    write(layout(snapshot("torch", "random:target=1GiB,max=8MiB,events=150000"), OF_2_10), name="many.pickle")
    few, many = (peak_kib(path(name)) for name in ("0.pickle", "many.pickle"))
    check("an_entry_takes_100_bytes", [] if many < few + 100 * 130000 // 1024 else [few, many])
