"""Makes the weights that travel with the package: a LeNet for the 8 x 8 digits, in half a minute.

    python examples/lenet_weights.py [FILE]

Without FILE it writes toytorch/vision/data/lenet_digits.safetensors.
"""

import sys
from pathlib import Path

import toytorch as torch
from toytorch.nn.functional import cross_entropy
from toytorch.serialization import safetensors
from toytorch.trainer import Trainer, TrainerModule
from toytorch.utils.data import DataLoader, TensorDataset
from toytorch.vision import datasets, models, transforms

BESIDE = Path(__file__).parent.parent / "toytorch/vision/data/lenet_digits.safetensors"


class Reader(TrainerModule):
    """A LeNet and how it learns."""

    def __init__(self, epochs: int, batches: int) -> None:
        super().__init__()
        self.net = models.lenet(size=8)
        self.steps = epochs * batches
        self.change = transforms.RandomAffine(
            8, scale=(0.9, 1.1), shear=8, interpolation=transforms.InterpolationMode.BILINEAR
        )

    def training_step(self, batch, batch_idx):
        images, labels = batch
        changed = torch.cat([self.change(few) for few in images.split(8)])
        loss = cross_entropy(self.net(changed), labels, label_smoothing=0.05)
        self.log("loss", loss, prog_bar=True)
        return loss

    def test_step(self, batch, batch_idx):
        images, labels = batch
        self.log("accuracy", (self.net(images).argmax(1) == labels).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2, weight_decay=1e-2)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=self.steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def main(path: Path, epochs: int = 60) -> float:
    """Trains, tests and writes; the share of held-out digits that it reads right."""
    torch.manual_seed(0)
    train = DataLoader(TensorDataset(*datasets.digits(train=True)), batch_size=64, shuffle=True)
    held_out = DataLoader(TensorDataset(*datasets.digits(train=False)), batch_size=360)
    model, trainer = Reader(epochs, len(train)), Trainer(max_epochs=epochs)
    trainer.fit(model, train)
    accuracy = trainer.test(model, held_out)[0]["accuracy"]
    safetensors.save_file(model.net.state_dict(), path, {"trained on": "digits(train=True)"})
    print(f"{100 * accuracy:.2f} % of the held-out digits; the weights are in {path}")
    return accuracy


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else BESIDE)
