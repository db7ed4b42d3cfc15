"""transformers' Qwen2 in bfloat16 that answers: prompts of several lengths padded on the left, greedy answers with a growing cache, then longer prompts one by one."""
import random

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

random.seed(906)
torch.manual_seed(906)
config = Qwen2Config(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16, num_key_value_heads=4, max_position_embeddings=2048)
model = Qwen2ForCausalLM(config).to("cuda", torch.bfloat16).eval()


@torch.no_grad()
def answers(prompts, words):
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(p)) + p for p in prompts]).cuda()
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts]).cuda()
    out = model.generate(ids, attention_mask=mask, max_new_tokens=words, min_new_tokens=words, do_sample=False, pad_token_id=0)
    return out[:, longest:].cpu()


def prompt(low, high):
    return [random.randrange(5, 32000) for _ in range(random.randrange(low, high))]


for batch in (16, 8, 24):
    print(answers([prompt(30, 300) for _ in range(batch)], 24).shape)
for _ in range(3):
    print(answers([prompt(800, 1600)], 16).shape)
