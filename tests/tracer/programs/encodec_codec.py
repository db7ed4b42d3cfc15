"""A codec of sound with the layers of transformers' EnCodec: an encoder, codes of residuals passed straight through, a decoder, losses of samples and mels, two learning rates, then codes of a long recording."""
import torch
import torch.nn.functional as F
from transformers import EncodecConfig, EncodecModel

torch.manual_seed(1310)
model = EncodecModel(EncodecConfig(num_filters=32, hidden_size=128, target_bandwidths=[6.0], codebook_size=1024)).cuda()
fast = [p for n, p in model.named_parameters() if n.startswith("decoder")]
slow = [p for n, p in model.named_parameters() if not n.startswith("decoder")]
optimizer = torch.optim.AdamW([{"params": slow, "lr": 1e-4}, {"params": fast, "lr": 3e-4}], betas=(0.5, 0.9))
window = torch.hann_window(1024, device="cuda")
bank = torch.rand(64, 513, device="cuda")


def mel(x):
    power = torch.stft(x.squeeze(1), 1024, 256, window=window, return_complex=True).abs().square()
    return (bank @ power + 1e-5).log()


for step in range(6):
    x = torch.randn(12, 1, 24000).cuda() * 0.1
    z = model.encoder(x)
    codes = model.quantizer.encode(z, 6.0)
    q = model.quantizer.decode(codes)
    guess = model.decoder(z + (q - z).detach())[..., :x.shape[-1]]
    loss = F.l1_loss(guess, x) + 0.2 * F.l1_loss(mel(guess), mel(x)) + 0.25 * F.mse_loss(z, q.detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    long = torch.randn(2, 1, 24000 * 8).cuda() * 0.1
    out = model(long, bandwidth=6.0)
    print(out.audio_codes.shape, out.audio_values.abs().mean().item())
