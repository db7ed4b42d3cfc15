"""torchvision's GoogLeNet with its two helpers: Adafactor, float16 with a scaler, batches of 8 to 16, gradients kept as zeros, an evaluation after every second step."""
import torch
import torch.nn.functional as F
import torchvision

torch.manual_seed(1401)
model = torchvision.models.googlenet(weights=None, num_classes=200, aux_logits=True, init_weights=True).cuda()
optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-2, weight_decay=1e-4)
scaler = torch.amp.GradScaler("cuda")
for step, batch in enumerate((8, 16, 12, 16, 10, 14, 16, 8)):
    model.train()
    x, y = torch.randn(batch, 3, 224, 224).cuda(), torch.randint(0, 200, (batch,)).cuda()
    with torch.autocast("cuda", torch.float16):
        out = model(x)
        loss = F.cross_entropy(out.logits, y) + 0.3 * (F.cross_entropy(out.aux_logits1, y) + F.cross_entropy(out.aux_logits2, y))
    optimizer.zero_grad(set_to_none=False)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
    if step % 2:
        model.eval()
        with torch.no_grad(), torch.autocast("cuda", torch.float16):
            right = 0
            for _ in range(2):
                x, y = torch.randn(16, 3, 224, 224).cuda(), torch.randint(0, 200, (16,)).cuda()
                right += (model(x).argmax(1) == y).sum()
        print("right", right.item())
