# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: rtxpro6000
card: NVIDIA RTX PRO 6000 Blackwell Server Edition
also: NVIDIA RTX PRO 6000 Blackwell Workstation Edition; RTX PRO 6000
compute: 12.0
processors: 188
threads: 1536
link: pcie
memory: PyTorch's messages say 94.97 GiB, to many places
total_bytes: 101973258240
usable_bytes: 101416464384
costs_of: h100
