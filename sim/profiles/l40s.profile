# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: l40s
card: NVIDIA L40S
compute: 8.9
processors: 142
threads: 1536
link: pcie
memory: device query, CUDA 12.4, 45373 MiB: the page of crate cuda-device-query
total_bytes: 47576711168
usable_bytes: 47018147840
costs_of: h100
