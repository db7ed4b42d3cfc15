"""ViT-B/16 from timm, bfloat16 autocast, fused AdamW, stochastic depth, evaluation every four steps."""
import timm
import torch
import torch.nn as nn


def main():
    torch.manual_seed(2)
    torch.backends.cuda.matmul.allow_tf32 = True
    model = timm.create_model("vit_base_patch16_224", pretrained=False, num_classes=100, drop_path_rate=0.1).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.05, fused=True)
    criterion = nn.CrossEntropyLoss()
    for step in range(8):
        images = torch.randn(96, 3, 224, 224, device="cuda")
        labels = torch.randint(100, (96,), device="cuda")
        optimizer.zero_grad()
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            model.eval()
            with torch.no_grad(), torch.autocast(device_type="cuda", dtype=torch.bfloat16):
                scores = torch.cat([model(torch.randn(160, 3, 224, 224, device="cuda")) for _ in range(2)])
            top5 = scores.float().topk(5, dim=1).indices
            print(step, loss.item(), tuple(top5.shape))
            model.train()


main()
