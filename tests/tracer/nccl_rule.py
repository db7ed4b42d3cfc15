"""Checks the rule for NCCL's own bytes (tracer/allocrig_tracer/nccl.py) with public figures. Needs no torch.

Figures: NVIDIA/nccl#964 (4 A100: 544 MiB for a group of two ranks, 688 MiB for more, NCCL without cuMem), #1685 (H100:
buffers of 10485760 and 2097152 bytes, 32 of each for a pair of GPUs), #2363 (NCCL 2.28.9: 64 channels for one rank).
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../workloads/record/tracer/allocrig_tracer"))
import nccl  # noqa: E402

MIB = 1 << 20


def check(name, got, wanted):
    print(f"ok nccl_{name}" if got == wanted else f"not ok nccl_{name}: {got}, wanted {wanted}")


def whole(size):
    """MiB of a size, without the small arrays that share pages if cuMem is off."""
    return size // MIB


os.environ["NCCL_CUMEM_ENABLE"] = "0"
a100 = nccl.Machine("NVIDIA A100-SXM4-80GB", 80, 4)
check("two_a100", whole(nccl.Communicator(a100, [0, 1], 0).start()), 544)
check("three_a100", whole(nccl.Communicator(a100, [0, 1, 2], 0).start()), 688)
check("four_a100", whole(nccl.Communicator(a100, [0, 1, 2, 3], 0).start()), 688)
del os.environ["NCCL_CUMEM_ENABLE"]

h100 = nccl.Machine("NVIDIA H100 80GB HBM3", 90, 8)
eight = nccl.Communicator(h100, range(8), 3)
check("buffers_of_a_pair", (eight.receive_size(4), eight.send_size(4), eight.p2p_per_peer), (10485760, 2097152, 32))
check("arrays_of_eight_h100", eight.start(), (32 * 3 + 2 + 16 + 1) * 2 * MIB)
check("a_second_start_takes_nothing", eight.start(), 0)
check("ring", eight.ring(), 24 * 12 * MIB)
check("a_small_all_reduce_uses_the_ring", eight.all_reduce(1), 0)
check("a_tree_adds_the_other_direction", eight.tree(), 24 * 12 * MIB)
check("nothing_twice", eight.ring() + eight.tree(), 0)
check("nvls", eight.all_reduce(64 * MIB), 16 * 2 * 8 * MIB)
check("all_to_all", eight.p2p(range(8), range(8)), 7 * 32 * 12 * MIB)
check("sends_after_it", eight.p2p((1,), (2,)), 0)
check("one_rank", nccl.Communicator(h100, [5], 5).start(), (64 * 3 + 2) * 2 * MIB)
check("counted", eight.bytes, (115 * 2 + 24 * 24 + 256 + 2688) * MIB)
two_nodes = nccl.Communicator(h100, range(16), 9)
check("channels_of_two_nodes", (two_nodes.channels, two_nodes.p2p_per_peer), (16, 2))
pcie = nccl.Communicator(nccl.Machine("NVIDIA L4", 89, 8), range(4), 0)
check("ring_over_pcie", pcie.ring(), 2 * 12 * MIB)
# nccl#2366: one rank on PCIe, 996 MiB without and 484 with connections at run time; several nodes share 128 KiB chunks
os.environ["NCCL_RUNTIME_CONNECT"] = "0"
alone = nccl.Communicator(nccl.Machine("NVIDIA GeForce RTX 3090", 86, 1), [0], 0)
check("shared_buffer_of_one_rank", alone.start() - (64 * 3 + 2) * 2 * MIB, (996 - 484) * MIB)
nodes = nccl.Communicator(nccl.Machine("NVIDIA H100 80GB HBM3", 90, 1), range(2), 0)
check("shared_buffer_of_two_nodes", nodes.start() - (4 * 3 + 2) * 2 * MIB - 4 * 2 * 10 * MIB, 8 * MIB)
del os.environ["NCCL_RUNTIME_CONNECT"]
os.environ["NCCL_BUFFSIZE"] = str(1 * MIB)
small = nccl.Communicator(nccl.Machine("NVIDIA H100 80GB HBM3", 90, 8), range(8), 0)
check("buffsize", small.receive_size(1), 8 * MIB)
