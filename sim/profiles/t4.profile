# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: t4
card: Tesla T4
also: T4; NVIDIA T4
compute: 7.5
processors: 40
threads: 1024
link: pcie
memory: vLLM's log says 14.74 GiB; the place is not kept
total_bytes: 15826952192
usable_bytes: 15270158336
costs_of: h100
