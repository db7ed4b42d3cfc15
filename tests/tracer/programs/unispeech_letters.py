"""Speech to letters with transformers' UniSpeech-SAT and CTC: Adadelta, bfloat16 autocast, two parts of 12 recordings a step, gradients clipped by their norm, an evaluation in between."""
import numpy as np
import torch
from transformers import UniSpeechSatConfig, UniSpeechSatForCTC

torch.manual_seed(1609)
np.random.seed(1609)
config = UniSpeechSatConfig(vocab_size=36, hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536, conv_dim=[256] * 7, mask_time_prob=0.065,
                            ctc_loss_reduction="mean", ctc_zero_infinity=True)
model = UniSpeechSatForCTC(config).cuda()
optimizer = torch.optim.Adadelta(model.parameters(), lr=0.3)


def speech(samples):
    x, mask, y = torch.randn(12, samples), torch.ones(12, samples, dtype=torch.long), torch.randint(3, 36, (12, 32))
    for k in range(1, 12):
        x[k, samples - 1600 * k:], mask[k, samples - 1600 * k:], y[k, 32 - k:] = 0, 0, -100
    return {"input_values": x.cuda(), "attention_mask": mask.cuda(), "labels": y.cuda()}


for step in range(5):
    model.train()
    total = 0.0
    for part in range(2):
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(**speech(48000 + 8000 * ((step + part) % 3))).loss / 2
        loss.backward()
        total += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, total, norm.item())
    if step % 2:
        model.eval()
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
            print("loss", model(**speech(56000)).loss.item())
