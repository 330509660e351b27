"""A LightningModule is trained and validated by the Trainer."""

import torch
import torchvision_operators  # noqa: F401 - before torchvision is imported

# isort: split
import lightning as L
from torch.utils.data import DataLoader, TensorDataset


class M(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(4, 1)

    def training_step(self, b, i):
        x, y = b
        loss = torch.nn.functional.mse_loss(self.l(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, b, i):
        x, y = b
        self.log("val", torch.nn.functional.mse_loss(self.l(x), y))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


torch.manual_seed(0)
x = torch.randn(64, 4)
d = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16)
t = L.Trainer(
    max_epochs=3,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
m = M()
t.fit(m, d, d)
print({k: round(v.item(), 5) for k, v in t.callback_metrics.items()})
