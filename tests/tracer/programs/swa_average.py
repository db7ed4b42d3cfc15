"""Averaged weights: an exponential mean at every step, stochastic averaging at the end, batch statistics made again."""
import torch
import torchvision.transforms.v2
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn

torch.manual_seed(73)
model = torchvision.models.efficientnet_b0(weights=None, num_classes=200).cuda().to(memory_format=torch.channels_last)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999), use_buffers=True)
swa = AveragedModel(model)
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.016, alpha=0.9, momentum=0.9, weight_decay=1e-5)
late = SWALR(optimizer, swa_lr=0.005, anneal_epochs=2)
criterion = torch.nn.CrossEntropyLoss()
mix = torchvision.transforms.v2.MixUp(num_classes=200)
images = [(torch.rand(40, 3, 192, 192), torch.randint(0, 200, (40,))) for _ in range(4)]
for epoch in range(3):
    for image, label in images:
        image = image.to("cuda", memory_format=torch.channels_last)
        image, soft = mix(image, label.cuda())
        with torch.autocast("cuda", torch.float16):
            loss = criterion(model(image), soft)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update_parameters(model)
    if epoch:
        swa.update_parameters(model)
        late.step()
    print(epoch, loss.item())
update_bn(((image.to(memory_format=torch.channels_last),) for image, _ in images), swa, device=torch.device("cuda"))
ema.eval()
swa.eval()
with torch.no_grad():
    right = 0
    for image, label in images:
        both = ema(image.cuda()) + swa(image.cuda())
        right += (both.argmax(1) == label.cuda()).sum()
    print(right.item())
