# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: h200
card: NVIDIA H200
also: H200 NVL; H200 SXM; H200 141GB HBM3e
memory: PyTorch says total_memory 143156 MiB and 139.80 GiB, nvidia-smi 143771 MiB: github.com/NVIDIA/cuda-samples/issues/311
total_bytes: 150109945856
usable_bytes: 149552103424
costs_of: h100
