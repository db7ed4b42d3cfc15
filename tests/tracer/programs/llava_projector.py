"""A small LLaVA of transformers: a frozen CLIP tower, the projector and a Llama trained on pictures among the words, bfloat16 weights with AdamW, answers only in the loss, then an answer."""
import torch
from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

torch.manual_seed(1210)
PICTURE = 31999
vision = CLIPVisionConfig(hidden_size=512, intermediate_size=2048, num_hidden_layers=8, num_attention_heads=8, image_size=224, patch_size=14, projection_dim=512)
text = LlamaConfig(vocab_size=32000, hidden_size=768, intermediate_size=2048, num_hidden_layers=8, num_attention_heads=12, num_key_value_heads=4, max_position_embeddings=2048)
model = LlavaForConditionalGeneration(LlavaConfig(vision_config=vision, text_config=text, image_token_index=PICTURE, image_seq_length=256)).to(torch.bfloat16).cuda()
for name, p in model.named_parameters():
    p.requires_grad = "vision_tower" not in name
own = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(own, 5e-5)


def batch(count, words):
    ids = torch.randint(5, 31000, (count, 1 + 256 + words))
    ids[:, 1:257] = PICTURE
    labels = ids.clone()
    labels[:, :257 + words // 2] = -100
    return torch.randn(count, 3, 224, 224, dtype=torch.bfloat16), ids, labels


model.train()
for step in range(6):
    pixels, ids, labels = (v.cuda() for v in batch(8, (120, 200, 88)[step % 3]))
    loss = model(input_ids=ids, pixel_values=pixels, attention_mask=torch.ones_like(ids), labels=labels).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(own, 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(step, loss.item())
model.eval()
with torch.inference_mode():
    pixels, ids, _ = (v.cuda() for v in batch(4, 24))
    print(model.generate(input_ids=ids, pixel_values=pixels, attention_mask=torch.ones_like(ids), max_new_tokens=12, min_new_tokens=12, do_sample=False).shape)
