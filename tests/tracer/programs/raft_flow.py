"""Optical flow: features of two frames, a pyramid of all-pairs correlations looked up by grid_sample, a convolutional GRU that refines the flow, a loss over all iterations."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(301)


class Block(nn.Module):
    def __init__(self, c, o, stride):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(c, o, 3, stride, 1), nn.InstanceNorm2d(o), nn.ReLU(True), nn.Conv2d(o, o, 3, 1, 1), nn.InstanceNorm2d(o))
        self.skip = nn.Conv2d(c, o, 1, stride) if stride > 1 or c != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.skip(x) + self.net(x))


def encoder(out):
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(True), Block(64, 64, 1), Block(64, 96, 2), Block(96, 128, 2), nn.Conv2d(128, out, 1))


class Gru(nn.Module):
    def __init__(self, h=96, i=96 + 128):
        super().__init__()
        self.z, self.r, self.q = (nn.Conv2d(h + i, h, (1, 5), padding=(0, 2)) for _ in "zrq")
        self.z2, self.r2, self.q2 = (nn.Conv2d(h + i, h, (5, 1), padding=(2, 0)) for _ in "zrq")

    def forward(self, h, x):
        for z, r, q in ((self.z, self.r, self.q), (self.z2, self.r2, self.q2)):
            hx = torch.cat([h, x], 1)
            gate = torch.sigmoid(z(hx))
            new = torch.tanh(q(torch.cat([torch.sigmoid(r(hx)) * h, x], 1)))
            h = (1 - gate) * h + gate * new
        return h


class Raft(nn.Module):
    def __init__(self, levels=4, radius=3):
        super().__init__()
        self.levels, self.radius = levels, radius
        self.features, self.context = encoder(192), encoder(192)
        self.motion = nn.Sequential(nn.Conv2d(levels * (2 * radius + 1) ** 2 + 2, 160, 3, 1, 1), nn.ReLU(), nn.Conv2d(160, 126, 3, 1, 1), nn.ReLU())
        self.gru, self.head = Gru(), nn.Sequential(nn.Conv2d(96, 128, 3, 1, 1), nn.ReLU(), nn.Conv2d(128, 2, 3, 1, 1))

    def look(self, pyramid, place):
        b, _, h, w = place.shape
        d = torch.linspace(-self.radius, self.radius, 2 * self.radius + 1, device=place.device)
        window = torch.stack(torch.meshgrid(d, d, indexing="ij"), -1)[None]
        found = []
        for i, volume in enumerate(pyramid):
            centre = place.permute(0, 2, 3, 1).reshape(b * h * w, 1, 1, 2) / 2**i
            size = torch.tensor([volume.shape[-1] - 1, volume.shape[-2] - 1], device=place.device)
            grid = 2 * (centre + window) / size - 1
            found.append(F.grid_sample(volume, grid, align_corners=True).view(b, h, w, -1))
        return torch.cat(found, -1).permute(0, 3, 1, 2).contiguous()

    def forward(self, first, second, iterations):
        with torch.autocast("cuda", torch.bfloat16):
            f1, f2 = self.features(torch.cat([first, second])).chunk(2)
            h, x = self.context(first).split([96, 96], 1)
        h, x, f1, f2 = torch.tanh(h.float()), F.relu(x.float()), f1.float(), f2.float()
        b, c, hh, ww = f1.shape
        volume = (f1.flatten(2).transpose(1, 2) @ f2.flatten(2) / c**0.5).view(b * hh * ww, 1, hh, ww)
        pyramid = [volume]
        for _ in range(self.levels - 1):
            pyramid.append(F.avg_pool2d(pyramid[-1], 2))
        y, xx = torch.meshgrid(torch.arange(hh, device=f1.device), torch.arange(ww, device=f1.device), indexing="ij")
        start = torch.stack([xx, y]).float()[None].repeat(b, 1, 1, 1)
        place, flows = start.clone(), []
        for _ in range(iterations):
            place = place.detach()
            seen = self.look(pyramid, place)
            moved = self.motion(torch.cat([seen, place - start], 1))
            h = self.gru(h, torch.cat([x, moved, place - start], 1))
            place = place + self.head(h)
            flows.append(8 * F.interpolate(place - start, scale_factor=8, mode="bilinear", align_corners=True))
        return flows


model = Raft().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, weight_decay=1e-4, eps=1e-8)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-4, 100)
for step in range(5):
    h, w = (256, 320) if step % 2 == 0 else (224, 384)
    a, b, flow = torch.rand(4, 3, h, w, device="cuda"), torch.rand(4, 3, h, w, device="cuda"), torch.randn(4, 2, h, w, device="cuda")
    flows = model(a, b, 6)
    valid = flow.pow(2).sum(1).sqrt() < 400
    loss = sum(0.8 ** (len(flows) - i - 1) * (valid[:, None] * (f - flow).abs()).mean() for i, f in enumerate(flows))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    print(model(torch.rand(2, 3, 288, 512, device="cuda"), torch.rand(2, 3, 288, 512, device="cuda"), 12)[-1].shape)
