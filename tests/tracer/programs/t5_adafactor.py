"""T5 (size small), float32, Adafactor, source and target lengths vary."""
import random

import torch
from transformers import T5Config, T5ForConditionalGeneration
from transformers.optimization import Adafactor


def main():
    random.seed(7)
    torch.manual_seed(7)
    config = T5Config(d_model=512, d_ff=2048, num_layers=6, num_heads=8, decoder_start_token_id=0)
    model = T5ForConditionalGeneration(config).cuda().train()
    optimizer = Adafactor(model.parameters(), scale_parameter=True, relative_step=True, warmup_init=True, lr=None)
    for step in range(10):
        batch, source, target = random.choice([8, 16]), random.randrange(100, 512), random.randrange(20, 160)
        ids = torch.randint(1, 32000, (batch, source), device="cuda")
        mask = torch.ones_like(ids)
        mask[:, source * 3 // 4:] = 0
        labels = torch.randint(1, 32000, (batch, target), device="cuda")
        labels[:, -5:] = -100
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 5 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
