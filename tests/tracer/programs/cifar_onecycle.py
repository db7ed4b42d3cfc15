"""torchvision's ResNet-18 on small images: channels_last, float16 with a scaler, one cycle of SGD, cut-out on the host, evaluation with flips."""
import torch
import torchvision
import torch.nn.functional as F

torch.manual_seed(801)
model = torchvision.models.resnet18(weights=None, num_classes=100)
model.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
model.maxpool = torch.nn.Identity()
model = model.cuda().to(memory_format=torch.channels_last)
images, labels = torch.randn(4096, 3, 32, 32), torch.randint(0, 100, (4096,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.4, total_steps=20)
scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
for epoch in range(2):
    model.train()
    order = torch.randperm(len(images))
    for begin in range(0, 3072, 384):
        index = order[begin : begin + 384]
        x, y = images[index].clone(), labels[index]
        x[:, :, 8:16, 8:16] = 0
        x = x.cuda(non_blocking=True).to(memory_format=torch.channels_last)
        y = y.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
    model.eval()
    right = 0
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16):
        for x, y in zip(images[3072:].split(512), labels[3072:].split(512)):
            x, y = x.cuda().to(memory_format=torch.channels_last), y.cuda()
            right += ((model(x) + model(x.flip(3))).argmax(1) == y).sum().item()
    print(epoch, loss.item(), right)
