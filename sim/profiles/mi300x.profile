# allocrig-profile 1
# total_bytes is what the driver of such a card reported; `memory` names the report.
# Assumed, not measured: that the context of a process takes as much as on an H100 (556793856 bytes), so
# usable_bytes is the total without it; and the costs of driver calls.
name: mi300x
card: AMD Instinct MI300X
also: Instinct MI300X OAM; Instinct MI300X VF; Instinct MI300X-O; Instinct MI300X HF
memory: rocminfo, ROCm 6.3.3, 201310208 KiB: github.com/ROCm/legacy-rocm-build/issues/4414
total_bytes: 206141652992
usable_bytes: 205583810560
costs_of: h100
