"""ESM-2 of transformers on proteins: contact maps from the attention of a frozen lower half, masked residues, float32 with TF32, AdamW, crops of different lengths, then embeddings of long chains in half precision."""
import torch
import torch.nn.functional as F
from torch import nn
from transformers import EsmConfig, EsmForMaskedLM

torch.manual_seed(1212)
torch.backends.cuda.matmul.allow_tf32 = True
config = EsmConfig(vocab_size=33, mask_token_id=32, pad_token_id=1, hidden_size=480, num_hidden_layers=12, num_attention_heads=20, intermediate_size=1920, max_position_embeddings=1026, position_embedding_type="rotary", token_dropout=True, emb_layer_norm_before=False, attn_implementation="eager")
model = EsmForMaskedLM(config).cuda()
for layer in model.esm.encoder.layer[:6]:
    layer.requires_grad_(False)
contact = nn.Linear(12 * 20, 1).cuda()
own = [p for p in [*model.parameters(), *contact.parameters()] if p.requires_grad]
optimizer = torch.optim.AdamW(own, 3e-4, betas=(0.9, 0.98))
model.train()
for step in range(6):
    n, length = ((8, 192), (4, 256), (6, 160))[step % 3]
    ids = torch.randint(4, 24, (n, length)).cuda()
    chosen = (torch.rand(n, length) < 0.15).cuda()
    out = model(input_ids=ids.masked_fill(chosen, 32), attention_mask=torch.ones_like(ids), output_attentions=True)
    loss = F.cross_entropy(out.logits.flatten(0, 1), ids.masked_fill(~chosen, -100).flatten())
    maps = torch.cat(out.attentions, 1)
    maps = maps + maps.transpose(2, 3)
    maps = maps - maps.sum(2, keepdim=True) * maps.sum(3, keepdim=True) / maps.sum((2, 3), keepdim=True)
    near = (torch.rand(n, length, length) < 0.05).float().cuda()
    loss = loss + F.binary_cross_entropy_with_logits(contact(maps.permute(0, 2, 3, 1)).squeeze(3), near)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(own, 1.0)
    optimizer.step()
    print(step, loss.item())
model.eval().half()
with torch.inference_mode():
    for length in (400, 700, 1000):
        ids = torch.randint(4, 24, (4, length), device="cuda")
        print(model.esm(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.mean(1).norm().item())
