# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: gb200
card: NVIDIA GB200
also: GB200
compute: 10.0
processors: 152
threads: 2048
link: nvlink
memory: PyTorch's message says 184.31 GiB: github.com/vllm-project/vllm/pull/43951
total_bytes: 197901352960
usable_bytes: 197344559104
costs_of: h100
