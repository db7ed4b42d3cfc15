"""timm's RepGhostNet in channels last: fused AdamW, bfloat16 autocast, batches of 8 to 16, gradients clipped by value, an evaluation of other sizes at the end."""
import timm
import torch
import torch.nn.functional as F

torch.manual_seed(1602)
model = timm.create_model("repghostnet_111", pretrained=False, num_classes=150, drop_rate=0.1).to("cuda", memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.03, fused=True)
model.train()
for step, batch in enumerate((16, 9, 13, 8, 15, 11, 16)):
    x = torch.randn(batch, 3, 384, 384).to("cuda", memory_format=torch.channels_last)
    y = torch.randint(0, 150, (batch,)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for high, wide in ((320, 320), (448, 384), (512, 512)):
        x = torch.randn(16, 3, high, wide).to("cuda", memory_format=torch.channels_last)
        print((high, wide), model(x).argmax(1).float().mean().item())
