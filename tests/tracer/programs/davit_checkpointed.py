"""DaViT of timm (windows and channels attend in turn): bfloat16 autocast, layers checkpointed, Lion of timm, gradients of two parts of a batch added, then features of larger pictures."""
import timm
import torch
import torch.nn.functional as F
from timm.optim import create_optimizer_v2

torch.manual_seed(1202)
model = timm.create_model("davit_tiny", pretrained=False, num_classes=200, drop_path_rate=0.1).cuda()
model.set_grad_checkpointing(True)
optimizer = create_optimizer_v2(model, opt="lion", lr=1e-4, weight_decay=0.1)
for step in range(6):
    optimizer.zero_grad()
    for part in range(2):
        x, y = torch.randn(48, 3, 224, 224).cuda(), torch.randint(0, 200, (48,)).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(model(x), y) / 2
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
    for side in (224, 288):
        x = torch.randn(32, 3, side, side, device="cuda")
        print(model.forward_head(model.forward_features(x), pre_logits=True).shape)
