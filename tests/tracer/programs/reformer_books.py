"""Reformer of transformers over long texts: attention by hashes and local attention, reversible layers that compute their inputs again, heads in chunks."""
import torch
from transformers import ReformerConfig, ReformerModelWithLMHead

torch.manual_seed(1308)
config = ReformerConfig(
    attn_layers=["local", "lsh", "local", "lsh", "local", "lsh"], hidden_size=512, num_attention_heads=8, attention_head_size=64, feed_forward_size=1024,
    axial_pos_shape=(32, 64), axial_pos_embds_dim=(128, 384), max_position_embeddings=2048, vocab_size=4000, is_decoder=True, num_hashes=2,
    lsh_attn_chunk_length=64, local_attn_chunk_length=64, chunk_size_lm_head=256, num_buckets=64, hash_seed=7)
model = ReformerModelWithLMHead(config).cuda()
optimizer = torch.optim.Adagrad(model.parameters(), 0.02)
model.train()
for step in range(5):
    ids = torch.randint(1, 4000, (6, 2048)).cuda()
    loss = model(input_ids=ids, labels=ids).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    print(model(input_ids=torch.randint(1, 4000, (4, 1536)).cuda()).logits.shape)
