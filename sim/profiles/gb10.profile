# allocrig-profile 1
# The memory is the system's: total_bytes is what an agent reported from it, usable_bytes what was free for CUDA on
# idle systems (101.3 to 102.2 GiB: github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks/issues/47). What the
# processor uses is not free for the GPU.
# Assumed, not measured: the costs of driver calls.
name: gb10
card: NVIDIA GB10
also: GB10; DGX Spark
compute: 12.1
processors: 48
threads: 1536
link: shm
memory: memory of the system, which the processor shares: github.com/leptonai/gpud/pull/1170; deviceQuery 122570 MiB; with other firmware 121.69 GiB
total_bytes: 128501256192
usable_bytes: 108768788480
costs_of: h100
