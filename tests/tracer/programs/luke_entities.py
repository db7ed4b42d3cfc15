"""Hidden words and hidden entities with transformers' LUKE in bfloat16 weights: NAdam, batches of 24, gradients kept as zeros, an evaluation in between."""
import torch
from transformers import LukeConfig, LukeForMaskedLM

torch.manual_seed(1614)
config = LukeConfig(vocab_size=14000, entity_vocab_size=20000, hidden_size=384, entity_emb_size=128, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536, max_position_embeddings=258)
model = LukeForMaskedLM(config).to("cuda", torch.bfloat16)
optimizer = torch.optim.NAdam(model.parameters(), 3e-4)


def texts(words=192, entities=16):
    """Texts of several lengths; each entity covers one to four words."""
    ids, mask, labels = torch.randint(3, 14000, (24, words)), torch.ones(24, words, dtype=torch.long), torch.full((24, words), -100)
    names, places, hidden = torch.randint(2, 20000, (24, entities)), torch.full((24, entities, 4), -1), torch.full((24, entities), -100)
    for k in range(24):
        length = words - 4 * k
        ids[k, length:], mask[k, length:] = 1, 0
        for e in range(entities):
            places[k, e, :1 + (e + k) % 4] = torch.arange(1 + (e + k) % 4) + 2 + e * (length // entities)
    word, entity = (torch.rand(24, words) < 0.15) & (mask == 1), torch.rand(24, entities) < 0.3
    labels[word], hidden[entity] = ids[word], names[entity]
    ids[word], names[entity] = 4, 1
    rest = {"attention_mask": mask, "labels": labels, "entity_ids": names, "entity_attention_mask": torch.ones_like(names), "entity_position_ids": places, "entity_labels": hidden}
    return {"input_ids": ids.cuda(), **{name: z.cuda() for name, z in rest.items()}}


for step in range(5):
    model.train()
    optimizer.zero_grad(set_to_none=False)
    loss = model(**texts()).loss
    loss.backward()
    optimizer.step()
    print(step, loss.item())
    if step % 2:
        model.eval()
        with torch.no_grad():
            out = model(**texts())
            print("words", out.mlm_loss.item(), "entities", out.mep_loss.item())
