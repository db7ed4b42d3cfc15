"""An LSTM that writes into a memory and reads from it by content and by place, and repeats what it was shown: AdamW, bfloat16 autocast, batches of 32."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1620)
BITS, HIDDEN, ROWS, WIDE, READS = 16, 512, 128, 64, 4


class Head(nn.Module):
    """Where to look: by likeness with a key, mixed with the place before, moved by one row at most, and sharpened."""

    def __init__(self, writes):
        super().__init__()
        self.parts = (WIDE, 1, 1, 3, 1, *((WIDE, WIDE) if writes else ()))
        self.ask = nn.Linear(HIDDEN, sum(self.parts))

    def forward(self, h, memory, before):
        key, strength, gate, move, sharp, *change = self.ask(h).float().split(self.parts, -1)
        likeness = F.cosine_similarity(memory, torch.tanh(key)[:, None], dim=-1)
        weight = torch.softmax(F.softplus(strength) * likeness, -1)
        weight = torch.lerp(before, weight, torch.sigmoid(gate))
        move = torch.softmax(move, -1)
        weight = sum(move[:, i:i + 1] * weight.roll(i - 1, 1) for i in range(3))
        weight = (weight + 1e-6) ** (1 + F.softplus(sharp))
        return weight / weight.sum(1, keepdim=True), change


class Controller(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(BITS + 1 + READS * WIDE, HIDDEN)
        self.write, self.reads = Head(True), nn.ModuleList(Head(False) for _ in range(READS))
        self.first, self.out = nn.Parameter(torch.randn(ROWS, WIDE) * 0.1), nn.Linear(HIDDEN + READS * WIDE, BITS)

    def forward(self, bits):
        n = len(bits)
        memory, read = self.first.expand(n, -1, -1), bits.new_zeros(n, READS * WIDE)
        h, c = bits.new_zeros(n, HIDDEN), bits.new_zeros(n, HIDDEN)
        looks = [F.one_hot(torch.zeros(n, dtype=torch.long, device=bits.device), ROWS).float() for _ in range(READS + 1)]
        out = []
        for x in bits.unbind(1):
            h, c = self.cell(torch.cat([x, read], 1), (h, c))
            looks[0], (erase, add) = self.write(h, memory, looks[0])
            memory = memory * (1 - looks[0][..., None] * torch.sigmoid(erase)[:, None]) + looks[0][..., None] * torch.tanh(add)[:, None]
            for i, head in enumerate(self.reads):
                looks[i + 1], _ = head(h, memory, looks[i + 1])
            read = torch.stack([(w[:, None] @ memory).squeeze(1) for w in looks[1:]], 1).flatten(1)
            out.append(self.out(torch.cat([h, read.to(h.dtype)], 1)))
        return torch.stack(out, 1)


model = Controller().cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
model.train()
for step in range(6):
    length = 20 + 6 * (step % 3)
    shown = torch.randint(0, 2, (32, length, BITS)).float().cuda()
    bits = torch.zeros(32, 2 * length + 1, BITS + 1, device="cuda")
    bits[:, :length, :BITS], bits[:, length, BITS] = shown, 1
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.binary_cross_entropy_with_logits(model(bits)[:, length + 1:].float(), shown)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
