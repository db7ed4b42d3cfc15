"""A small Gemma 2 of transformers (windows in every second layer, capped scores): instructions with padding, the prompt without a loss, bfloat16 weights, checkpointed layers, gradients added over parts, then sampling."""
import torch
from transformers import Gemma2Config, Gemma2ForCausalLM, get_cosine_schedule_with_warmup

torch.manual_seed(1208)
config = Gemma2Config(vocab_size=64000, hidden_size=640, intermediate_size=2560, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4, head_dim=80, query_pre_attn_scalar=80, sliding_window=256, max_position_embeddings=2048, attn_implementation="eager")
model = Gemma2ForCausalLM(config).to(torch.bfloat16).cuda()
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
model.train()
optimizer = torch.optim.AdamW(model.parameters(), 1e-4, betas=(0.9, 0.95), fused=True)
rate = get_cosine_schedule_with_warmup(optimizer, 2, 20)


def batch(step, count=4):
    lengths = [180 + (97 * (step * count + i)) % 460 for i in range(count)]
    ids = torch.zeros(count, max(lengths), dtype=torch.long)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, -100)
    for i, n in enumerate(lengths):
        ids[i, :n] = torch.randint(5, 64000, (n,))
        mask[i, :n] = 1
        labels[i, n // 3:n] = ids[i, n // 3:n]
    return {k: v.cuda() for k, v in (("input_ids", ids), ("attention_mask", mask), ("labels", labels))}


for step in range(5):
    for part in range(2):
        loss = model(**batch(2 * step + part), use_cache=False).loss / 2
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    rate.step()
    optimizer.zero_grad()
    print(step, loss.item())
model.eval()
with torch.inference_mode():
    prompt = torch.randint(5, 64000, (6, 150), device="cuda")
    print(model.generate(prompt, max_new_tokens=16, min_new_tokens=16, do_sample=True, top_k=50).shape)
