"""Mamba of transformers without its CUDA kernels: the scan is a loop in Python, Adam with a linear rate, then text from its recurrent state."""
import torch
from transformers import MambaConfig, MambaForCausalLM, get_linear_schedule_with_warmup

torch.manual_seed(1307)
config = MambaConfig(vocab_size=8000, hidden_size=512, num_hidden_layers=4, state_size=16, pad_token_id=0, bos_token_id=1, eos_token_id=2)
model = MambaForCausalLM(config).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
rate = get_linear_schedule_with_warmup(optimizer, 2, 20)
model.train()
for step in range(5):
    ids = torch.randint(3, 8000, (16, 96 + 16 * (step % 2))).cuda()
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    rate.step()
    optimizer.zero_grad()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    out = model.generate(torch.randint(3, 8000, (8, 24)).cuda(), max_new_tokens=20, min_new_tokens=20, do_sample=False)
    print(out.shape)
