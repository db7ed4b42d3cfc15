#!/bin/bash
# One rank of programs of torch.distributed, traced without the other ranks; and the rule for NCCL's own bytes.
# shellcheck disable=SC2317 # functions are called by `check`
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
[ -n "$(command -v python3)" ] || { echo "skip distributed: python3 is not installed" && exit 0; }
python3 tests/tracer/nccl_rule.py
python=${ALLOCRIG_PYTHON:-python3}
if ! "$python" -c 'import torch.distributed as d; raise SystemExit(not d.is_available())' 2>/dev/null; then
    echo "skip distributed: torch is not installed for $python (ALLOCRIG_PYTHON names another one)"
    finish
fi
"$python" -c 'import torch; raise SystemExit(not hasattr(torch._C, "_ensureCUDADeviceGuardSet"))' || {
    echo "skip distributed: this release of PyTorch is too old for programs of several ranks" && finish
}
trace=$TEST_TMP/rank.trace
export TMPDIR=$TEST_TMP ALLOCRIG_TRACE_RECEIVES=6x1024
run trace -o "$trace" --rank 1 --world 4 -- "$python" tests/tracer/distributed_program.py
check a_rank_is_traced [ "$status" = 0 ]
[ "$status" = 0 ] || tail -n 5 "$err"
python3 tests/tracer/check_distributed.py "$trace" "$out"
check bytes_by_rule grep -qE '^!,traced,rule,nccl,[0-9]+,[0-9]+$' "$trace"

# ---- programs that start their own processes run the rank in theirs

cat >"$TEST_TMP/ranks.py" <<'END'
import os
import sys

import torch


def train(rank, world):
    torch.distributed.init_process_group("nccl", rank=rank, world_size=world)
    torch.cuda.set_device(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).to(rank), device_ids=[rank])
    model(torch.randn(4, 64, device=rank)).sum().backward()
    print(torch.distributed.get_rank(), torch.distributed.get_world_size())


if __name__ == "__main__":
    if "spawn" in sys.argv:
        torch.multiprocessing.spawn(train, args=(4,), nprocs=4)
    else:
        train(int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]))
END
same() { cmp <(grep -v '^[#!]' "$trace") <(grep -v '^[#!]' "$TEST_TMP/$1.trace"); }
run trace -o "$trace" --rank 2 --world 4 -- "$python" "$TEST_TMP/ranks.py"
check the_script_itself [ "$(cat "$out")" = "2 4" ]
run trace -o "$TEST_TMP/spawn.trace" --rank 2 --world 4 -- "$python" "$TEST_TMP/ranks.py" spawn
check spawned_ranks same spawn
run trace -o "$TEST_TMP/torchrun.trace" --rank 2 --world 4 -- "$python" -m torch.distributed.run --nproc-per-node 4 "$TEST_TMP/ranks.py"
check torchrun same torchrun
unset ALLOCRIG_TRACE_RECEIVES
cat >"$TEST_TMP/receives.py" <<'END'
import torch.distributed as dist

dist.init_process_group()
dist.recv_object_list([None], src=0)
END
run trace -o "$trace" --rank 1 --world 2 -- "$python" "$TEST_TMP/receives.py"
check an_unknown_object grep -q 'rank 1 receives an object of another rank, which is not known: set ALLOCRIG_TRACE_RECEIVES' "$err"
finish
