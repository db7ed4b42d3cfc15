"""transformers' Mixtral, small: four experts, two for each token, auxiliary loss, bfloat16, AdamW; which tokens an expert gets depends on the data."""
import torch
from transformers import MixtralConfig, MixtralForCausalLM

torch.manual_seed(907)
config = MixtralConfig(vocab_size=8000, hidden_size=512, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4, num_local_experts=4, num_experts_per_tok=2,
                       max_position_embeddings=512, output_router_logits=True)
model = MixtralForCausalLM(config).to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
for step in range(6):
    ids = torch.randint(0, 8000, (8, 512)).cuda()
    loss = model(input_ids=ids, labels=ids).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
