"""Scenes in parts with transformers' TIPSv2 and DPT in bfloat16 weights: RMSprop with momentum, four parts of 8 a step, gradients clipped by value, an evaluation of other sizes at the end."""
import torch
from transformers import Tipsv2DptConfig, Tipsv2DptForSemanticSegmentation

torch.manual_seed(1613)
config = Tipsv2DptConfig(
    backbone_config={"model_type": "tipsv2_vision_model", "hidden_size": 384, "num_hidden_layers": 8, "num_attention_heads": 6, "image_size": 224, "out_indices": [2, 4, 6, 8], "apply_layernorm": True,
                     "reshape_hidden_states": False},
    neck_hidden_sizes=[48, 96, 192, 384], fusion_hidden_size=128, num_labels=35)
model = Tipsv2DptForSemanticSegmentation(config).to("cuda", torch.bfloat16)
optimizer = torch.optim.RMSprop(model.parameters(), 1e-4, momentum=0.9)
model.train()
for step in range(4):
    total = 0.0
    for part in range(4):
        x, y = torch.randn(8, 3, 224, 224).to("cuda", torch.bfloat16), torch.randint(0, 35, (8, 224, 224))
        y[:, -10:] = 255
        loss = model(pixel_values=x, labels=y.cuda()).loss / 4
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, total)
model.eval()
with torch.no_grad():
    for high, wide in ((168, 224), (280, 280), (336, 252)):
        x = torch.randn(8, 3, high, wide).to("cuda", torch.bfloat16)
        print((high, wide), model(pixel_values=x).logits.argmax(1).float().mean().item())
