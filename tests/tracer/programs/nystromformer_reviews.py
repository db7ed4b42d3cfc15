"""Reviews with transformers' Nystromformer: fused AdamW, bfloat16 autocast (it does not take weights of bfloat16), batches of 16, gradients clipped by their norm, an evaluation of other lengths at the end."""
import torch
from transformers import NystromformerConfig, NystromformerForSequenceClassification

torch.manual_seed(1409)
config = NystromformerConfig(vocab_size=20000, hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, max_position_embeddings=1024,
                             segment_means_seq_len=512, num_landmarks=64, conv_kernel_size=33, num_labels=5)
model = NystromformerForSequenceClassification(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 2e-4, weight_decay=0.01, fused=True)
model.train()
for step in range(6):
    ids, y = torch.randint(3, 20000, (16, 512)).cuda(), torch.randint(0, 5, (16,)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_ids=ids, labels=y).loss
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item(), norm.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for length in (256, 768, 1024):
        for layer in model.nystromformer.encoder.layer:
            layer.attention.self.seq_len = length
        out = model(input_ids=torch.randint(3, 20000, (16, length)).cuda())
        print(length, out.logits.argmax(1).float().mean().item())
