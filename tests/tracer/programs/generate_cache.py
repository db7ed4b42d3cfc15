"""Text generation with transformers: a Llama in float16, batches of padded prompts, greedy and sampled, a growing cache."""
import random

import torch
from transformers import LlamaConfig, LlamaForCausalLM

random.seed(16)
torch.manual_seed(16)
config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16,
                     num_key_value_heads=8, vocab_size=32000, max_position_embeddings=4096)
model = LlamaForCausalLM(config).half().cuda().eval()
model.generation_config.pad_token_id = 0
for request in range(8):
    batch, longest = random.choice([4, 16, 32, 48]), random.randrange(200, 1500)
    ids = torch.randint(3, 32000, (batch, longest))
    mask = torch.ones_like(ids)
    for row in range(batch):
        mask[row, :random.randrange(0, longest // 2)] = 0
    ids[mask == 0] = 0
    new = random.randrange(16, 64)
    with torch.no_grad():
        out = model.generate(input_ids=ids.cuda(), attention_mask=mask.cuda(), max_new_tokens=new, min_new_tokens=new,
                             do_sample=request % 2 == 1, top_k=50)
    print(request, batch, longest, tuple(out.shape))
