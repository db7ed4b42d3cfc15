"""Summaries with a small Pegasus of transformers: Adafactor, labels with smoothing, batches by length, then greedy and sampled generation with a cache."""
import torch
import torch.nn.functional as F
from transformers import PegasusConfig, PegasusForConditionalGeneration
from transformers.optimization import Adafactor

torch.manual_seed(1109)
config = PegasusConfig(vocab_size=12000, d_model=384, encoder_layers=5, decoder_layers=5, encoder_attention_heads=6, decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536, max_position_embeddings=512)
model = PegasusForConditionalGeneration(config).cuda()
optimizer = Adafactor(model.parameters(), lr=1e-3, relative_step=False, scale_parameter=False)
for step in range(9):
    source, target = ((384, 64), (256, 48), (512, 96))[step % 3]
    ids = torch.randint(5, 12000, (12, source)).cuda()
    labels = torch.randint(5, 12000, (12, target))
    labels[6:, target // 2:] = -100
    labels = labels.cuda()
    logits = model(input_ids=ids, labels=labels).logits
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, source, loss.item())
model.eval()
ids = torch.randint(5, 12000, (16, 400), device="cuda")
with torch.inference_mode():
    out = model.generate(ids, max_new_tokens=24, min_new_tokens=24, do_sample=False, num_beams=1)
    print(out.shape)
    out = model.generate(ids[:8], max_new_tokens=16, min_new_tokens=16, do_sample=True, top_k=20, num_beams=1)
    print(out.shape)
