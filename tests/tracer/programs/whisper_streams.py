"""A Whisper written out for streams: it hears chunks, of which each sees the sound before it in a memory without gradients, and writes the words of each; in bfloat16 weights. Adafactor, each epoch ends with a small batch, gradients kept as zeros, an evaluation in between."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1618)
D, HEADS, V, CHUNK, WORDS, PAST = 384, 6, 8000, 160, 16, 2


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.o = nn.Linear(D, D), nn.Linear(D, 2 * D, bias=False), nn.Linear(D, D)

    def forward(self, x, y, mask=None):
        q = self.q(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        k, v = self.kv(y).unflatten(-1, (2, HEADS, -1)).permute(2, 0, 3, 1, 4)
        return self.o(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, cross=False):
        super().__init__()
        self.own, self.n1, self.n3 = Attention(), nn.LayerNorm(D), nn.LayerNorm(D)
        self.other, self.n2 = (Attention(), nn.LayerNorm(D)) if cross else (None, None)
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))

    def forward(self, x, past=None, sound=None, mask=None):
        y = self.n1(x)
        x = x + self.own(y, y if past is None else torch.cat([past, y], 1), mask)
        if sound is not None:
            x = x + self.other(self.n2(x), sound)
        return x + self.mlp(self.n3(x)), y.detach()


class Streams(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(80, D, 3), nn.Conv1d(D, D, 3, stride=2)
        self.ears, self.mouth = nn.ModuleList(Layer() for _ in range(5)), nn.ModuleList(Layer(True) for _ in range(3))
        self.words, self.at, self.n1, self.n2 = nn.Embedding(V, D), nn.Embedding(256, D), nn.LayerNorm(D), nn.LayerNorm(D)

    def start(self, batch):
        weight = self.words.weight
        return {"edge": weight.new_zeros(batch, 80, 3), "ears": [None] * len(self.ears), "sound": [], "mouth": [None] * len(self.mouth), "said": 0}

    def hear(self, mel, state):
        x = torch.cat([state["edge"], mel], 2)
        state["edge"] = mel[:, :, -3:]
        x = F.gelu(self.c2(F.gelu(self.c1(x)))).transpose(1, 2)
        for i, layer in enumerate(self.ears):
            x, new = layer(x, state["ears"][i])
            kept = new if state["ears"][i] is None else torch.cat([state["ears"][i], new], 1)
            state["ears"][i] = kept[:, -PAST * CHUNK // 2:]
        state["sound"] = [*(s.detach() for s in state["sound"][-PAST:]), self.n1(x)]

    def say(self, ids, state):
        """Scores of the next words; what was said before is in the state."""
        length, before = ids.shape[1], state["said"]
        x, sound = self.words(ids) + self.at(torch.arange(before, before + length, device=ids.device)), torch.cat(state["sound"], 1)
        mask = torch.ones(length, before + length, dtype=torch.bool, device=ids.device).tril(before)
        for i, layer in enumerate(self.mouth):
            x, new = layer(x, state["mouth"][i], sound, mask)
            state["mouth"][i] = new if state["mouth"][i] is None else torch.cat([state["mouth"][i], new], 1)
        state["said"] += length
        return F.linear(self.n2(x), self.words.weight)


model = Streams().to("cuda", torch.bfloat16)
optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-3)
for epoch in range(2):
    model.train()
    for batch in (16, 16, 16, 5):
        optimizer.zero_grad(set_to_none=False)
        state, loss, chunks = model.start(batch), 0, 6
        for chunk in range(chunks):
            mel = torch.randn(batch, 80, CHUNK).to("cuda", torch.bfloat16)
            ids = torch.randint(0, V, (batch, WORDS + 1)).cuda()
            model.hear(mel, state)
            loss = loss + F.cross_entropy(model.say(ids[:, :-1], state).float().flatten(0, 1), ids[:, 1:].flatten()) / chunks
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
    model.eval()
    with torch.no_grad():
        state, word, text = model.start(16), torch.zeros(16, 1, dtype=torch.long).cuda(), []
        for chunk in range(8):
            model.hear(torch.randn(16, 80, CHUNK).to("cuda", torch.bfloat16), state)
            for _ in range(6):
                word = model.say(word, state)[:, -1:].argmax(-1)
                text.append(word)
        print(torch.cat(text, 1).shape)
