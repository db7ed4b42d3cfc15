"""Who speaks: WavLM of transformers with x-vectors and an additive margin, its convolutions frozen, padded recordings with a mask, bfloat16, RAdam."""
import numpy as np
import torch
from transformers import WavLMConfig, WavLMForXVector

torch.manual_seed(1311)
np.random.seed(1311)
config = WavLMConfig(
    hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, conv_dim=(256,) * 7, num_conv_pos_embeddings=64,
    tdnn_dim=(384, 384, 384, 384, 1200), xvector_output_dim=256, num_labels=300, layerdrop=0.0, use_weighted_layer_sum=True)
model = WavLMForXVector(config).cuda()
model.freeze_feature_encoder()
optimizer = torch.optim.RAdam([p for p in model.parameters() if p.requires_grad], 3e-4, weight_decay=1e-3)
model.train()
for step in range(6):
    lengths = torch.tensor([32000 + 1600 * ((5 * step + k) % 11) for k in range(12)])
    x = torch.randn(12, int(lengths.max()))
    mask = (torch.arange(x.shape[1])[None] < lengths[:, None]).long()
    y = torch.randint(0, 300, (12,))
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_values=(x * mask).cuda(), attention_mask=mask.cuda(), labels=y.cuda()).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
model.eval()
with torch.inference_mode():
    a, b = (model(input_values=torch.randn(8, 48000, device="cuda")).embeddings for _ in range(2))
    print(torch.cosine_similarity(a, b).mean().item())
