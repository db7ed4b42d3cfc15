"""Scenes in parts with transformers' Data2Vec for pictures and checkpointing: SGD with Nesterov momentum, float32, each epoch ends with a small batch, an evaluation with a larger batch at the end."""
import torch
from transformers import Data2VecVisionConfig, Data2VecVisionForSemanticSegmentation

torch.manual_seed(1511)
config = Data2VecVisionConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536, image_size=256, use_relative_position_bias=True, num_labels=40)
model = Data2VecVisionForSemanticSegmentation(config).cuda()
model.gradient_checkpointing_enable()
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True)
model.train()
for epoch in range(2):
    for batch in (16, 16, 16, 5):
        x, y = torch.randn(batch, 3, 256, 256).cuda(), torch.randint(0, 40, (batch, 256, 256))
        y[:, :, :6] = 255
        loss = model(pixel_values=x, labels=y.cuda()).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
model.eval()
with torch.no_grad():
    for _ in range(2):
        print(model(pixel_values=torch.randn(40, 3, 256, 256).cuda()).logits.argmax(1).float().mean().item())
