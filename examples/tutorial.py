"""The first steps of PyTorch's own tutorial, here: data, a model, training, saving, loading.

    python examples/tutorial.py

With `import torch` in the first import's place it runs on PyTorch (but for the data set).
"""

import tempfile
from pathlib import Path

import toytorch as torch
from toytorch import nn
from toytorch.utils.data import DataLoader, Dataset
from toytorch.vision.datasets import digits


class DigitImages(Dataset):
    """Pictures and labels one by one: what a DataLoader needs is a length and an item."""

    def __init__(self, train: bool) -> None:
        self.images, self.labels = digits(train=train)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.images[index], self.labels[index]


class NeuralNetwork(nn.Module):
    """Pixels to ten scores, through two hidden layers."""

    def __init__(self) -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(8 * 8, 128),
            nn.ReLU(),
            nn.Linear(128, 128),
            nn.ReLU(),
            nn.Linear(128, 10),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.flatten(x)
        logits = self.linear_relu_stack(x)
        return logits


def train_loop(dataloader, model, loss_fn, optimizer):
    """One pass over the training data."""
    size = len(dataloader.dataset)
    model.train()
    for batch, (X, y) in enumerate(dataloader):
        # Compute the prediction and how wrong it is
        pred = model(X)
        loss = loss_fn(pred, y)

        # Backpropagation
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

        if batch % 10 == 0:
            current = batch * dataloader.batch_size + len(X)
            print(f"loss: {loss.item():>7f}  [{current:>5d}/{size:>5d}]")


def test_loop(dataloader, model, loss_fn):
    """One pass over the held-out data; the share of right answers."""
    model.eval()
    test_loss, correct = 0.0, 0.0
    with torch.no_grad():
        for X, y in dataloader:
            pred = model(X)
            test_loss += loss_fn(pred, y).item()
            correct += (pred.argmax(1) == y).type(torch.float).sum().item()
    test_loss /= len(dataloader)
    correct /= len(dataloader.dataset)
    print(f"Test Error: \n Accuracy: {100 * correct:>0.1f}%, Avg loss: {test_loss:>8f} \n")
    return correct


def main(epochs: int = 5, folder: str | None = None) -> float:
    """The whole tutorial; the share of right answers of the reloaded model."""
    torch.manual_seed(0)
    train_dataloader = DataLoader(DigitImages(train=True), batch_size=64, shuffle=True)
    test_dataloader = DataLoader(DigitImages(train=False), batch_size=64)
    for X, y in test_dataloader:
        print(f"Shape of X [N, C, H, W]: {X.shape}")
        print(f"Shape of y: {y.shape} {y.dtype}")
        break

    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"Using {device} device")
    model = NeuralNetwork()
    print(model)

    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for t in range(epochs):
        print(f"Epoch {t + 1}\n-------------------------------")
        train_loop(train_dataloader, model, loss_fn, optimizer)
        test_loop(test_dataloader, model, loss_fn)
    print("Done!")

    with tempfile.TemporaryDirectory() as somewhere:
        path = Path(folder or somewhere) / "model.pth"
        torch.save(model.state_dict(), path)
        print("Saved PyTorch Model State to model.pth")
        model = NeuralNetwork()
        print(model.load_state_dict(torch.load(path, weights_only=True)))

    model.eval()
    x, y = DigitImages(train=False)[0]
    with torch.no_grad():
        pred = model(x[None])
        print(f'Predicted: "{pred[0].argmax(0)}", Actual: "{y}"')
    return test_loop(test_dataloader, model, loss_fn)


if __name__ == "__main__":
    main()
