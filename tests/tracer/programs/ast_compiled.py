"""Sounds with transformers' Audio Spectrogram Transformer, compiled, with checkpointing: AdamW tensor by tensor, products of float32 in TF32, batches of 24, an evaluation with a larger batch at the end."""
import torch
from transformers import ASTConfig, ASTForAudioClassification

torch.manual_seed(1414)
torch.set_float32_matmul_precision("high")
config = ASTConfig(hidden_size=384, num_hidden_layers=4, num_attention_heads=6, intermediate_size=1536, max_length=512, num_mel_bins=128, num_labels=50)
model = ASTForAudioClassification(config).cuda()
model.gradient_checkpointing_enable()
fast = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4, foreach=False)
model.train()
for step in range(5):
    x, y = torch.randn(24, 512, 128).cuda(), torch.randint(0, 50, (24,)).cuda()
    loss = fast(input_values=x, labels=y).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    for _ in range(2):
        print(fast(input_values=torch.randn(48, 512, 128).cuda()).logits.argmax(1).float().mean().item())
