#!/usr/bin/env python3
"""Usage: undo.py SNAPSHOT CONF: undoing the entries from the end leads to nothing, as in the viewer; blocks fill their
segments; the settings are CONF."""
import pickle
import sys

with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
live = segments = 0
for segment in snapshot["segments"]:
    at = segment["address"]
    segments += segment["total_size"]
    for block in segment["blocks"]:
        assert block["address"] == at
        at += block["size"]
        live += block["requested_size"] if block["state"] != "inactive" else 0
    assert at == segment["address"] + segment["total_size"]
entries = snapshot["device_traces"][0]
assert len(entries) > 1000
for entry in reversed(entries):
    size = entry["size"]
    live += {"alloc": -size, "free_completed": size}.get(entry["action"], 0)
    segments += {"segment_alloc": -size, "segment_map": -size, "segment_free": size,
                 "segment_unmap": size}.get(entry["action"], 0)
assert live == 0 and segments == 0
assert snapshot["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] == sys.argv[2]
