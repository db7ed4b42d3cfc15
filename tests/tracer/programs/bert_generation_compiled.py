"""A language with transformers' decoder of BertGeneration, compiled, with checkpointing: RMSprop with momentum, products of float32 in TF32, batches of 24, gradients kept as zeros."""
import torch
from transformers import BertGenerationConfig, BertGenerationDecoder

torch.manual_seed(1512)
torch.set_float32_matmul_precision("high")
config = BertGenerationConfig(vocab_size=18000, hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, max_position_embeddings=320, is_decoder=True, use_cache=False)
model = BertGenerationDecoder(config).cuda()
model.gradient_checkpointing_enable()
fast = torch.compile(model)
optimizer = torch.optim.RMSprop(model.parameters(), 5e-5, momentum=0.9)
model.train()
for step in range(5):
    ids = torch.randint(3, 18000, (24, 256)).cuda()
    optimizer.zero_grad(set_to_none=False)
    loss = fast(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    print(step, loss.item())
