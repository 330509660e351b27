"""A network of skorch as an estimator of scikit-learn: fit, cross validation, pickle."""

import pickle

import numpy as np
import torch
from sklearn.model_selection import cross_val_score
from skorch import NeuralNetClassifier

torch.manual_seed(0)
X = np.random.RandomState(0).randn(100, 5).astype("float32")
y = (X.sum(1) > 0).astype("int64")


class M(torch.nn.Module):
    def __init__(self, h=8):
        super().__init__()
        self.a = torch.nn.Linear(5, h)
        self.b = torch.nn.Linear(h, 2)

    def forward(self, x):
        return torch.softmax(self.b(torch.relu(self.a(x))), -1)


n = NeuralNetClassifier(M, max_epochs=5, lr=0.1, verbose=0)
n.fit(X, y)
print(n.score(X, y), cross_val_score(n, X, y, cv=3))
print(pickle.loads(pickle.dumps(n)).predict(X[:3]))
