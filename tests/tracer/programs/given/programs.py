#!/usr/bin/env python3
"""Four programs that were run on an NVIDIA H200 (driver 580.159.04, PyTorch 2.11.0+cu130, transformers 5.17); their figures are in
../../recorded.tsv and limits.tsv. `programs.py NAME` runs one; `tick()` ends a step. Seeds: random.seed(1), torch.manual_seed(1).
Origin: written for this project; licence: Apache-2.0, like the rest of the repository."""
import random, sys, time
import torch, torch.nn as nn, torch.nn.functional as F
dev = "cuda"
def tick(): torch.cuda.synchronize()
def moe_varlen():
    class E(nn.Module):
        def __init__(s): super().__init__(); s.a, s.b = nn.Linear(1024, 4096), nn.Linear(4096, 1024)
        def forward(s, x): return s.b(F.gelu(s.a(x)))
    L = nn.ModuleList([nn.ModuleList([E() for _ in range(8)]) for _ in range(4)]).to(dev, torch.bfloat16); G = nn.ModuleList([nn.Linear(1024, 8) for _ in range(4)]).to(dev, torch.bfloat16)
    o = torch.optim.AdamW(list(L.parameters()) + list(G.parameters()), 1e-4)
    for i in range(20):
        x = torch.randn(random.randrange(4000, 24000), 1024, device=dev, dtype=torch.bfloat16)
        for l, g in zip(L, G):
            k = (g(x) + torch.randn(8, device=dev, dtype=torch.bfloat16)).argmax(1); y = x.clone()
            for e in range(8):
                ix = (k == e).nonzero().squeeze(1)
                if ix.numel(): y = y.index_add(0, ix, l[e](x[ix]))
            x = y
        x.float().pow(2).mean().backward(); o.step(); o.zero_grad(set_to_none=True); del x, y; tick()
def kv_serve():
    live = {}; t = 0; W = torch.randn(2048, 2048, device=dev, dtype=torch.bfloat16)
    for i in range(400):
        while len(live) < 48: t += 1; n = random.randrange(64, 2048); live[t] = ([torch.randn(2, n, 1024, device=dev, dtype=torch.bfloat16) for _ in range(8)], random.randrange(20, 300))
        for s in list(live):
            kv, left = live[s]
            if i % 8 == 0: kv = [torch.cat([c, torch.randn(2, 8, 1024, device=dev, dtype=torch.bfloat16)], 1) for c in kv]
            live[s] = (kv, left - 1)
            if left <= 1: del live[s], kv
        (W @ W).sum();
        if i % 20 == 19: tick()
def bert_varlen():
    from transformers import BertConfig, BertForMaskedLM
    m = BertForMaskedLM(BertConfig(num_hidden_layers=6)).to(dev); o = torch.optim.AdamW(m.parameters(), 1e-4)
    for i in range(24):
        n = random.randrange(24, 513); b = random.choice([4, 8, 16, 24]); x = torch.randint(0, 30000, (b, n), device=dev)
        l = m(input_ids=x, labels=x).loss; l.backward(); o.step(); o.zero_grad(set_to_none=True); del l; tick()
def lora_recompute():
    from transformers import LlamaConfig, LlamaForCausalLM
    m = LlamaForCausalLM(LlamaConfig(hidden_size=1024, intermediate_size=2752, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=16, vocab_size=32000)).to(dev, torch.bfloat16)
    m.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False}); m.enable_input_require_grads(); o = torch.optim.SGD(m.parameters(), 1e-4)
    for i in range(12):
        x = torch.randint(0, 32000, (random.choice([2, 4]), random.randrange(200, 1500)), device=dev); l = m(input_ids=x, labels=x).loss; l.backward(); o.step(); o.zero_grad(set_to_none=True); del l; tick()
if __name__ == "__main__":
    random.seed(1); torch.manual_seed(1); globals()[sys.argv[1]]()
    print(sys.argv[1], "reserved MiB", torch.cuda.max_memory_reserved() >> 20, "live MiB", torch.cuda.max_memory_allocated() >> 20)
