# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: rtx5090
card: NVIDIA GeForce RTX 5090
compute: 12.0
processors: 170
threads: 1536
link: shm
memory: deviceQuery, CUDA 12.8: github.com/NVIDIA/nccl/issues/1637
total_bytes: 33680457728
usable_bytes: 33122418688
costs_of: h100
