# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: a100-40
card: NVIDIA A100-SXM4-40GB
also: A100-PCIE-40GB; A100-SXM-40GB; A100 PCIe 40GB
compute: 8.0
processors: 108
threads: 2048
link: nvlink
memory: deviceQuery, CUDA 12.2: github.com/bottlerocket-os/bottlerocket/pull/3873
total_bytes: 42298834944
usable_bytes: 41741713408
costs_of: h100
