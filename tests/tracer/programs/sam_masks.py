"""Masks from points with a small SAM of transformers: the encoder of pictures frozen and cached, the decoder trained on several points a picture, dice and focal losses, then boxes."""
import torch
import torch.nn.functional as F
from transformers import SamConfig, SamMaskDecoderConfig, SamModel, SamPromptEncoderConfig, SamVisionConfig

torch.manual_seed(1112)
config = SamConfig(
    vision_config=SamVisionConfig(hidden_size=192, output_channels=128, num_hidden_layers=6, num_attention_heads=6, image_size=512, window_size=8, global_attn_indexes=[2, 5], num_pos_feats=64),
    prompt_encoder_config=SamPromptEncoderConfig(hidden_size=128, image_size=512),
    mask_decoder_config=SamMaskDecoderConfig(hidden_size=128, mlp_dim=512, num_attention_heads=4))
model = SamModel(config).cuda()
model.vision_encoder.requires_grad_(False)
model.prompt_encoder.requires_grad_(False)
optimizer = torch.optim.AdamW(model.mask_decoder.parameters(), 1e-4, weight_decay=0.0)
pictures = torch.randn(8, 3, 512, 512)
with torch.no_grad():
    kept = torch.cat([model.get_image_embeddings(p.cuda()) for p in pictures.split(4)])
for step in range(8):
    count = (4, 8, 6)[step % 3]
    rows = torch.randperm(8)[:4]
    points = torch.rand(4, count, 1, 2) * 512
    truth = (torch.rand(4, count, 128, 128) < 0.3).float().cuda()
    out = model(image_embeddings=kept[rows.cuda()], input_points=points.cuda(), input_labels=torch.ones(4, count, 1, dtype=torch.long).cuda(), multimask_output=False)
    masks = out.pred_masks.squeeze(2)
    p = masks.sigmoid()
    dice = 1 - (2 * (p * truth).sum((2, 3)) + 1) / (p.sum((2, 3)) + truth.sum((2, 3)) + 1)
    cross = F.binary_cross_entropy_with_logits(masks, truth, reduction="none")
    focal = (cross * (1 - torch.exp(-cross)) ** 2).mean()
    loss = dice.mean() + 20 * focal + F.mse_loss(out.iou_scores.squeeze(2), 1 - dice.detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, count, loss.item())
model.eval()
with torch.no_grad():
    boxes = torch.tensor([[[40.0, 40.0, 300.0, 280.0], [100.0, 60.0, 400.0, 500.0]]]).repeat(2, 1, 1).cuda()
    out = model(pixel_values=pictures[:2].cuda(), input_boxes=boxes, multimask_output=True)
    print(F.interpolate(out.pred_masks.flatten(1, 2), (512, 512), mode="bilinear").gt(0).float().mean().item())
