"""Generation of transformers with three caches: one that grows, a static one, one that lies in host memory."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(37)
config = LlamaConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=10,
                     num_attention_heads=16, num_key_value_heads=4, max_position_embeddings=4096, pad_token_id=0)
model = LlamaForCausalLM(config).to(device="cuda", dtype=torch.bfloat16).eval()
for batch, prompt, new, options in (
    (8, 600, 24, {}),
    (8, 600, 24, {"cache_implementation": "static", "disable_compile": True}),
    (4, 1000, 16, {"cache_implementation": "offloaded"}),
    (16, 300, 32, {"do_sample": True, "top_k": 50, "top_p": 0.9}),
):
    ids = torch.randint(3, 32000, (batch, prompt), device="cuda")
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, min_new_tokens=new, **options)
    torch.cuda.synchronize()
    print(tuple(out.shape))
