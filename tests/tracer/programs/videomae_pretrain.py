"""Clips that are nine tenths hidden: VideoMAE of transformers with tubes as a mask, AdamW, bfloat16, gradients of two parts, then the encoder alone classifies."""
import torch
import torch.nn.functional as F
from torch import nn
from transformers import VideoMAEConfig, VideoMAEForPreTraining

torch.manual_seed(1312)
config = VideoMAEConfig(
    image_size=112, patch_size=16, num_frames=16, tubelet_size=2, hidden_size=512, num_hidden_layers=8, num_attention_heads=8, intermediate_size=2048,
    decoder_num_attention_heads=4, decoder_hidden_size=256, decoder_num_hidden_layers=4, decoder_intermediate_size=1024)
model = VideoMAEForPreTraining(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1.5e-4, betas=(0.9, 0.95), weight_decay=0.05)
model.train()
for step in range(6):
    for part in range(2):
        x = torch.rand(20, 16, 3, 112, 112).cuda()
        mask = torch.zeros(20, 49, dtype=torch.bool)
        for row in mask:
            row[torch.randperm(49)[:44]] = True
        mask = mask[:, None].expand(-1, 8, -1).flatten(1).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(pixel_values=x, bool_masked_pos=mask).loss / 2
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
del optimizer
head = nn.Linear(512, 50).cuda()
probe = torch.optim.SGD(head.parameters(), 0.1)
encoder = model.videomae.eval()
for step in range(3):
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        features = encoder(torch.rand(16, 16, 3, 112, 112).cuda()).last_hidden_state.mean(1)
    loss = F.cross_entropy(head(features.float()), torch.randint(0, 50, (16,)).cuda())
    probe.zero_grad()
    loss.backward()
    probe.step()
    print(loss.item())
