"""torchvision's ResNet-50 in channels_last and bfloat16 autocast: SGD, cosine schedule, batches from a DataLoader, evaluation between epochs."""
import torch
import torchvision
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(901)
    model = torchvision.models.resnet50(weights=None, num_classes=100).cuda().to(memory_format=torch.channels_last)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-5)
    train = DataLoader(TensorDataset(torch.randn(272, 3, 192, 192), torch.randint(0, 100, (272,))), batch_size=64, shuffle=True)
    valid = DataLoader(TensorDataset(torch.randn(200, 3, 224, 224), torch.randint(0, 100, (200,))), batch_size=100)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2 * len(train))
    for epoch in range(2):
        model.train()
        for x, y in train:
            x, y = x.cuda(non_blocking=True).contiguous(memory_format=torch.channels_last), y.cuda(non_blocking=True)
            with torch.autocast("cuda", torch.bfloat16):
                loss = loss_of(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        model.eval()
        right = 0
        with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
            for x, y in valid:
                right += (model(x.cuda().contiguous(memory_format=torch.channels_last)).argmax(1) == y.cuda()).sum().item()
        print(epoch, loss.item(), right)


if __name__ == "__main__":
    main()
