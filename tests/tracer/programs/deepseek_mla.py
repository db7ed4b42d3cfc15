"""DeepSeek-V3 of transformers, small: latent attention, groups of experts and a shared one, in bfloat16 with AdamW in bfloat16, gradients accumulated, then text with a cache."""
import torch
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

torch.manual_seed(1306)
config = DeepseekV3Config(
    vocab_size=16000, hidden_size=768, intermediate_size=2048, moe_intermediate_size=384, num_hidden_layers=6, num_attention_heads=12, num_key_value_heads=12,
    n_shared_experts=1, n_routed_experts=16, n_group=4, topk_group=2, num_experts_per_tok=4, first_k_dense_replace=1, kv_lora_rank=128, q_lora_rank=256,
    qk_rope_head_dim=32, qk_nope_head_dim=64, v_head_dim=64, max_position_embeddings=2048, pad_token_id=0, bos_token_id=1, eos_token_id=2)
model = DeepseekV3ForCausalLM(config).to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), 2e-4, betas=(0.9, 0.95), weight_decay=0.1)
model.train()
for step in range(5):
    for part in range(2):
        ids = torch.randint(3, 16000, (4, 768)).cuda()
        loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        (loss / 2).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
model.eval()
with torch.inference_mode():
    out = model.generate(torch.randint(3, 16000, (6, 128)).cuda(), max_new_tokens=32, min_new_tokens=32, do_sample=True, top_k=50)
    print(out.shape)
