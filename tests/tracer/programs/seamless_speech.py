"""Speech to text with transformers' second Seamless M4T in bfloat16 weights, with checkpointing: AdamW, batches of 16, an evaluation of other lengths at the end."""
import torch
from transformers import SeamlessM4Tv2Config, SeamlessM4Tv2ForSpeechToText

torch.manual_seed(1515)
config = SeamlessM4Tv2Config(vocab_size=16000, hidden_size=384, speech_encoder_layers=6, speech_encoder_attention_heads=6, speech_encoder_intermediate_size=1536, encoder_layers=2,
                             decoder_layers=4, decoder_attention_heads=6, decoder_ffn_dim=1536, max_position_embeddings=1024, pad_token_id=0)
model = SeamlessM4Tv2ForSpeechToText(config).to("cuda", torch.bfloat16)
model.gradient_checkpointing_enable()
optimizer = torch.optim.AdamW(model.parameters(), 2e-4)


def speech(frames, letters):
    x, mask, y = torch.randn(16, frames, 160), torch.ones(16, frames, dtype=torch.long), torch.randint(4, 16000, (16, letters))
    for k in range(1, 16):
        mask[k, frames - 9 * k:], y[k, letters - k:] = 0, -100
    return {"input_features": x.to("cuda", torch.bfloat16), "attention_mask": mask.cuda(), "labels": y.cuda()}


model.train()
for step in range(5):
    loss = model(**speech(384, 48)).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    for frames, letters in ((256, 32), (512, 64), (640, 40)):
        print(frames, model(**speech(frames, letters)).loss.item())
