#!/usr/bin/env python3
"""The programs of workloads/data, without the code that recorded them: `recorded.py NAME`. Their figures on an NVIDIA H100 80GB
HBM3 are in workloads/data/NAME.*.json. Origin: recorded for this project; licence: Apache-2.0, like the rest of the repository."""
import random, sys, torch, torch.nn as nn
torch.manual_seed(0); random.seed(0); dev = "cuda"
def step(): pass
def gpt2_train():
    from transformers import GPT2Config, GPT2LMHeadModel
    m = GPT2LMHeadModel(GPT2Config(n_layer=12, n_embd=768, n_head=12)).to(dev); o = torch.optim.AdamW(m.parameters(), 1e-4)
    for i in range(12):
        x = torch.randint(0, 50257, (8, 512), device=dev)
        with torch.autocast("cuda", torch.bfloat16): l = m(input_ids=x, labels=x).loss
        l.backward(); o.step(); o.zero_grad(set_to_none=True); step()
def resnet50_train():
    import torchvision; torch.backends.cudnn.benchmark = True
    m = torchvision.models.resnet50().to(dev); o = torch.optim.SGD(m.parameters(), .1, momentum=.9); f = nn.CrossEntropyLoss()
    for i in range(12):
        b = 64 if i % 5 else 37
        l = f(m(torch.randn(b, 3, 224, 224, device=dev)), torch.randint(0, 1000, (b,), device=dev)); l.backward(); o.step(); o.zero_grad(set_to_none=True); step()
def dlrm_embedding():
    # tables that are made on first use, as a recommender grows its vocabulary
    tabs = nn.ModuleList(); bot = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 64)).to(dev); top = None; r = random.Random(1)
    for i in range(60):
        if i % 4 == 0 and len(tabs) < 14: tabs.append(nn.EmbeddingBag(int(10 ** r.uniform(4, 6.6)), 64, mode="sum", sparse=bool(r.random() < .5)).to(dev)); top = nn.Sequential(nn.Linear(64 * (len(tabs) + 1), 512), nn.ReLU(), nn.Linear(512, 1)).to(dev)
        b = r.choice([2048, 4096, 8192]); z = [bot(torch.randn(b, 13, device=dev))]
        for t in tabs: k = r.randrange(1, 20); z.append(t(torch.randint(0, t.num_embeddings, (b, k), device=dev)))
        l = top(torch.cat(z, 1)).sigmoid().mean(); l.backward()
        with torch.no_grad():
            for p in list(tabs.parameters()) + list(bot.parameters()) + list(top.parameters()):
                if p.grad is not None: p.grad = None
        step()
def lora_recompute():
    from transformers import LlamaConfig, LlamaForCausalLM; from peft import LoraConfig, get_peft_model
    m = LlamaForCausalLM(LlamaConfig(hidden_size=2048, intermediate_size=5504, num_hidden_layers=12, num_attention_heads=16, num_key_value_heads=16, vocab_size=32000)).to(dev, torch.bfloat16)
    m.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False}); m.enable_input_require_grads()
    m = get_peft_model(m, LoraConfig(r=8, target_modules=["q_proj", "v_proj"])); o = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], 1e-4)
    for i in range(16):
        x = torch.randint(0, 32000, (random.choice([2, 4]), random.randrange(200, 1500)), device=dev); l = m(input_ids=x, labels=x).loss; l.backward(); o.step(); o.zero_grad(set_to_none=True); step()
def tape_small():
    # the seeds' own examples: a 100x100 tape, and products whose inputs are dropped, many times over
    W = torch.randn(100, 100, device=dev, requires_grad=True); b = torch.zeros(100, device=dev, requires_grad=True)
    for i in range(300):
        x = torch.randn(100, 100, device=dev); y = x @ W + b; l = ((y - x) ** 2).sum(); l.backward(); W.grad = None; b.grad = None; step()
    for n in (100, 1000, 4000, 100, 8000, 333):
        for k in range(10): x1 = torch.randn(n, n, device=dev); x2 = torch.randn(n, n, device=dev); _ = x1 @ x1; _ = x2 @ x2; del x1, x2; x3 = torch.randn(n, n, device=dev); _ = x3 @ x3; step()
def streams_prefetch():
    s = torch.cuda.Stream(); m = nn.Sequential(*[nn.Sequential(nn.Linear(2048, 2048), nn.GELU()) for _ in range(12)]).to(dev)
    for i in range(60):
        with torch.cuda.stream(s): nx = torch.randn(random.choice([256, 1024, 4096]), 2048).pin_memory().to(dev, non_blocking=True)
        torch.cuda.current_stream().wait_stream(s); nx.record_stream(torch.cuda.current_stream()); m(nx).sum().backward(); m.zero_grad(set_to_none=True); step()
def side_streams():
    # blocks made on one stream, used on two others and dropped at once, while the card lags behind
    ss = [torch.cuda.Stream() for _ in range(3)]; r = random.Random(3); keep = []
    w = torch.randn(4096, 4096, device=dev)
    for i in range(250):
        with torch.cuda.stream(ss[i % 3]): x = torch.randn(r.choice([300, 1200, 2500, 4096]), 4096, device=dev); y = x @ w
        for o in r.sample(ss, 2): o.wait_stream(ss[i % 3]); y.record_stream(o)
        with torch.cuda.stream(ss[(i + 1) % 3]): z = (y @ w).relu_(); keep.append(z)
        del x, y
        if len(keep) > 6: keep.pop(r.randrange(len(keep)))
        step()
        if i % 50 == 49: torch.cuda.synchronize()
def graphs():
    m = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)]).to(dev); pool = None; gs = []
    for b in (1, 8, 64, 256, 1024):
        x = torch.randn(b, 1024, device=dev)
        with torch.no_grad():
            s = torch.cuda.Stream(); s.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(s): m(x)
            torch.cuda.current_stream().wait_stream(s); g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g, pool=pool): y = m(x)
        pool = g.pool(); gs.append((g, x, y)); [h[0].replay() for h in gs]; m(torch.randn(333, 1024, device=dev)).sum()
    del gs[1], g; torch.cuda.empty_cache(); m(torch.randn(5000, 1024, device=dev)).sum()
if __name__ == "__main__":
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
