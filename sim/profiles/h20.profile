# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: h20
card: NVIDIA H20
also: H20; H20 SXM
compute: 9.0
processors: 78
threads: 2048
link: nvlink
memory: 95.33 GiB, nvidia-smi 97871 MiB: a log of vLLM 0.19 in github.com/vllm-project/aibrix; other drivers 95.0 to 95.2 GiB
total_bytes: 102359805952
usable_bytes: 101803012096
costs_of: h100
