"""An image classifier fed by a DataLoader with workers, pinned memory and copies that do not block."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randint(0, 256, (3, 160, 160), dtype=torch.uint8, generator=g), i % 10


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU(),
                                  nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c))

    def forward(self, x):
        return torch.relu(x + self.body(x))


def main():
    torch.manual_seed(17)
    loader = DataLoader(Images(), batch_size=128, shuffle=True, num_workers=2, pin_memory=True, prefetch_factor=2)
    model = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, 1), Residual(64), Residual(64),
                          nn.Conv2d(64, 256, 1), Residual(256), nn.MaxPool2d(2), nn.Conv2d(256, 512, 1), Residual(512),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)
    for image, label in loader:
        image = image.cuda(non_blocking=True).float().div_(255)
        label = label.cuda(non_blocking=True)
        loss = nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
