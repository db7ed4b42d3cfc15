"""timm's ViT with registers-like tokens (vit_small_patch14, small pictures): bfloat16 weights, LayerScale, layers checkpointed by timm, AdamW foreach, multi-crop features."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(904)
model = timm.create_model("vit_small_patch14_reg4_dinov2", num_classes=60, img_size=196).to("cuda", torch.bfloat16)
model.set_grad_checkpointing(True)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4, foreach=True)
for step in range(6):
    x, y = torch.randn(48, 3, 196, 196).to("cuda", torch.bfloat16), torch.randint(0, 60, (48,)).cuda()
    loss = F.cross_entropy(model(x).float(), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
model.eval()
with torch.inference_mode():
    features = [F.normalize(model.forward_features(torch.randn(64, 3, 196, 196, device="cuda", dtype=torch.bfloat16))[:, 0].float(), dim=1) for _ in range(3)]
    print((features[0] @ torch.cat(features[1:]).t()).topk(5).values.mean().item())
