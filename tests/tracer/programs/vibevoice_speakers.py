"""Speech after texts with transformers' VibeVoice, with noise on the latents of sound as its second loss: Adamax, float16 with a scaler, batches of 8 to 16, gradients clipped by their norm, an evaluation with a larger batch at the end."""
import torch
from transformers import VibeVoiceConfig, VibeVoiceForConditionalGeneration

torch.manual_seed(1611)
SOUND = 4095
sound = {"num_filters": 16, "downsampling_ratios": [2, 4, 5, 8], "depths": [2, 2, 2, 2, 3], "hidden_size": 32}
config = VibeVoiceConfig(
    audio_config=dict(sound), semantic_model_config={**sound, "hidden_size": 64}, audio_bos_token_id=4093, audio_eos_token_id=4094, audio_token_id=SOUND, pad_token_id=0, eos_token_id=1,
    text_config={"vocab_size": 4096, "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 2, "max_position_embeddings": 1024, "pad_token_id": 0},
    diffusion_head_config={"hidden_size": 512, "latent_size": 32, "num_hidden_layers": 3, "intermediate_size": 1536})
HOP = config.audio_config.hop_length


class Cosine:
    """Noise by a cosine, as compute_diffusion_loss asks for it."""

    def __init__(self, steps):
        t = (torch.arange(steps) + 0.5) / steps * torch.pi / 2
        self.alpha_t, self.sigma_t = torch.cos(t), torch.sin(t)

    def add_noise(self, x, noise, t):
        a, s = (z.to(x.device, x.dtype)[t][:, None] for z in (self.alpha_t, self.sigma_t))
        return a * x + s * noise


def speakers(batch, text, tokens):
    """Texts, each with a piece of sound in the place of its last tokens; later ones are shorter."""
    ids, x, mask = torch.randint(2, 4000, (batch, text + tokens)), torch.randn(batch, 1, tokens * HOP), torch.zeros(batch, tokens * HOP, dtype=torch.bool)
    for k in range(batch):
        own = tokens - k % 5
        ids[k, text:text + own], ids[k, text + own:], mask[k, :own * HOP] = SOUND, 0, True
    labels = ids.masked_fill((ids == SOUND) | (ids == 0), -100)
    return {"input_ids": ids.cuda(), "attention_mask": (ids != 0).long().cuda(), "labels": labels.cuda(), "input_values": x.cuda(), "padding_mask": mask.cuda(),
            "acoustic_loss_mask": (ids == SOUND).cuda(), "noise_scheduler": Cosine(10), "use_cache": False}


model = VibeVoiceForConditionalGeneration(config).cuda()
model.get_input_embeddings().register_forward_hook(lambda module, args, out: out.half())  # sound takes the places of words in them
optimizer = torch.optim.Adamax(model.parameters(), 5e-4)
scaler = torch.amp.GradScaler("cuda")
model.train()
for step, batch in enumerate((8, 14, 11, 16, 9)):
    with torch.autocast("cuda", torch.float16):
        loss = model(**speakers(batch, 160, 60 + 10 * (step % 3))).loss
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item(), norm.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    for _ in range(2):
        print("loss", model(**speakers(32, 160, 80)).loss.item())
