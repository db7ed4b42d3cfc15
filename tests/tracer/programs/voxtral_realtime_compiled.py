"""Speech to text while it is spoken with transformers' Voxtral Realtime, compiled, with checkpointing: AdamW, bfloat16 autocast, batches of 32."""
import torch
from transformers import VoxtralRealtimeConfig, VoxtralRealtimeForConditionalGeneration

torch.manual_seed(1413)
config = VoxtralRealtimeConfig(
    audio_config={"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 3, "num_attention_heads": 6, "head_dim": 64, "num_mel_bins": 80, "sliding_window": 96},
    text_config={"vocab_size": 12000, "hidden_size": 384, "intermediate_size": 1152, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 64,
                 "max_position_embeddings": 1024, "sliding_window": 256})
model = VoxtralRealtimeForConditionalGeneration(config).cuda()
model.gradient_checkpointing_enable()
fast = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
model.train()
for step in range(5):
    mel, ids = torch.randn(32, 80, 640).cuda(), torch.randint(3, 12000, (32, 80)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = fast(input_features=mel, input_ids=ids, labels=ids, num_delay_tokens=6, use_cache=False).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
