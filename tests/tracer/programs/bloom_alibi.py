"""BLOOM of transformers, attention with slopes instead of positions: packed text with gradients accumulated, an 8-bit-like quantized copy of moments, then sampling with a cache, top p and several returned sequences."""
import torch
from torch import nn
from transformers import BloomConfig, BloomForCausalLM

torch.manual_seed(1018)
config = BloomConfig(vocab_size=20000, hidden_size=512, n_layer=8, n_head=8, hidden_dropout=0.1, attention_dropout=0.0, bos_token_id=1, eos_token_id=2, pad_token_id=3)
model = BloomForCausalLM(config).cuda()


class Small(torch.optim.Optimizer):
    """Adam whose moments are kept as bytes with a scale for each."""

    def __init__(self, params, lr=2e-4):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                s = self.state[p]
                if not s:
                    s["m"], s["v"] = torch.zeros_like(p, dtype=torch.int8), torch.zeros_like(p, dtype=torch.uint8)
                    s["ms"], s["vs"], s["t"] = p.new_ones(()), p.new_ones(()), 0
                s["t"] += 1
                m = s["m"].float().mul_(s["ms"] / 127).mul_(0.9).add_(p.grad, alpha=0.1)
                v = s["v"].float().mul_(s["vs"] / 255).mul_(0.99).addcmul_(p.grad, p.grad, value=0.01)
                s["ms"], s["vs"] = m.abs().amax() + 1e-12, v.amax() + 1e-12
                s["m"].copy_((m / s["ms"] * 127).round_())
                s["v"].copy_((v / s["vs"] * 255).round_())
                p.addcdiv_(m, v.sqrt_().add_(1e-8), value=-group["lr"])


optimizer = Small(model.parameters())
model.train()
for step in range(6):
    for part in range(2):
        ids = torch.randint(4, 20000, (6, 512 if (step + part) % 2 else 384)).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss / 2
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
model.eval()
for length in (48, 96):
    out = model.generate(torch.randint(4, 20000, (4, length), device="cuda"), max_new_tokens=40, min_new_tokens=40, do_sample=True, top_p=0.9, top_k=0, num_return_sequences=3)
    print(length, tuple(out.shape))
