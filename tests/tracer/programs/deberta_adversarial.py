"""Sentences with a DeBERTa of transformers: disentangled attention, virtual adversarial steps on the embeddings, layerwise learning rates, bfloat16 autocast, an early exit when evaluated."""
import torch
import torch.nn.functional as F
from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

torch.manual_seed(310)
config = DebertaV2Config(vocab_size=30000, hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536, relative_attention=True,
                         position_buckets=128, pos_att_type=["p2c", "c2p"], max_position_embeddings=512, num_labels=5, share_att_key=True, norm_rel_ebd="layer_norm")
model = DebertaV2ForSequenceClassification(config).cuda()
groups = [{"params": model.deberta.embeddings.parameters(), "lr": 1e-5}]
groups += [{"params": layer.parameters(), "lr": 2e-5 * 0.9 ** (6 - i)} for i, layer in enumerate(model.deberta.encoder.layer)]
groups += [{"params": [*model.classifier.parameters(), *model.pooler.parameters()], "lr": 1e-4}]
optimizer = torch.optim.AdamW(groups, weight_decay=0.01, foreach=False)


def divergence(a, b):
    return F.kl_div(a.log_softmax(-1), b.log_softmax(-1), log_target=True, reduction="batchmean")


for step in range(6):
    length = (96, 160, 128)[step % 3]
    ids = torch.randint(5, 30000, (12, length), device="cuda")
    mask = (torch.arange(length, device="cuda")[None] < torch.randint(length // 2, length + 1, (12, 1), device="cuda")).long()
    labels = torch.randint(0, 5, (12,), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        words = model.deberta.embeddings.word_embeddings(ids)
        clean = model(inputs_embeds=words, attention_mask=mask).logits
        loss = F.cross_entropy(clean.float(), labels)
        noise = (torch.randn_like(words) * 1e-5).requires_grad_(True)
        far = divergence(model(inputs_embeds=words.detach() + noise, attention_mask=mask).logits.float(), clean.detach().float())
        grad, = torch.autograd.grad(far, noise)
        noise = (grad / (grad.abs().amax(-1, keepdim=True) + 1e-6)).detach() * 1e-3
        loss = loss + divergence(model(inputs_embeds=words + noise, attention_mask=mask).logits.float(), clean.float())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    print(step, loss.item())
model.eval()
with torch.no_grad():
    for batch in (32, 7):
        out = model(torch.randint(5, 30000, (batch, 256), device="cuda"), output_hidden_states=True)
        print(torch.stack(out.hidden_states[1:]).mean((2, 3)).shape)
