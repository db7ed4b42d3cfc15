"""Segmentation with transformers' SegFormer: random crops, bfloat16 autocast, polynomial schedule, then whole pictures and a confusion matrix."""
import torch
import torch.nn.functional as F
from transformers import SegformerConfig, SegformerForSemanticSegmentation

torch.manual_seed(809)
model = SegformerForSemanticSegmentation(SegformerConfig(num_labels=19, depths=[2, 2, 2, 2], hidden_sizes=[32, 64, 160, 256])).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-5)
schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, 40, 1.0)
model.train()
for step in range(6):
    big, labels = torch.rand(6, 3, 600, 900), torch.randint(0, 20, (6, 600, 900))
    labels[labels == 19] = 255
    y, x = int(torch.randint(0, 88, ())), int(torch.randint(0, 388, ()))
    image, label = big[:, :, y : y + 512, x : x + 512].cuda(), labels[:, y : y + 512, x : x + 512].cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(pixel_values=image, labels=label).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    print(step, loss.item())
model.eval()
confusion = torch.zeros(19, 19, dtype=torch.long, device="cuda")
with torch.no_grad():
    for _ in range(2):
        image, label = torch.rand(2, 3, 512, 1024).cuda(), torch.randint(0, 19, (2, 512, 1024)).cuda()
        logits = F.interpolate(model(pixel_values=image).logits, size=label.shape[1:], mode="bilinear", align_corners=False)
        guess = logits.argmax(1)
        confusion += torch.bincount((label * 19 + guess).flatten(), minlength=361).view(19, 19)
print(confusion.sum().item())
