"""Pictures and captions: a small ResNet and a transformer with causal text, a learned temperature, gradients accumulated, captions ranked; bfloat16 autocast."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

torch.manual_seed(917)


class Text(nn.Module):
    def __init__(self, words=10000, d=384, length=48):
        super().__init__()
        self.words, self.place = nn.Embedding(words, d), nn.Parameter(torch.randn(length, d) * 0.01)
        layer = nn.TransformerEncoderLayer(d, 6, 4 * d, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.net, self.norm, self.out = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), nn.LayerNorm(d), nn.Linear(d, 256, bias=False)
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1), persistent=False)

    def forward(self, ids):
        x = self.norm(self.net(self.words(ids) + self.place, mask=self.mask))
        return self.out(x[torch.arange(len(ids), device=ids.device), ids.argmax(1)])


text, image = Text().cuda(), torchvision.models.resnet18(weights=None, num_classes=256).cuda()
scale = nn.Parameter(torch.tensor(2.66, device="cuda"))
params = [*text.parameters(), *image.parameters(), scale]
optimizer = torch.optim.AdamW(params, 5e-4, betas=(0.9, 0.98), weight_decay=0.2)


def batch(n):
    ids = torch.randint(1, 9000, (n, 48))
    ids[torch.arange(n), torch.randint(10, 48, (n,))] = 9999
    return torch.rand(n, 3, 128, 128).cuda(), ids.cuda()


for step in range(6):
    for part in range(2):
        x, ids = batch(80)
        with torch.autocast("cuda", torch.bfloat16):
            a, b = F.normalize(image(x), dim=1), F.normalize(text(ids), dim=1)
            logits = scale.exp() * a @ b.t()
            target = torch.arange(80, device="cuda")
            loss = (F.cross_entropy(logits.float(), target) + F.cross_entropy(logits.t().float(), target)) / 4
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        scale.clamp_(0, 4.6)
    print(step, loss.item())
text.eval(), image.eval()
with torch.no_grad():
    x, ids = batch(200)
    print((F.normalize(image(x), dim=1) @ F.normalize(text(ids), dim=1).t()).argmax(1).float().mean().item())
