"""Kinds of pictures with transformers' CvT in channels last, each layer with checkpointing: NAdam, float32, batches of 32, gradients kept as zeros, averaged weights are evaluated."""
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint
from transformers import CvtConfig, CvtForImageClassification

torch.manual_seed(1612)


class Again(nn.Module):
    """Computes a layer again in the backward pass; CvT has no such option."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, high, wide):
        return checkpoint(self.layer, x, high, wide, use_reentrant=False) if self.training else self.layer(x, high, wide)


model = CvtForImageClassification(CvtConfig(depth=[1, 2, 6], num_labels=90)).to("cuda", memory_format=torch.channels_last)
for stage in model.cvt.encoder.stages:
    stage.layers = nn.Sequential(*(Again(layer) for layer in stage.layers))
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.NAdam(model.parameters(), 5e-4)
model.train()
for step in range(4):
    x = torch.randn(32, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
    optimizer.zero_grad(set_to_none=False)
    loss = model(pixel_values=x, labels=torch.randint(0, 90, (32,)).cuda()).loss
    loss.backward()
    optimizer.step()
    average.update_parameters(model)
    print(step, loss.item())
average.eval()
with torch.no_grad():
    for _ in range(2):
        x = torch.randn(32, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
        print("kinds", average(pixel_values=x).logits.argmax(1).unique().numel())
