#!/bin/bash
# The kernels of device cuda, run by the host: the tests that a card gets, on a driver that runs
# the kernels' own source. What takes a card's time is skipped there.
set -u
build=.build/$TEST_VARIANT/tests
if [ "$TEST_VARIANT" != release ]; then
    echo "skip kernels: the threads of a block are contexts, which sanitizers do not follow"
    exit 0
fi
if [ ! -e "$build/kernels_on_host/libcuda.so.1" ]; then
    echo "skip kernels: built without a CUDA toolkit"
    exit 0
fi
status=0
for program in test_kernels test_kernel_ops; do
    LD_LIBRARY_PATH=$build/kernels_on_host "$build/gpu/$program" || status=1
done
exit $status
