"""Autoformer of transformers forecasts the load of a grid: series are decomposed, attention is a correlation by Fourier transforms, a distribution is learned and sampled."""
import torch
from transformers import AutoformerConfig, AutoformerForPrediction

torch.manual_seed(1309)
config = AutoformerConfig(
    prediction_length=96, context_length=192, label_length=48, input_size=1, lags_sequence=[1, 2, 3, 24, 48], num_time_features=4, num_static_categorical_features=1,
    cardinality=[370], embedding_dimension=[16], d_model=256, encoder_layers=3, decoder_layers=2, encoder_attention_heads=8, decoder_attention_heads=8,
    encoder_ffn_dim=1024, decoder_ffn_dim=1024, encoder_layerdrop=0.0, decoder_layerdrop=0.0, num_parallel_samples=20, moving_average=25)
model = AutoformerForPrediction(config).cuda()
optimizer = torch.optim.NAdam(model.parameters(), 6e-4)
past = 192 + 48


def batch(n):
    return {
        "past_values": torch.rand(n, past) + 0.5, "past_time_features": torch.randn(n, past, 4), "past_observed_mask": torch.ones(n, past),
        "static_categorical_features": torch.randint(0, 370, (n, 1)), "future_values": torch.rand(n, 96) + 0.5, "future_time_features": torch.randn(n, 96, 4)}


model.train()
for step in range(8):
    loss = model(**{k: v.cuda() for k, v in batch(96).items()}).loss
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    rows = {k: v.cuda() for k, v in batch(96).items()}
    rows.pop("future_values")
    for _ in range(2):
        print(model(**rows, future_values=torch.rand(96, 96, device="cuda") + 0.5).loss.item())
