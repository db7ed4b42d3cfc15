# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: gb10
card: NVIDIA GB10
also: GB10; DGX Spark
memory: memory of the system, which the processor shares: github.com/leptonai/gpud/pull/1170; deviceQuery 122570 MiB; with other firmware 121.69 GiB
total_bytes: 128501256192
usable_bytes: 127943049216
costs_of: h100
