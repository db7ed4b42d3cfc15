"""Reading lines of text with transformers (a ViT that looks, a RoBERTa that writes, as TrOCR): float16 with a scaler, padding without a loss, a polynomial rate, then beams."""
import torch
from transformers import RobertaConfig, ViTConfig, VisionEncoderDecoderConfig, VisionEncoderDecoderModel, get_polynomial_decay_schedule_with_warmup

torch.manual_seed(1209)
look = ViTConfig(hidden_size=384, num_hidden_layers=8, num_attention_heads=6, intermediate_size=1536, image_size=(64, 512), patch_size=8)
write = RobertaConfig(vocab_size=12000, hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, max_position_embeddings=130, is_decoder=True, add_cross_attention=True)
model = VisionEncoderDecoderModel(config=VisionEncoderDecoderConfig.from_encoder_decoder_configs(look, write)).cuda()
for c in (model.config, model.generation_config):
    c.decoder_start_token_id, c.pad_token_id, c.eos_token_id, c.bos_token_id = 0, 1, 2, 0
optimizer = torch.optim.AdamW(model.parameters(), 5e-5)
rate = get_polynomial_decay_schedule_with_warmup(optimizer, 2, 30)
scaler = torch.amp.GradScaler("cuda", init_scale=128.0)
model.train()
for step in range(7):
    length = (48, 72, 60)[step % 3]
    pixels = torch.randn(24, 3, 64, 512).cuda()
    labels = torch.randint(3, 12000, (24, length))
    labels[::3, length // 2:] = -100
    with torch.autocast("cuda", torch.float16):
        loss = model(pixel_values=pixels, labels=labels.cuda()).loss
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    rate.step()
    print(step, loss.item())
model.eval()
with torch.inference_mode():
    out = model.generate(torch.randn(8, 3, 64, 512, device="cuda"), num_beams=4, max_new_tokens=24, min_new_tokens=24)
    print(out.shape)
