#!/bin/bash
# Random programs of PyTorch's own allocator, with a stand-in for the CUDA runtime: `fidelity` agrees with their snapshots
# by the address of every block. Needs PyTorch 2.11 for CUDA 13, whose packages bring the headers; no card.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
python=${ALLOCRIG_PYTHON:-python3}
headers=$("$python" -c 'import importlib.util as u, torch
assert torch.__version__.startswith("2.11.") and torch.version.cuda.startswith("13.")
print(list(u.find_spec("nvidia").submodule_search_locations)[0] + "/cu13/include")' 2>/dev/null)
if [ ! -e "$headers/cuda_runtime_api.h" ]; then
    echo "skip random: PyTorch 2.11 for CUDA 13 is not installed for $python (ALLOCRIG_PYTHON names another one)"
    exit 0
fi
if [ "$TEST_VARIANT" = san ]; then
    echo "skip random: the release build compares them"
    exit 0
fi
check stand_in_is_built "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O1 -w -shared -fPIC -I"$headers" -Wl,-soname,libcuda.so.1 \
    -o "$tmp/libcuda.so.1" tests/gpu/programs/cudart_stand_in.c

# FIRST COUNT: the programs of these seeds
compare() {
    STAND_IN=1 LD_PRELOAD=$tmp/libcuda.so.1 "$python" -W ignore tests/gpu/programs/random_recording.py "$tmp/$1" "$1" "$2" \
        >"$tmp/log" 2>&1
    check "recorded_$1" grep -q "^$2 recorded" "$tmp/log"
    for file in "$tmp/$1"/*.pickle; do
        run fidelity "$file"
        check "agrees_$(basename "$file" .pickle)" [ "$status" = 0 ]
    done
}
compare 7 24    # one setting each
compare 1001 20 # also pools in pools, threads, limits and settings that change in the middle
