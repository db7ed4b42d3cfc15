"""Two branches of a network on streams of their own, batches copied ahead on a third, gradients copied out on a fourth."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(79)
left = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(8192, 512)).cuda()
right = nn.Sequential(nn.Embedding(30000, 512), nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)).cuda()
head = nn.Linear(1024, 256).cuda()
parameters = [*left.parameters(), *right.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-4)
copies, one, two, out = (torch.cuda.Stream() for _ in range(4))
host = [(torch.rand(64, 3, 160, 160).pin_memory(), torch.randint(0, 30000, (64, 96)).pin_memory(), torch.randint(0, 256, (64,)).pin_memory()) for _ in range(3)]
kept = [torch.empty(p.shape, pin_memory=True) for p in head.parameters()]


def fetch(i):
    with torch.cuda.stream(copies):
        return [t.to("cuda", non_blocking=True) for t in host[i % 3]]


ready = fetch(0)
for step in range(8):
    main = torch.cuda.current_stream()
    main.wait_stream(copies)
    image, words, label = ready
    for t in ready:
        t.record_stream(main)
    ready = fetch(step + 1)
    one.wait_stream(main)
    two.wait_stream(main)
    with torch.cuda.stream(one):
        image.record_stream(one)
        a = left(image)
    with torch.cuda.stream(two):
        words.record_stream(two)
        b = right(words).mean(1)
    main.wait_stream(one)
    main.wait_stream(two)
    a.record_stream(main)
    b.record_stream(main)
    loss = F.cross_entropy(head(torch.cat([a, b], dim=1)), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    out.wait_stream(main)
    with torch.cuda.stream(out):
        for p, k in zip(head.parameters(), kept):
            p.grad.record_stream(out)
            k.copy_(p.grad, non_blocking=True)
torch.cuda.synchronize()
print(loss.item(), kept[1].norm().item())
