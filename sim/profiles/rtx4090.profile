# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: rtx4090
card: NVIDIA GeForce RTX 4090
compute: 8.9
processors: 128
threads: 1536
link: shm
memory: deviceQuery, CUDA 13.0, 24081 MiB; PyTorch prints 23.52 to 23.68 GiB: github.com/zai-org/CogVideo/issues/36
total_bytes: 25250627584
usable_bytes: 24691867648
costs_of: h100
