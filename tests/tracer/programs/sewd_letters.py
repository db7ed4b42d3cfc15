"""Speech to letters with transformers' SEW-D and CTC: Adamax, bfloat16 autocast, four parts of 32 recordings a step, gradients kept as zeros, an evaluation of other lengths at the end."""
import numpy as np
import torch
from transformers import SEWDConfig, SEWDForCTC

torch.manual_seed(1410)
np.random.seed(1410)
config = SEWDConfig(vocab_size=40, hidden_size=384, num_hidden_layers=4, num_attention_heads=6, intermediate_size=1536, ctc_zero_infinity=True)
model = SEWDForCTC(config).cuda()
optimizer = torch.optim.Adamax(model.parameters(), 1e-3)
model.train()
for step in range(3):
    optimizer.zero_grad(set_to_none=False)
    for part in range(4):
        samples = 24000 + 4000 * ((step + part) % 3)
        x, y = torch.randn(32, samples).cuda(), torch.randint(3, 40, (32, 20)).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_values=x, labels=y).loss / 4
        loss.backward()
    optimizer.step()
    print(step, 4 * loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for samples in (16000, 48000, 20000):
        print(model(input_values=torch.randn(32, samples).cuda()).logits.argmax(-1).shape)
