# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: b300
card: NVIDIA B300 SXM6 AC
also: B300; B300 SXM; HGX B300
compute: 10.3
processors: 148
threads: 2048
link: nvlink
memory: vLLM's log says 267.69 GiB; the place is not kept
total_bytes: 287429947392
usable_bytes: 286873153536
costs_of: h100
