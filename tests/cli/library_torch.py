"""allocrig.torch and allocrig.cupy with stand-ins for PyTorch, CuPy and the plug-in: what is switched, and the layout of
the answers. On a card tests/gpu/python.sh compares them with PyTorch's own."""
import ctypes
import os
import sys
import types

calls = []


class Inner:
    def __getattr__(self, name):
        if name.startswith("set_"):
            return lambda address: calls.append((name, address))
        raise AttributeError(name)


class Pluggable:
    def __init__(self, path, malloc, free):
        calls.append((path, malloc, free))

    def allocator(self):
        return Inner()


def refuse(*_):
    raise RuntimeError("not offered by the pluggable allocator")


torch = types.ModuleType("torch")
torch._C = types.SimpleNamespace(_cuda_memoryStats=refuse, _cuda_resetPeakMemoryStats=refuse, _cuda_memorySnapshot=refuse,
                                 _cuda_resetAccumulatedMemoryStats=refuse, _cuda_record_memory_history=refuse)
torch.cuda = types.SimpleNamespace(device_count=lambda: 1, memory=types.SimpleNamespace(
    CUDAPluggableAllocator=Pluggable, change_current_allocator=lambda allocator: calls.append(("changed",))))
sys.modules["torch"] = torch
cupy = types.ModuleType("cupy")
cupy.cuda = types.SimpleNamespace(
    CFunctionAllocator=lambda *given: types.SimpleNamespace(malloc=given), set_allocator=lambda malloc: calls.append(malloc))
sys.modules["cupy"] = cupy

import allocrig.cupy  # noqa: E402
import allocrig.torch  # noqa: E402
from allocrig import _plugin  # noqa: E402

figures = {"allocated_bytes.all.current": 512, "allocated_bytes.all.allocated": 2048, "num_ooms": 3}
ranges = [_plugin.Range(address=0x1000, bytes=512, requested_bytes=500, segment_address=0x1000, stream=None, state=0),
          _plugin.Range(address=0x1200, bytes=512, segment_address=0x1000, state=1),
          _plugin.Range(address=0x1400, bytes=1024, requested_bytes=1000, segment_address=0x1000, state=2),
          _plugin.Range(address=1 << 30, bytes=20 << 20, segment_address=1 << 30, stream=7, state=1,
                        pool=(ctypes.c_ulonglong * 2)(0, 5)),
          _plugin.Range(address=(1 << 30) + (20 << 20), bytes=1 << 30, segment_address=1 << 30, state=3),
          _plugin.Range(address=(1 << 30) + (1 << 31), bytes=2 << 20, segment_address=1 << 30, state=1)]
reset = []
_plugin.path = lambda: "plugin.so"
_plugin.address = lambda name: name
_plugin.library = lambda: types.SimpleNamespace(allocrig_reset_peaks=reset.append)
_plugin.statistics = lambda device: dict(figures)
_plugin.ranges = lambda device: ranges

allocrig.torch.use("vmm", stats="s.json", verbose=True)
assert os.environ["ALLOCRIG_POLICY"] == "vmm" and os.environ["ALLOCRIG_STATS"] == "s.json"
assert os.environ["ALLOCRIG_VERBOSE"] == "1" and "ALLOCRIG_TRACE" not in os.environ
assert calls[0] == ("plugin.so", "allocrig_malloc", "allocrig_free") and calls[-1] == ("changed",)
assert ("set_record_stream_fn", "allocrig_record_stream") in calls
allocrig.torch.use()  # again: nothing happens
allocrig.torch.use("vmm")
try:
    allocrig.torch.use("torch")
except RuntimeError as error:
    assert "vmm" in str(error)
else:
    raise AssertionError("another policy was taken")

stats = torch._C._cuda_memoryStats(0)
assert stats["allocated_bytes"]["all"]["current"] == 512 and stats["num_ooms"] == 3
assert set(stats["segment"]) == {"all", "small_pool", "large_pool"} and stats["max_split_size"] == -1
assert set(stats["oversize_segments"]) == {"current", "peak", "allocated", "freed"}
torch._C._cuda_resetPeakMemoryStats(0)
assert reset == [0]
torch._C._cuda_resetAccumulatedMemoryStats(0)
figures["allocated_bytes.all.allocated"] = 5000
after = torch._C._cuda_memoryStats(0)
assert after["allocated_bytes"]["all"]["allocated"] == 5000 - 2048 and after["num_ooms"] == 0
assert after["allocated_bytes"]["all"]["current"] == 512

snapshot = torch._C._cuda_memorySnapshot((0, 0))
assert snapshot["device_traces"] == [[]] and len(snapshot["segments"]) == 3
first, second, third = snapshot["segments"]
assert (first["total_size"], first["allocated_size"], first["active_size"]) == (2048, 512, 1536)
assert first["segment_type"] == "small" and not first["is_expandable"] and first["requested_size"] == 1500
assert [block["state"] for block in first["blocks"]] == ["active_allocated", "inactive", "active_pending_free"]
assert second["stream"] == 7 and second["segment_pool_id"] == (0, 5) and second["is_expandable"]
assert third["address"] == (1 << 30) + (1 << 31) and third["segment_type"] == "small" and second["segment_type"] == "large"

allocrig.cupy.use("growth", stream=9)
assert calls[-1][:3] == (9, "allocrig_cupy_malloc", "allocrig_cupy_free")
assert os.environ["ALLOCRIG_POLICY"] == "growth"
