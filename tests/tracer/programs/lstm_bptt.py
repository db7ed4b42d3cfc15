"""A word language model: two layers of LSTM, truncated back-propagation through time, tied weights, SGD."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, words, width, layers):
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.encoder = nn.Embedding(words, width)
        self.rnn = nn.LSTM(width, width, layers, dropout=0.5)
        self.decoder = nn.Linear(width, words)
        self.decoder.weight = self.encoder.weight
        self.layers, self.width = layers, width

    def forward(self, tokens, hidden):
        out, hidden = self.rnn(self.drop(self.encoder(tokens)), hidden)
        return self.decoder(self.drop(out)).flatten(0, 1), hidden

    def start(self, batch):
        weight = next(self.parameters())
        return (weight.new_zeros(self.layers, batch, self.width), weight.new_zeros(self.layers, batch, self.width))


torch.manual_seed(8)
words, batch, span = 33000, 64, 70
model = Model(words, 1024, 2).to("cuda")
data = torch.randint(words, (span * 11 + 30, batch)).to("cuda")
criterion = nn.CrossEntropyLoss()
lr = 20.0
hidden = model.start(batch)
total = 0.0
for start in range(0, data.size(0) - 1, span):
    length = min(span, data.size(0) - 1 - start)
    inputs, targets = data[start:start + length], data[start + 1:start + 1 + length].reshape(-1)
    model.zero_grad()
    hidden = tuple(h.detach() for h in hidden)
    output, hidden = model(inputs, hidden)
    loss = criterion(output, targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-lr)
    total += loss.item()
print("loss", total / 12)
