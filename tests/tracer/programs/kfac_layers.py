"""K-FAC written out: hooks keep the inputs and the gradients of each layer, products of both are averaged, decomposed and turn the gradients before SGD with momentum."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1318)


def block(i, o, stride):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(), nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


net = nn.Sequential(block(3, 48, 1), block(48, 96, 2), block(96, 160, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(160, 256), nn.ReLU(), nn.Linear(256, 20)).cuda()


class KFAC:
    def __init__(self, net, decay=0.95, damping=0.03, every=3):
        self.decay, self.damping, self.every, self.count = decay, damping, every, 0
        self.layers = [m for m in net.modules() if isinstance(m, (nn.Linear, nn.Conv2d))]
        self.a, self.g, self.turn = {}, {}, {}
        for m in self.layers:
            m.register_forward_pre_hook(self.input)
            m.register_full_backward_hook(self.output)

    def mean(self, kept, m, new):
        kept[m] = new if m not in kept else kept[m].mul_(self.decay).add_(new, alpha=1 - self.decay)

    @torch.no_grad()
    def input(self, m, args):
        if not torch.is_grad_enabled() and not m.training:
            return
        x = args[0]
        if isinstance(m, nn.Conv2d):
            x = F.unfold(x, m.kernel_size, padding=m.padding, stride=m.stride).transpose(1, 2).flatten(0, 1)
        if m.bias is not None:
            x = torch.cat([x, x.new_ones(len(x), 1)], 1)
        self.mean(self.a, m, x.t() @ x / len(x))

    @torch.no_grad()
    def output(self, m, grad_input, grad_output):
        g = grad_output[0]
        g = g.permute(0, 2, 3, 1).flatten(0, 2) if g.dim() == 4 else g
        self.mean(self.g, m, g.t() @ g * len(grad_output[0]))

    @torch.no_grad()
    def precondition(self):
        for m in self.layers:
            if self.count % self.every == 0:
                self.turn[m] = (*torch.linalg.eigh(self.a[m]), *torch.linalg.eigh(self.g[m]))
            da, qa, dg, qg = self.turn[m]
            grad = m.weight.grad.flatten(1)
            if m.bias is not None:
                grad = torch.cat([grad, m.bias.grad[:, None]], 1)
            v = qg.t() @ grad @ qa / (dg[:, None].clamp(min=0) * da[None].clamp(min=0) + self.damping)
            v = qg @ v @ qa.t()
            if m.bias is not None:
                m.bias.grad.copy_(v[:, -1])
                v = v[:, :-1]
            m.weight.grad.copy_(v.view_as(m.weight))
        self.count += 1


kfac = KFAC(net)
optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
for step in range(8):
    x, y = torch.randn(96, 3, 32, 32).cuda(), torch.randint(0, 20, (96,)).cuda()
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    kfac.precondition()
    optimizer.step()
    print(step, loss.item())
