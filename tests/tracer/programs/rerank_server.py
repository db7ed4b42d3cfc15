"""A server that ranks passages for questions: a cross-encoder of transformers (XLM-RoBERTa) in half precision, requests of different lengths put in buckets, a warm-up, padding on the card, the best few copied back."""
import torch
from transformers import XLMRobertaConfig, XLMRobertaForSequenceClassification

torch.manual_seed(1219)
config = XLMRobertaConfig(vocab_size=120000, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, max_position_embeddings=514, type_vocab_size=1, num_labels=1, pad_token_id=1)
model = XLMRobertaForSequenceClassification(config).half().cuda().eval()
state = 12345


def draw(low, high):
    global state
    state = (1103515245 * state + 12345) % 2 ** 31
    return low + (state >> 8) % (high - low)


@torch.inference_mode()
def score(passages):
    order = sorted(range(len(passages)), key=lambda i: len(passages[i]))
    scores = torch.empty(len(passages), device="cuda")
    while order:
        longest = -(-len(passages[order[-1]]) // 64) * 64
        count = max(1, 16384 // longest)
        now, order = order[-count:], order[:-count]
        rows = torch.nn.utils.rnn.pad_sequence([passages[i].cuda(non_blocking=True) for i in now], batch_first=True, padding_value=1)
        logits = model(input_ids=rows, attention_mask=(rows != 1).long()).logits
        scores[torch.tensor(now, device="cuda")] = logits[:, 0].float()
    return scores


for length in (128, 512):
    score([torch.randint(5, 120000, (length,)) for _ in range(8)])
for request in range(10):
    question = torch.randint(5, 120000, (draw(8, 40),))
    passages = [torch.cat([question, torch.randint(5, 120000, (draw(40, 450),))]) for _ in range(draw(30, 160))]
    scores = score(passages)
    best = scores.topk(5)
    print(request, len(passages), best.indices.tolist()[0] >= 0)
