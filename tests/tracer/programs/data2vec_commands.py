"""Spoken commands with transformers' Data2Vec for sound: RMSprop with momentum, products of float32 in TF32, two parts of 24 a step, gradients clipped by their norm, averaged weights are evaluated."""
import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import Data2VecAudioConfig, Data2VecAudioForSequenceClassification

torch.manual_seed(1615)
np.random.seed(1615)
torch.set_float32_matmul_precision("high")
config = Data2VecAudioConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536, conv_dim=[256] * 7, num_labels=35)
model = Data2VecAudioForSequenceClassification(config).cuda()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
optimizer = torch.optim.RMSprop(model.parameters(), 1e-4, momentum=0.9)
model.train()
for step in range(5):
    total = 0.0
    for part in range(2):
        x, y = torch.randn(24, 16000 + 4000 * ((step + part) % 2)).cuda(), torch.randint(0, 35, (24,)).cuda()
        loss = model(input_values=x, labels=y).loss / 2
        loss.backward()
        total += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    average.update_parameters(model)
    print(step, total, norm.item())
average.eval()
with torch.no_grad():
    for _ in range(2):
        x, y = torch.randn(24, 16000).cuda(), torch.randint(0, 35, (24,)).cuda()
        print("right", (average(input_values=x).logits.argmax(1) == y).sum().item())
