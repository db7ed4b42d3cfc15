"""transformers' ViT learns masked patches (SimMIM): a mask token, a convolution that draws pixels back, bfloat16 autocast, AdamW, then a classifier on top."""
import torch
import torch.nn.functional as F
from transformers import ViTConfig, ViTForImageClassification, ViTForMaskedImageModeling

torch.manual_seed(909)
config = ViTConfig(image_size=192, hidden_size=384, num_hidden_layers=8, num_attention_heads=6, intermediate_size=1536, encoder_stride=16, num_labels=30)
model = ViTForMaskedImageModeling(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 2e-4)
for step in range(5):
    x, mask = torch.randn(64, 3, 192, 192).cuda(), (torch.rand(64, 144) < 0.6).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(pixel_values=x, bool_masked_pos=mask).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
classifier = ViTForImageClassification(config).cuda()
classifier.vit.load_state_dict(model.vit.state_dict(), strict=False)
del model, optimizer
optimizer = torch.optim.SGD(classifier.classifier.parameters(), 0.1)
for step in range(3):
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(classifier(pixel_values=torch.randn(96, 3, 192, 192).cuda()).logits.float(), torch.randint(0, 30, (96,)).cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
