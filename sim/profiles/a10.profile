# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: a10
card: NVIDIA A10
also: A10
compute: 8.6
processors: 72
threads: 1536
link: pcie
memory: vLLM's log says 22.06 GiB; the place is not kept
total_bytes: 23686742016
usable_bytes: 23129948160
costs_of: h100
