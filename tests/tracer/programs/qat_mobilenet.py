"""Training for 8 bits as torchvision's reference does: MobileNetV2 with fused layers and fake quantisation, observers and batch norms frozen later, SGD."""
import torch
import torch.ao.quantization as quantization
import torch.nn.functional as F
import torchvision

torch.manual_seed(1305)
model = torchvision.models.quantization.mobilenet_v2(weights=None, quantize=False, num_classes=100)
model.train()
model.fuse_model(is_qat=True)
model.qconfig = quantization.get_default_qat_qconfig("qnnpack")
quantization.prepare_qat(model, inplace=True)
model.cuda()
model.apply(quantization.enable_observer)
model.apply(quantization.enable_fake_quant)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=4e-5)
for step in range(6):
    x, y = torch.randn(32, 3, 192, 192).cuda(), torch.randint(0, 100, (32,)).cuda()
    if step == 3:
        model.apply(quantization.disable_observer)
    if step == 4:
        model.apply(torch.nn.intrinsic.qat.freeze_bn_stats)
    loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.inference_mode():
    print(model(torch.randn(64, 3, 224, 224).cuda()).argmax(1)[0].item())
