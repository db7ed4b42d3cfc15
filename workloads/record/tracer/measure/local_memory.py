"""Where the driver places device memory before and after a kernel with LOCAL bytes of local memory for each thread.

    python3 local_memory.py [LOCAL[,LOCAL...]]...

For each argument a process: three allocations of 2 MiB, then for each LOCAL a kernel and 14 allocations of 2 to 300 MiB.
A line has what the kernel needs by its attributes, what the free memory of the card fell by, and the addresses in MiB
from the first allocation.
"""
import subprocess
import sys

MIB = 1 << 20
SOURCE = r"""
extern "C" __global__ void spill(int *out, int at)
{
    volatile unsigned char held[%d];
    for (int i = 0; i < %d; i += 64)
        held[i] = (unsigned char)(i + at);
    out[threadIdx.x] = held[(at * 7 + threadIdx.x) %% %d];
}
"""


def one(words):
    import cupy
    from cupy.cuda import runtime

    first = runtime.malloc(2 * MIB)

    def place(mib):
        return f"{(runtime.malloc(mib * MIB) - first) // MIB}:{mib}"

    print("local", words, "stack limit", runtime.deviceGetLimit(0), "free", runtime.memGetInfo()[0] // 1024)
    print("  start", *[place(mib) for mib in (2, 2, 12, 40)])
    for word in words.split(","):
        size = max(int(word), 1)
        kernel = cupy.RawKernel(SOURCE % (size, size, size), "spill")
        before = runtime.memGetInfo()[0]
        needs = kernel.local_size_bytes
        loaded = runtime.memGetInfo()[0]
        kernel((1,), (32,), (cupy.cuda.alloc(128), cupy.int32(3)))
        runtime.deviceSynchronize()
        after = runtime.memGetInfo()[0]
        print(f"  kernel {needs} loading {(before - loaded) // 1024} KiB launching {(loaded - after) // 1024} KiB:",
              *[place(mib) for mib in (2, 2, 2, 12, 12, 20, 20, 20, 40, 40, 100, 100, 100, 300)])


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        one(sys.argv[2])
        return
    for words in sys.argv[1:]:
        subprocess.run([sys.executable, __file__, "--one", words], check=False)


if __name__ == "__main__":
    main()
