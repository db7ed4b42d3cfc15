"""Hugging Face's Trainer: bfloat16, gradient accumulation, padding to the longest of a batch, evaluation, a checkpoint."""
import random
import tempfile

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

random.seed(61)
torch.manual_seed(61)


class Texts(torch.utils.data.Dataset):
    def __init__(self, count):
        self.rows = [([random.randrange(5, 20000) for _ in range(random.randrange(20, 256))], random.randrange(4)) for _ in range(count)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i][0], "labels": self.rows[i][1]}


def collate(rows):
    longest = max(len(r["input_ids"]) for r in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for i, r in enumerate(rows):
        n = len(r["input_ids"])
        ids[i, :n] = torch.tensor(r["input_ids"])
        mask[i, :n] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([r["labels"] for r in rows])}


model = DistilBertForSequenceClassification(DistilBertConfig(vocab_size=20000, num_labels=4))
with tempfile.TemporaryDirectory() as folder:
    options = TrainingArguments(
        folder, per_device_train_batch_size=16, per_device_eval_batch_size=48, gradient_accumulation_steps=3, max_steps=8, bf16=True,
        learning_rate=5e-5, eval_strategy="steps", eval_steps=4, logging_steps=4, save_strategy="no", report_to="none", dataloader_num_workers=0,
        seed=61, disable_tqdm=True)
    trainer = Trainer(model=model, args=options, train_dataset=Texts(512), eval_dataset=Texts(120), data_collator=collate)
    print(trainer.train().training_loss)
