"""transformers' Whisper (tiny): fine-tuned with a frozen encoder in float16 autocast, then text for several clips."""
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

torch.manual_seed(910)
config = WhisperConfig(vocab_size=10000, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536,
                       decoder_start_token_id=1, pad_token_id=0, bos_token_id=1, eos_token_id=2, suppress_tokens=None, begin_suppress_tokens=None)
model = WhisperForConditionalGeneration(config).cuda()
model.model.encoder.requires_grad_(False)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-4)
scaler = torch.amp.GradScaler("cuda", init_scale=256.0)
for step in range(5):
    mel, labels = torch.randn(8, 80, 3000).cuda(), torch.randint(3, 10000, (8, 40 + 12 * step)).cuda()
    with torch.autocast("cuda", torch.float16):
        loss = model(input_features=mel, labels=labels).loss
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    state = model.model.encoder(torch.randn(8, 80, 3000).cuda()).last_hidden_state
    ids, cache = torch.ones(8, 1, dtype=torch.long, device="cuda"), None
    for _ in range(30):
        out = model(encoder_outputs=(state,), decoder_input_ids=ids[:, -1:] if cache is not None else ids, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        ids = torch.cat([ids, out.logits[:, -1:].argmax(-1)], 1)
print(ids.shape)
