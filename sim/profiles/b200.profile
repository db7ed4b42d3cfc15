# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: b200
card: NVIDIA B200
also: B200 SXM; HGX B200
compute: 10.0
processors: 148
threads: 2048
link: nvlink
memory: PyTorch's messages and a device query say 178.35 GiB, to two places: github.com/pytorch/ao/pull/4002
total_bytes: 191501434880
usable_bytes: 190943592448
costs_of: h100
