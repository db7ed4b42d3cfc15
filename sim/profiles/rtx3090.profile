# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: rtx3090
card: NVIDIA GeForce RTX 3090
compute: 8.6
processors: 82
threads: 1536
link: shm
memory: deviceQuery, CUDA 12.1, 24238 MiB; with other drivers up to 24268 MiB; nvidia-smi 24576 MiB: github.com/noonghunna/club-3090/issues/390
total_bytes: 25414860800
usable_bytes: 24857542656
costs_of: h100
