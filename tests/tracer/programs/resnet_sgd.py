"""ResNet-50 from torchvision, float32, SGD with momentum, a short last batch, then validation."""
import torch
import torchvision
from torch import nn


def batches(sizes, device):
    for n in sizes:
        yield torch.randn(n, 3, 224, 224, device=device), torch.randint(0, 200, (n,), device=device)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = torchvision.models.resnet50(num_classes=200).to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    for epoch in range(2):
        model.train()
        seen, correct = 0, 0
        for image, target in batches([80, 80, 80, 80, 33], device):
            output = model(image)
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += (output.argmax(1) == target).sum().item()
            seen += len(target)
        scheduler.step()
        model.eval()
        with torch.inference_mode():
            for image, target in batches([128, 70], device):
                loss = criterion(model(image), target)
        print(f"epoch {epoch}: train accuracy {correct / seen:.3f}, validation loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
