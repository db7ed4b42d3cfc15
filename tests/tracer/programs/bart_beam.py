"""BART: a few steps of training with labels, then beam search, contrastive lengths, several returned sequences."""
import torch
from transformers import BartConfig, BartForConditionalGeneration

torch.manual_seed(45)
config = BartConfig(vocab_size=30000, d_model=768, encoder_layers=4, decoder_layers=4, encoder_ffn_dim=3072,
                    decoder_ffn_dim=3072, encoder_attention_heads=12, decoder_attention_heads=12)
model = BartForConditionalGeneration(config).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, nesterov=True)
model.train()
for step in range(4):
    ids = torch.randint(4, 30000, (12, 300 + 50 * step), device="cuda")
    labels = torch.randint(4, 30000, (12, 120), device="cuda")
    loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
model.eval()
for batch, source in ((8, 500), (16, 250)):
    ids = torch.randint(4, 30000, (batch, source), device="cuda")
    out = model.generate(ids, attention_mask=torch.ones_like(ids), num_beams=4, num_return_sequences=2,
                         max_new_tokens=30, min_new_tokens=30, no_repeat_ngram_size=0)
    print(tuple(out.shape))
