"""Summaries of long texts with transformers' LongT5 (transient global attention), compiled, with checkpointing: AdamW, bfloat16 autocast, batches of 32."""
import torch
from transformers import LongT5Config, LongT5ForConditionalGeneration

torch.manual_seed(1413)
config = LongT5Config(vocab_size=12000, d_model=384, d_kv=64, d_ff=1024, num_layers=3, num_decoder_layers=2, num_heads=6, local_radius=63, global_block_size=16,
                      encoder_attention_type="transient-global", feed_forward_proj="gated-gelu", decoder_start_token_id=0)
model = LongT5ForConditionalGeneration(config).cuda()
model.gradient_checkpointing_enable()
fast = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
model.train()
for step in range(5):
    ids, labels = torch.randint(2, 12000, (32, 512)).cuda(), torch.randint(2, 12000, (32, 64)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = fast(input_ids=ids, labels=labels, use_cache=False).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
