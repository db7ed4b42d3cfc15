# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: a100-80
card: NVIDIA A100-SXM4-80GB
also: A100 80GB PCIe; A100-SXM-80GB; A100-PCIE-80GB; A100 80GB
compute: 8.0
processors: 108
threads: 2048
link: nvlink
memory: deviceQuery, CUDA 12.2, 81051 MiB; PyTorch prints 79.15 GiB, mixbench 81049 MiB: github.com/ekondis/mixbench/issues/47
total_bytes: 84987740160
usable_bytes: 84429242368
costs_of: h100
