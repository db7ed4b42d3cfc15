# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: l4
card: NVIDIA L4
compute: 8.9
processors: 58
threads: 1536
link: pcie
memory: deviceQuery, CUDA 12.2: github.com/bottlerocket-os/bottlerocket-kernel-kit/pull/139
total_bytes: 23583784960
usable_bytes: 23026728960
costs_of: h100
