"""timm's large TResNet with bfloat16 weights: RAdam, four parts of 12 a step, gradients kept as zeros, an evaluation in between."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1606)
model = timm.create_model("tresnet_l", pretrained=False, num_classes=80).to("cuda", torch.bfloat16)
optimizer = torch.optim.RAdam(model.parameters(), 1e-3)
for step in range(4):
    model.train()
    optimizer.zero_grad(set_to_none=False)
    for part in range(4):
        x, y = torch.randn(12, 3, 224, 224).to("cuda", torch.bfloat16), torch.randint(0, 2, (12, 80)).cuda()
        loss = F.binary_cross_entropy_with_logits(model(x).float(), y.float()) / 4
        loss.backward()
    optimizer.step()
    print(step, 4 * loss.item())
    if step % 2:
        model.eval()
        with torch.no_grad():
            x, y = torch.randn(12, 3, 224, 224).to("cuda", torch.bfloat16), torch.randint(0, 2, (12, 80)).cuda()
            print("labels", ((model(x) > 0) == y).float().mean().item())
