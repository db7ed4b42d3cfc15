"""Boxes with transformers' Deformable DETR on a ResNet in bfloat16 weights: NAdam, batches of 8 padded pictures, checkpointing, gradients clipped by their norm, averaged weights are evaluated."""
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import DeformableDetrConfig, DeformableDetrForObjectDetection, ResNetConfig

torch.manual_seed(1415)
backbone = ResNetConfig(depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic", out_features=["stage2", "stage3", "stage4"])
config = DeformableDetrConfig(backbone_config=backbone, num_queries=100, encoder_layers=3, decoder_layers=3, num_labels=20)
model = DeformableDetrForObjectDetection(config).to("cuda", torch.bfloat16)
model.gradient_checkpointing_enable()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.NAdam(model.parameters(), 1e-4)
model.train()
for step in range(5):
    x, mask, labels = torch.zeros(8, 3, 256, 320), torch.zeros(8, 256, 320, dtype=torch.long), []
    for k in range(8):
        high, wide, n = 256 - 8 * ((k + step) % 4), 320 - 16 * (k % 5), 1 + (k + step) % 4
        x[k, :, :high, :wide], mask[k, :high, :wide] = torch.randn(3, high, wide), 1
        boxes = torch.cat([0.3 + 0.4 * torch.rand(n, 2), 0.1 + 0.3 * torch.rand(n, 2)], 1)
        labels.append({"class_labels": torch.randint(0, 20, (n,)).cuda(), "boxes": boxes.cuda()})
    out = model(pixel_values=x.to("cuda", torch.bfloat16), pixel_mask=mask.cuda())
    loss, parts, _ = model.loss_function(out.logits.float(), labels, model.device, out.pred_boxes.float(), config, None, None)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    average.update_parameters(model)
    print(step, loss.item(), norm.item())
average.eval()
with torch.no_grad():
    out = average(pixel_values=torch.randn(8, 3, 256, 320).to("cuda", torch.bfloat16))
    print(out.pred_boxes.float().mean(1)[0].tolist(), out.logits.sigmoid().amax(-1).topk(5).values.shape)
