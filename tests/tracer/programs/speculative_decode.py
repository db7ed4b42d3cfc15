"""Speculative decoding: a small model proposes four tokens, a large one checks them; caches grow and are cut."""
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

torch.manual_seed(69)
shared = {"vocab_size": 32000, "max_position_embeddings": 2048, "dtype": torch.bfloat16}
large = LlamaForCausalLM(LlamaConfig(hidden_size=1280, intermediate_size=3456, num_hidden_layers=12, num_attention_heads=20, num_key_value_heads=4, **shared)).to("cuda", torch.bfloat16).eval()
small = LlamaForCausalLM(LlamaConfig(hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8, **shared)).to("cuda", torch.bfloat16).eval()
for request in range(3):
    tokens = torch.randint(0, 32000, (4, 180 + 90 * request)).cuda()
    caches = DynamicCache(), DynamicCache()
    with torch.inference_mode():
        for model, cache in zip((large, small), caches):
            model(tokens[:, :-1], past_key_values=cache, use_cache=True)
        for round_ in range(16):
            draft = tokens[:, -1:]
            proposal = []
            for _ in range(4):
                out = small(draft, past_key_values=caches[1], use_cache=True)
                draft = out.logits[:, -1:].argmax(-1)
                proposal.append(draft)
            proposal = torch.cat(proposal, dim=1)
            seen = caches[0].get_seq_length()
            scores = large(torch.cat([tokens[:, -1:], proposal], dim=1), past_key_values=caches[0], use_cache=True).logits.float()
            probability = scores.softmax(-1)
            chosen = probability.argmax(-1)
            agree = (chosen[:, :-1] == proposal).long().cumprod(1).sum(1).min()
            kept = round_ % 3  # a fixed schedule in place of agree
            tokens = torch.cat([tokens, chosen[:, : kept + 1]], dim=1)
            caches[0].crop(seen + kept + 1)
            caches[1].crop(min(seen + kept + 1, caches[1].get_seq_length()))
            if caches[1].get_seq_length() < tokens.shape[1] - 1:
                small(tokens[:, caches[1].get_seq_length() : -1], past_key_values=caches[1], use_cache=True)
    torch.cuda.synchronize()
    print(request, tuple(tokens.shape), agree.item())
