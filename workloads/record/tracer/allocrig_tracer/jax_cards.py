"""What XLA must know of a card to compile for it without the card (its `GpuTargetConfigProto`).

Figures are those that CUDA reports for the card (cudaGetDeviceProperties, deviceQuery); bandwidth and clock are those
of the data sheets. They decide how XLA fuses and tiles, and the memory that its scheduler aims at.
"""

# part of the name: multiprocessors, FP32 units and threads and bytes of shared memory of one, bytes of shared memory
# that a block may ask for, bytes of L2 cache, GHz, GB/s, dense TFLOP/s of bf16 (fp16 before Ampere)
CARDS = (
    ("GH200", 132, 128, 2048, 233472, 232448, 52428800, 1.98, 4000, 989),
    ("H200", 132, 128, 2048, 233472, 232448, 62914560, 1.98, 4814, 989),
    ("H100 PCIe", 114, 128, 2048, 233472, 232448, 52428800, 1.755, 2039, 756),
    ("H100", 132, 128, 2048, 233472, 232448, 52428800, 1.98, 3352, 989),
    ("A100-SXM4-40", 108, 64, 2048, 167936, 166912, 41943040, 1.41, 1555, 312),
    ("A100", 108, 64, 2048, 167936, 166912, 41943040, 1.41, 2039, 312),
    ("B200", 148, 128, 2048, 233472, 232448, 132644864, 1.965, 7672, 2250),
    ("L40S", 142, 128, 1536, 102400, 101376, 100663296, 2.52, 864, 362),
    ("L40", 142, 128, 1536, 102400, 101376, 100663296, 2.49, 864, 181),
    ("L4", 58, 128, 1536, 102400, 101376, 50331648, 2.04, 300, 121),
    ("A10G", 80, 128, 1536, 102400, 101376, 6291456, 1.71, 600, 70),
    ("A10", 72, 128, 1536, 102400, 101376, 6291456, 1.695, 600, 125),
    ("A6000", 84, 128, 1536, 102400, 101376, 6291456, 1.8, 768, 155),
    ("3090", 82, 128, 1536, 102400, 101376, 6291456, 1.695, 936, 71),
    ("4090", 128, 128, 1536, 102400, 101376, 75497472, 2.52, 1008, 165),
    ("5090", 170, 128, 1536, 102400, 101376, 100663296, 2.41, 1792, 210),
    ("GB10", 48, 128, 1536, 102400, 101376, 25165824, 2.42, 273, 62),
    ("V100", 80, 64, 2048, 98304, 98304, 6291456, 1.53, 898, 125),
    ("T4", 40, 64, 1024, 65536, 65536, 4194304, 1.59, 320, 65),
)


def find(name):
    """The line of a card; that of an H100 if the name is not known."""
    known = [card for card in CARDS if card[0] in name]
    return known[0] if known else next(card for card in CARDS if card[0] == "H100")


def target_config(name, memory_bytes, capability, cuda=(13, 0), cudnn=(9, 10)):
    """The card in the text form of XLA's proto. capability: "9.0"."""
    _, cores, units, threads, shared, shared_block, cache, clock, bandwidth, _ = find(name)
    major, _, minor = capability.partition(".")
    return f"""gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {shared}
  threads_per_core_limit: {threads}
  core_count: {cores}
  fpus_per_core: {units}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {bandwidth * 10**9}
  l2_cache_size: {cache}
  clock_rate_ghz: {clock}
  device_memory_size: {memory_bytes}
  shared_memory_per_block_optin: {shared_block}
  cuda_compute_capability {{
    major: {int(major)}
    minor: {int(minor or 0)}
  }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{
  major: {cudnn[0]}
  minor: {cudnn[1]}
}}
runtime_version {{
  major: {cuda[0]}
  minor: {cuda[1]}
}}
device_description_str: "{name}"
"""


def kernel_ns(name, flops, accessed_bytes):
    """The time of one execution by a roofline: half of the dense rate, 0.8 of the bandwidth, and at least 2 us."""
    *_, bandwidth, rate = find(name)
    return int(max(2000.0, flops / (rate * 500.0), accessed_bytes / (bandwidth * 0.8)))
