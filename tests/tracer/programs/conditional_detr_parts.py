"""Boxes with transformers' Conditional DETR on a ResNet-50 of timm: Adafactor, products of float32 in TF32, four parts of 24 padded pictures a step, gradients kept as zeros."""
import torch
from transformers import ConditionalDetrConfig, ConditionalDetrForObjectDetection

torch.manual_seed(1514)
torch.set_float32_matmul_precision("high")
config = ConditionalDetrConfig(num_queries=100, encoder_layers=4, decoder_layers=4, encoder_ffn_dim=1024, decoder_ffn_dim=1024, auxiliary_loss=True, num_labels=25)
model = ConditionalDetrForObjectDetection(config).cuda()
optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-3)
model.train()
for step in range(3):
    optimizer.zero_grad(set_to_none=False)
    for part in range(4):
        x, mask, labels = torch.zeros(24, 3, 224, 288), torch.zeros(24, 224, 288, dtype=torch.long), []
        for k in range(24):
            high, wide, n = 224 - 16 * ((k + part) % 3), 288 - 24 * (k % 4), 1 + (k + step) % 5
            x[k, :, :high, :wide], mask[k, :high, :wide] = torch.randn(3, high, wide), 1
            boxes = torch.cat([0.3 + 0.4 * torch.rand(n, 2), 0.1 + 0.3 * torch.rand(n, 2)], 1)
            labels.append({"class_labels": torch.randint(0, 25, (n,)).cuda(), "boxes": boxes.cuda()})
        loss = model(pixel_values=x.cuda(), pixel_mask=mask.cuda(), labels=labels).loss / 4
        loss.backward()
    optimizer.step()
    print(step, 4 * loss.item())
