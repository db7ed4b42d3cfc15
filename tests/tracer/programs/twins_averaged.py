"""timm's Twins-SVT with bfloat16 weights in channels last: Adadelta, batches of 8 to 16, averaged weights are evaluated."""
import timm
import torch
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(1508)
model = timm.create_model("twins_svt_base", pretrained=False, num_classes=100, drop_path_rate=0.1).to("cuda", torch.bfloat16, memory_format=torch.channels_last)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
optimizer = torch.optim.Adadelta(model.parameters(), lr=0.5)
model.train()
for step, batch in enumerate((8, 16, 11, 14, 9, 16)):
    x = torch.randn(batch, 3, 224, 224).to("cuda", torch.bfloat16, memory_format=torch.channels_last)
    y = torch.randint(0, 100, (batch,)).cuda()
    loss = F.cross_entropy(model(x).float(), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update_parameters(model)
    print(step, loss.item())
average.eval()
with torch.inference_mode():
    for _ in range(2):
        x = torch.randn(16, 3, 224, 224).to("cuda", torch.bfloat16, memory_format=torch.channels_last)
        print(average(x).argmax(1).float().mean().item())
