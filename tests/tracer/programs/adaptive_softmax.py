"""A language model of a large vocabulary: quasi-recurrent layers, locked dropout, an adaptive softmax, SGD with Nesterov momentum, gradients clipped, then averaged weights and a perplexity."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(305)
VOCAB = 120_000


class Qrnn(nn.Module):
    def __init__(self, i, h, kernel=2):
        super().__init__()
        self.kernel, self.conv = kernel, nn.Conv1d(i, 3 * h, kernel)

    def forward(self, x, c):
        z, f, o = self.conv(F.pad(x.permute(1, 2, 0), (self.kernel - 1, 0))).permute(2, 0, 1).chunk(3, -1)
        z, f, o = torch.tanh(z), torch.sigmoid(f), torch.sigmoid(o)
        held = []
        for t in range(x.shape[0]):
            c = f[t] * c + (1 - f[t]) * z[t]
            held.append(c)
        return o * torch.stack(held), c.detach()


class Model(nn.Module):
    def __init__(self, width=384, hidden=768, layers=3):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.layers = nn.ModuleList(Qrnn(width if i == 0 else hidden, hidden) for i in range(layers))
        self.down = nn.Linear(hidden, width, bias=False)
        self.loss = nn.AdaptiveLogSoftmaxWithLoss(width, VOCAB, [4000, 20000, 60000], div_value=4.0, head_bias=True)

    def locked(self, x, p=0.3):
        if not self.training:
            return x
        return x * x.new_empty(1, x.shape[1], x.shape[2]).bernoulli_(1 - p).div_(1 - p)

    def forward(self, ids, states, targets):
        x = self.locked(self.embed(ids))
        new = []
        for layer, c in zip(self.layers, states):
            x, c = layer(x, c)
            x = self.locked(x)
            new.append(c)
        x = self.down(x)
        out = self.loss(x.flatten(0, 1), targets.flatten())
        return out.loss, new, x


model = Model().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=2.0, momentum=0.9, nesterov=True, weight_decay=1e-6)
average = torch.optim.swa_utils.AveragedModel(model)
states = [torch.zeros(32, 768, device="cuda") for _ in range(3)]
for step in range(6):
    length = (48, 40, 56)[step % 3]
    data = (torch.rand(length + 1, 32, device="cuda").pow(3) * VOCAB).long()
    loss, states, hidden = model(data[:-1], states, data[1:])
    loss = loss + 2.0 * hidden.pow(2).mean() + (hidden[1:] - hidden[:-1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    if step >= 3:
        average.update_parameters(model)
    print(step, loss.item())
model.eval()
with torch.no_grad():
    states = [torch.zeros(8, 768, device="cuda") for _ in range(3)]
    data = torch.randint(0, VOCAB, (33, 8), device="cuda")
    loss, states, hidden = model(data[:-1], states, data[1:])
    print(loss.exp().item(), model.loss.predict(hidden[-1]).shape)
