"""Which operators of PyTorch make the driver move its local memory: python3 local_operators.py OUT.tsv

Each operator runs in a process of its own, whose tensors were copied to the card before, which launches no kernel. Then
the driver is asked for 200 MiB. OUT has the address, in MiB from the first segment of 2 MiB: -414 if the local memory
has moved, below all others if not. results/published/h200/addresses.md says what follows from it.
"""
import concurrent.futures as futures
import ctypes
import subprocess
import sys

OPERATORS = dict(line.split(": ", 1) for line in """
nothing: pass
zeros: torch.zeros(4096, device='cuda')
empty_fill: torch.empty(4096, device='cuda').fill_(1)
add: x + x
mul: x * 2
cast_half: x.half()
contiguous: x.t().contiguous()
clone: x.clone()
copy_host: x.cpu()
cat: torch.cat([x, x])
stack: torch.stack([x, x])
index_select: x.index_select(0, i)
embedding: F.embedding(i, x)
gather: x.gather(1, j)
scatter: x.scatter(1, j, 1.0)
index: x[i]
index_put: x.index_put_((i,), x.clone())
where: torch.where(m, x, x)
masked_fill: x.masked_fill(m, 0.0)
softmax: x.softmax(1)
log_softmax: x.log_softmax(1)
sum: x.sum()
sum_dim: x.sum(0)
mean: x.mean(1)
amax: x.amax(1)
argmax: x.argmax(1)
max_dim: x.max(1)
cumsum: x.cumsum(1)
sort: x.sort(1)
topk: x.topk(5)
arange: torch.arange(100, device='cuda')
randn: torch.randn(4096, device='cuda')
rand: torch.rand(4096, device='cuda')
randint: torch.randint(0, 5, (100,), device='cuda')
randperm: torch.randperm(1000, device='cuda')
bernoulli: torch.empty(4096, device='cuda').bernoulli_(0.5)
dropout: F.dropout(x, 0.1)
layer_norm: F.layer_norm(x, (256,))
rms_norm: F.rms_norm(x, (256,))
group_norm: F.group_norm(c, 4)
batch_norm: F.batch_norm(c, None, None, training=True)
batch_norm_native: torch.native_batch_norm(c, None, None, None, None, True, 0.1, 1e-5)
conv: F.conv2d(c, w)
conv_half: F.conv2d(c16, w16)
conv_depthwise: F.conv2d(c, wd, groups=16)
conv_transpose: F.conv_transpose2d(c, w)
mm: x @ x
mm_half: h @ h
bmm: torch.bmm(b, b)
linear: F.linear(x, x, v)
sdpa_half: F.scaled_dot_product_attention(q, q, q)
sdpa_causal: F.scaled_dot_product_attention(q, q, q, is_causal=True)
sdpa_float: F.scaled_dot_product_attention(q32, q32, q32)
gelu: F.gelu(x)
relu: x.relu()
tanh: x.tanh()
silu: F.silu(x)
exp: x.exp()
pow: x.pow(2)
pool: F.max_pool2d(c, 2)
avg_pool: F.avg_pool2d(c, 2)
adaptive_pool: F.adaptive_avg_pool2d(c, 1)
interpolate: F.interpolate(c, scale_factor=2)
pad: F.pad(c, (1, 1, 1, 1))
pad_reflect: F.pad(c, (1, 1, 1, 1), mode='reflect')
nll: F.nll_loss(x, i)
cross_entropy: F.cross_entropy(x, i)
mse: F.mse_loss(x, x)
eq: i == 3
any: m.any()
triu: x.triu()
flip: x.flip(0)
repeat: x.repeat(2, 1)
roll: x.roll(1, 0)
multinomial: x.abs().multinomial(1)
foreach_add: torch._foreach_add([x, x], 1.0)
foreach_norm: torch._foreach_norm([x, x])
fused_adam: torch._fused_adam_([x], [x.clone()], [x.clone()], [x.clone()], [], [one], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)
fft: torch.fft.rfft(x)
unique: i.unique()
nonzero: m.nonzero()
item: x[0, 0].item()
one_hot: F.one_hot(i)
bincount: i.bincount()
baddbmm: torch.baddbmm(b, b, b)
einsum: torch.einsum('ij,jk->ik', x, x)
""".strip().splitlines())
JOBS = 8


def measure(name):
    import torch
    import torch.nn.functional as F  # noqa: F401  the operators use it

    x, v = torch.randn(256, 256).cuda(), torch.randn(256).cuda()
    given = {"torch": torch, "F": F, "x": x, "v": v, "h": torch.randn(256, 256).half().cuda(),
             "i": torch.randint(0, 255, (256,)).cuda(), "j": torch.randint(0, 255, (256, 4)).cuda(),
             "m": (torch.randn(256, 256) > 0).cuda(), "c": torch.randn(4, 16, 16, 16).cuda(),
             "c16": torch.randn(4, 16, 16, 16).half().cuda(), "w": torch.randn(16, 16, 3, 3).cuda(),
             "w16": torch.randn(16, 16, 3, 3).half().cuda(), "wd": torch.randn(16, 1, 3, 3).cuda(),
             "b": torch.randn(4, 64, 64).cuda(), "q": torch.randn(2, 4, 64, 64).half().cuda(),
             "q32": torch.randn(2, 4, 64, 64).cuda(), "one": torch.tensor(1.0).cuda()}
    with open("/proc/self/maps") as f:
        runtime = ctypes.CDLL(next(line.split()[-1] for line in f if "libcudart.so" in line))

    def place(mib):
        address = ctypes.c_void_p()
        if runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(mib << 20)):
            raise MemoryError(mib)
        return ((address.value or 0) - (x.data_ptr() >> 21 << 21)) >> 20

    place(40)
    exec(OPERATORS[name], given)
    torch.cuda.synchronize()
    print(place(200))


def run(name):
    done = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True)
    return f"{name}\t{OPERATORS[name]}\t{done.stdout.strip() or 'failed'}\n"


def main():
    if sys.argv[1] == "--one":
        measure(sys.argv[2])
        return
    with futures.ThreadPoolExecutor(JOBS) as pool, open(sys.argv[1], "w") as out:
        out.write("operator\tcalled as\t200 MiB at\n")
        out.writelines(pool.map(run, OPERATORS))


if __name__ == "__main__":
    main()
