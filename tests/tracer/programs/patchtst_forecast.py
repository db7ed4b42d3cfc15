"""PatchTST of transformers: many series at once, a Student's t as the head, Adam with one cycle, early stopping on a validation, then samples of forecasts."""
import copy

import torch
from transformers import PatchTSTConfig, PatchTSTForPrediction

torch.manual_seed(1213)
config = PatchTSTConfig(num_input_channels=21, context_length=512, prediction_length=96, patch_length=16, patch_stride=8, d_model=128, num_hidden_layers=4, num_attention_heads=8, ffn_dim=512, loss="nll", distribution_output="student_t", num_parallel_samples=50, scaling="std", channel_attention=False)
model = PatchTSTForPrediction(config).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=12)
t = torch.arange(4000)[:, None] / torch.linspace(12, 200, 21)[None]
series = t.sin() + 0.3 * torch.randn(4000, 21)


def windows(n):
    start = torch.randint(0, 4000 - 608, (n,))
    w = series[start[:, None] + torch.arange(608)]
    return w[:, :512].cuda(), w[:, 512:].cuda()


best, kept = None, None
for epoch in range(3):
    model.train()
    for step in range(4):
        past, future = windows(48)
        loss = model(past_values=past, future_values=future).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rate.step()
    model.eval()
    with torch.no_grad():
        value = sum(model(past_values=p, future_values=f).loss.item() for p, f in (windows(64), windows(64)))
    if epoch == 0 or value < best:
        best, kept = value, copy.deepcopy(model.state_dict())
    print(epoch, loss.item(), value)
model.load_state_dict(kept)
with torch.no_grad():
    print(model.generate(past_values=windows(32)[0]).sequences.mean(1).shape)
