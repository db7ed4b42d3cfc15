"""transformers' GPT-2 with the library's Trainer: texts of one length, float16, accumulation, a linear schedule, evaluation at the end."""
import random
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

random.seed(905)
torch.manual_seed(905)


class Texts(torch.utils.data.Dataset):
    def __init__(self, count):
        self.rows = torch.randint(0, 12000, (count, 384))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "labels": self.rows[i]}


model = GPT2LMHeadModel(GPT2Config(vocab_size=12000, n_positions=384, n_embd=512, n_layer=8, n_head=8))
with tempfile.TemporaryDirectory() as folder:
    options = TrainingArguments(folder, per_device_train_batch_size=12, per_device_eval_batch_size=24, gradient_accumulation_steps=2, max_steps=6, bf16=True,
                                learning_rate=2e-4, warmup_steps=2, logging_steps=3, save_strategy="no", report_to="none", dataloader_num_workers=0, disable_tqdm=True, seed=905)
    trainer = Trainer(model=model, args=options, train_dataset=Texts(300), eval_dataset=Texts(72))
    trainer.train()
    print(trainer.evaluate()["eval_loss"])
