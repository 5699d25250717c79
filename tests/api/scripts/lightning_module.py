"""A LightningModule compiled with torch.compile, trained by Lightning's Trainer."""

import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
lightning.pytorch.utilities.disable_possible_user_warnings()


class Small(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        self.seen = 0

    def forward(self, x):
        return self.layers(x)

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.seen += len(x)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("error", (self(x) - y).abs().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


torch.manual_seed(0)
data = TensorDataset(torch.randn(12, 4), torch.randn(12, 1))
model = Small()
compiled = torch.compile(model, backend="eager")
trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)  # fmt: skip
trainer.fit(compiled, DataLoader(data, 4), DataLoader(data, 6))
print(isinstance(compiled, lightning.LightningModule), model.seen, sorted(model.state_dict()))
print({name: f"{value.item():.5f}" for name, value in trainer.callback_metrics.items()})
print(f"{sum(p.sum() for p in model.parameters()).item():.5f}")
