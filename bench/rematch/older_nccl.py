"""Runs a program with the collectives of an older release of PyTorch: what a block waits for before it is used again.

    older_nccl.py 2.0|2.3 PROGRAM [ARGUMENT..]

ProcessGroupNCCL up to PyTorch 2.7 runs the collectives of a group on a stream of its own and records their inputs and
outputs on it (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp). When the program frees such a block, it is not counted
as allocated any more, but it cannot be used again before that stream has passed the collective. The host is many
launches ahead, so such blocks pile up. From 2.2 on gathers and reduce-scatters are not recorded if the program waits for
them at once (pytorch#111431); from 2.8 on nothing is (pytorch#150398), and the program runs as it is.

As Megatron-LM does it (core_r0.8.0, pipeline_parallel/p2p_communication.py, `batch_p2p_sync`), the host waits for the
device after each send and receive between stages.
"""

import runpy
import sys

import torch
import torch.distributed as dist

WAITED_FOR = ("all_gather_into_tensor", "reduce_scatter_tensor")
OTHERS = ("all_reduce", "all_to_all_single", "send", "recv")


class Work:
    def __init__(self, here, done):
        self.here, self.done = here, done

    def wait(self):
        self.here.wait_event(self.done)


class Streams:
    def __init__(self, release):
        self.release, self.of_group = release, {}
        for name in WAITED_FOR + OTHERS:
            setattr(dist, name, self.wrapped(name, getattr(dist, name)))

    def wrapped(self, name, operation):
        def call(*arguments, group=None, async_op=False, **options):
            side = self.of_group.get(group) or torch.cuda.Stream()
            self.of_group[group] = side
            here = torch.cuda.current_stream()
            side.wait_stream(here)
            with torch.cuda.stream(side):
                operation(*arguments, group=group, **options)
                done = side.record_event()
            if async_op or self.release < (2, 2) or name not in WAITED_FOR:
                for tensor in filter(torch.is_tensor, arguments):
                    tensor.record_stream(side)
            work = Work(here, done)
            if async_op:
                return work
            work.wait()
            if name in ("send", "recv"):
                torch.cuda.synchronize()
            return None

        return call


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("2.0", "2.3"):
        sys.exit(__doc__.split("\n\n")[1].strip())
    Streams(tuple(int(n) for n in sys.argv[1].split(".")))
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
