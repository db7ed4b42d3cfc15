"""Letters by an LSTM: hidden states carried from batch to batch, tied weights, dropout, gradients clipped, the rate cut in four, then text sampled letter by letter."""
import torch
from torch import nn

torch.manual_seed(813)


class Letters(nn.Module):
    def __init__(self, letters=256, width=768, layers=3):
        super().__init__()
        self.embed, self.lstm = nn.Embedding(letters, width), nn.LSTM(width, width, layers, dropout=0.3, batch_first=True)
        self.drop, self.out = nn.Dropout(0.3), nn.Linear(width, letters)
        self.out.weight = self.embed.weight

    def forward(self, x, state=None):
        y, state = self.lstm(self.drop(self.embed(x)), state)
        return self.out(self.drop(y)), state


model = Letters().cuda()
text = torch.randint(0, 256, (64, 2001))
optimizer, rate = torch.optim.SGD(model.parameters(), lr=20.0), 20.0
for epoch in range(2):
    model.train()
    state, total = None, 0.0
    for begin in range(0, 1600, 200):
        x, y = text[:, begin : begin + 200].cuda(), text[:, begin + 1 : begin + 201].cuda()
        if state is not None:
            state = tuple(s.detach() for s in state)
        logits, state = model(x, state)
        loss = nn.functional.cross_entropy(logits.reshape(-1, 256), y.reshape(-1))
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        logits, _ = model(text[:32, 1600:1900].cuda())
        print(epoch, total / 8, logits.softmax(-1).amax(-1).mean().item())
    rate /= 4
    for g in optimizer.param_groups:
        g["lr"] = rate
with torch.no_grad():
    x, state, out = torch.zeros(16, 1, dtype=torch.long, device="cuda"), None, []
    for _ in range(120):
        logits, state = model(x, state)
        x = torch.multinomial((logits[:, -1] / 0.8).softmax(-1), 1)
        out.append(x)
print(torch.cat(out, 1).shape)
