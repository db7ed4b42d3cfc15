"""A whole training step captured in a CUDA graph and replayed with new inputs, as the documentation of PyTorch does."""
import torch
from torch import nn

torch.manual_seed(19)
batch, width = 4096, 2048
model = nn.Sequential(nn.Linear(width, 4096), nn.ReLU(), nn.Dropout(0.2), nn.Linear(4096, 4096), nn.ReLU(),
                      nn.Dropout(0.1), nn.Linear(4096, 1000)).cuda()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
static_input = torch.randn(batch, width, device="cuda")
static_target = torch.randint(0, 1000, (batch,), device="cuda")

side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        criterion(model(static_input), static_target).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)

graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    static_output = model(static_input)
    static_loss = criterion(static_output, static_target)
    static_loss.backward()
    optimizer.step()

for step in range(12):
    static_input.copy_(torch.randn(batch, width, device="cuda"))
    static_target.copy_(torch.randint(0, 1000, (batch,), device="cuda"))
    graph.replay()
    if step % 4 == 3:
        with torch.no_grad():
            model.eval()
            out = model(torch.randn(3 * batch, width, device="cuda"))
            print(step, static_loss.item(), out.argmax(1).float().mean().item())
            model.train()
torch.cuda.synchronize()
