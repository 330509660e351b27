# %% [markdown] slide="slide"
# # 10 · Training for real
#
# A network has been trained on 90 points, and it gives the right class for every
# one of them. Is it good on new points as well?
#
# > **The question of this chapter:** how do you tell learning from memorising,
# > when do you stop, and how do you save what has been learned?

# %% [markdown] slide="notes"
# 45 minutes: question 6 (step through the map slowly), one batch 4, exercise 1
# live 12, confusion and gap 7, checkpoint 8, fine-tuning 4, traps 4.

# %% keep=true varies=true slide="more" show="output"
import copy

import toytorch as torch
from course import check, hint, look, milestone, setup, use
from toytorch import nn, viz
from toytorch.vision import datasets

setup()
dice = torch.Generator().manual_seed(0)
points, kinds = datasets.spirals(90, noise=0.4, generator=dice)
others = datasets.spirals(600, noise=0.4, generator=dice)


def small_net():
    return nn.Sequential(nn.Linear(2, 64), nn.ReLU(),
                         nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))


torch.manual_seed(0)
net, moments = small_net(), {}
optimizer = torch.optim.Adam(net.parameters(), 0.02)
for epoch in range(641):
    if epoch in (0, 5, 10, 20, 40, 80, 160, 320, 640):
        moments[f"epoch {epoch}"] = copy.deepcopy(net)
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(points), kinds).backward()
    optimizer.step()
viz.boundary_steps(points, kinds, moments, unseen=others)

# %% [markdown]
# Press *Next*. The points are three arms of a spiral, and the background has the
# colour of the network's answer at each place. At epoch 80 every training point
# lies in its own colour.
#
# After that the training loss (dark) goes slowly towards 0. The loss on 600 points
# that are not used for training (orange) **rises**. The network adapts its borders
# to single points, and becomes more and more sure of them.
#
# So there are two losses. The loss on the training points says how well these
# points have been learned. Only the other loss says what to expect of new points.
#
# ### Three sets, not two
#
# You will use the other loss to *decide* something: when to stop, or which of
# three networks to keep. You choose what has the smallest loss on these points.
# After that, this loss is too good as an estimate for new points. So there are
# three sets:
#
# | set | what it is for |
# | --- | --- |
# | training | gradients |
# | validation | decisions: when to stop, which rate, which network |
# | test | one number at the end, after the last decision |
#
# The orange points above will be the validation set for the spirals. The test set
# is drawn now and not used until the end.

# %%
final = datasets.spirals(3000, noise=0.4, generator=dice)

# %% [markdown] slide="slide"
# ## Predict, then run
#
# Now the data are digits, with ten classes. A network that has learned nothing
# should give each class about the same probability. **Write down:** what is its
# cross entropy then? (The loss is $-\log$ of the probability of the right class.)

# %% [markdown] slide="notes"
# Write the number down: minus the logarithm of one tenth. If the first loss
# is another one, something is wrong.

# %%
all_images, all_labels = datasets.digits(train=True)
images, labels = all_images[:1200], all_labels[:1200]  # to train
choose_images, choose_labels = all_images[1200:], all_labels[1200:]  # 237
test_images, test_labels = datasets.digits(train=False)  # 360, for the end


# %% slide="more"
def network():
    """A small convolutional network for digits of 8 x 8 pixels."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 16, 4, 4)
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(),  # (B, 128)
        nn.Dropout(0.3), nn.Linear(128, 10))


# %% slide="more"
torch.manual_seed(0)
model = network()
with torch.no_grad():
    loss = nn.functional.cross_entropy(model.eval()(images), labels)
print(f"loss {loss.item():.1f}, log(10) = {torch.tensor(10.).log():.1f}")

# %% [markdown]
# If the loss of an untrained network is not close to $\log(\text{classes})$,
# something is wrong: the labels, the last layer, or the loss. One line is enough to
# check it.

# %% [markdown] slide="slide"
# ## Play: first, one batch
#
# A network that cannot learn **twenty** examples by heart will not learn a
# thousand. Try this first, each time. It takes a second and finds many mistakes.

# %% [markdown] slide="notes"
# Twenty examples by heart. If this fails, more data will not help: look for
# the bug first.

# %% slide="more" varies=true
few, theirs = images[:20], labels[:20]
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
model.train()
for step in range(41):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(few), theirs)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step:2}  loss {loss.item():.4f}")

# %% [markdown]
# It can. This test finds mistakes in the *network* and in the loop. It does not find
# mistakes in the data: twenty examples with wrong labels can be learned by heart as
# well. To check the data, look at the inputs and labels that the network gets.
#
# ### The loop, in the framework
#
# You have written the loop by hand several times now. `toytorch.trainer` has
# one in the manner of Lightning: a `TrainerModule` says what a step is, and the
# `Trainer` does the rest.

# %% [markdown] slide="subslide"
# ## A module says what a step is

# %% [markdown] slide="notes"
# A module that says what a step is. The loop, the devices and the checkpoints
# are the trainer's work.

# %% slide="more"
from toytorch.trainer import Callback, Trainer, TrainerModule
from toytorch.utils.data import DataLoader, TensorDataset


class Spiral(TrainerModule):
    def __init__(self):
        super().__init__()
        self.net = small_net()

    def training_step(self, batch, number):
        points, kinds = batch
        return nn.functional.cross_entropy(self.net(points), kinds)

    def validation_step(self, batch, number):
        points, kinds = batch
        loss = nn.functional.cross_entropy(self.net(points), kinds)
        self.log("val_loss", loss)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 0.02)


# %% slide="subslide"
torch.manual_seed(0)
spiral = Spiral()
train = DataLoader(TensorDataset(points, kinds), 30, shuffle=True)
held_back = DataLoader(TensorDataset(*others), 600)  # the validation set
trainer = Trainer(max_epochs=5, enable_progress_bar=False)
trainer.fit(spiral, train, held_back)
print(trainer.global_step, "steps; logged:", *trainer.callback_metrics)

# %% [markdown] slide="notes"
# Read the names that were logged. The validation loss is among them, and the
# exercise about stopping decides by it.

# %% [markdown] slide="slide"
# ## Build
#
# 1. **The training loop**, with its two modes
# 2. **A checkpoint** from which training goes on exactly
# 3. **When to stop**
# 4. **Freeze** what somebody else has trained
# 5. **A convolution** and **a trainer** for your own package

# %% [markdown] slide="notes"
# Exercise 1 live. Write it wrong on purpose, once for each mutant the room
# proposes, and read the panel together. Exercise 2: collect on the whiteboard
# what has to be in the file before anyone opens the prompt.

# %% exercise="training.fit" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty minutes. Two modes, two halves: train on one, judge on the other
# without gradients.

# %% check="training.fit" points=4

# %% exercise="training.checkpoint" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifteen minutes. Model, optimizer, schedule and generator: without any of
# them it does not go on exactly.

# %% check="training.checkpoint" points=3

# %% exercise="training.patience" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Ten minutes. Below the best by more than the tolerance, counted in a row.
# Trace five losses on the whiteboard.

# %% check="training.patience" points=2

# %% exercise="training.freeze" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Ten minutes. Frozen parts are set to evaluation too: a batch norm changes
# its averages in training, gradient or not.

# %% check="training.freeze" points=2

# %% [markdown] slide="slide"
# ## Plug in: your loop reads digits
#
# Three networks of the same kind are trained: with 100 digits, with 400 and with
# all 1,200. **Predict** for each: what share of its training digits does it read
# right in the end, and what share of the 237 validation digits?

# %% [markdown] slide="notes"
# Predict six numbers before the picture. The seen digits are the easy half.

# %%
train_on = use("training.fit")
held_out = DataLoader(TensorDataset(choose_images, choose_labels), 237)


def accuracy(model, images, labels):
    """The share that is read right, in evaluation mode."""
    model.eval()
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def curves(count, epochs):
    """Train on the first digits; accuracies on these and on others."""
    torch.manual_seed(0)
    model, seen, unseen = network(), [], []
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    loader = DataLoader(TensorDataset(images[:count], labels[:count]),
                        batch_size=50, shuffle=True)
    for _ in range(epochs):
        (epoch,) = train_on(model, loader, held_out, optimizer, 1)
        seen.append(accuracy(model, images[:count], labels[:count]))
        unseen.append(epoch["accuracy"])
    return model, seen, unseen


# %% [markdown] slide="subslide"
# ## Learning curves: the gap

# %% [markdown] slide="notes"
# The gap between the two curves closes with more data. Ask what would close
# it with the same data.

# %%
import matplotlib.pyplot as plt

# %% slide="more" folded=true varies=true
figure, axes = plt.subplots(1, 3, figsize=(9.5, 3), sharey=True)
for ax, (count, epochs) in zip(axes, ((100, 30), (400, 15), (1200, 9))):
    model, seen, unseen = curves(count, epochs)
    steps = range(1, epochs + 1)
    ax.plot(steps, seen, label="digits it has seen", color="#1c2430")
    ax.plot(steps, unseen, label="validation digits", color="#e2572b")
    ax.set_title(f"{count} digits: {seen[-1]:.1%} and {unseen[-1]:.1%}",
                 fontsize=10)
    ax.set_xlabel("epoch")
    ax.set_ylim(0.4, 1.01)
axes[0].set_ylabel("share read right")
axes[0].legend(loc="lower right")
figure.tight_layout()
plt.show()

# %%
print("after all 1,200: more than 95 % for validation?", unseen[-1] > 0.95)

# %% [markdown]
# The distance between the two lines is the **gap**. The network on the left
# knows its hundred digits by heart and misreads some others. More data makes the
# gap smaller, and it is the most reliable means. Others are a smaller network,
# dropout, weight decay, changed pictures (chapter 09), and stopping in time.
#
# By the validation digits we choose the third network. Nothing about it will be
# changed from now on, so we may look at the test digits, once.
#
# The picture below reports how many of the 360 it reads right, and which ones it
# confuses. It is a **confusion matrix**: in row `t` and column `a` it has the number
# of digits `t` that were read as `a`.

# %% [markdown] slide="subslide"
# ## What is taken for what

# %% [markdown] slide="notes"
# The diagonal is what was read right. Ask which pair is confused most, and
# whether people would be.

# %% slide="more" show="output" varies=true
with torch.no_grad():
    answers = model.eval()(test_images).argmax(1)
pairs = test_labels * 10 + answers  # one number for each pair
matrix = pairs.bincount(minlength=100).reshape(10, 10)
viz.confusion(matrix)

# %% [markdown]
# **Questions.** Somebody writes `matrix[test_labels, answers] += 1` instead of
# counting pairs. What comes out? What is `minlength` for? And why are counts
# kept, and not shares of each row?
#
# <details><summary>Answers</summary>
#
# Indexing with two tensors reads all places first, then adds 1, then writes all of
# them back. A pair that occurs thirty times is written thirty times with the same
# 1. So the matrix has only zeros and ones.
#
# The result of `bincount` ends at the largest value that occurs. If no 9 was read
# as a 9, it has fewer than 100 elements, and `reshape` fails.
#
# Counts of several batches can be added up. Shares cannot, and for a class that
# does not occur they are 0/0.
#
# </details>
#
# ### Stopping in time
#
# Here your `Patience` is used in a callback of the `Trainer`. After each epoch it
# gets the validation loss of the spirals. When it stops the training, the best
# epoch is some epochs ago. So the callback keeps a copy of the network from the
# best epoch.

# %% [markdown] slide="subslide"
# ## Your patience, in the Trainer

# %% [markdown] slide="notes"
# Four seeds, because one would prove nothing. Compare the epochs at which
# each stopped.

# %%
class StopInTime(Callback):
    def __init__(self, patience):
        self.judge, self.kept = use("training.patience")(patience), None

    def on_train_epoch_end(self, trainer, module):
        loss = trainer.callback_metrics["val_loss"]
        if self.judge.stop(loss):
            trainer.should_stop = True
        if self.judge.best == loss:
            self.kept = copy.deepcopy(module.net)


# %% [markdown]
# The result of one training depends on its random initial weights, so there are
# four trainings with different ones. The best validation loss is *chosen*, as the
# smallest of many. **Predict:** will the loss on the test points be larger or
# smaller?

# %% slide="more" varies=true
found = []
for seed in range(4):
    torch.manual_seed(seed)
    watch = StopInTime(patience=20)
    trainer = Trainer(max_epochs=640, callbacks=watch,
                      enable_progress_bar=False)
    trainer.fit(Spiral(), train, held_back)
    with torch.no_grad():
        loss = nn.functional.cross_entropy(watch.kept(final[0]), final[1])
    found.append((float(watch.judge.best), loss.item()))
    print(f"stopped after epoch {trainer.current_epoch:2} of 640:",
          f"validation {found[-1][0]:.3f}, test {found[-1][1]:.3f}")

# %% [markdown]
# A report should give the last column. Its points took part in no decision, and
# the four rows show how much the result depends on the initial weights.
#
# The test loss is *smaller* than the validation loss in each row. There are two
# effects:
#
# * Choosing the smallest of about sixty values makes the validation loss too small.
# * The 600 validation points are a random sample, the same in all rows. They happen
#   to be harder than the 3,000 test points, which makes the validation loss larger.
#
# With this seed the second effect is the larger one. So the result also depends on
# which points are in a set. The smaller the set, the larger is this dependence.
#
# ### Stopped and continued
#
# Two trainings use dropout, a schedule and a shuffled loader. The first one has six
# epochs. The second one stops after three epochs and saves your checkpoint. Then a
# new program with other seeds loads it and continues. **Predict** whether the two
# final weights are close, or exactly the same.

# %% [markdown] slide="subslide"
# ## Six epochs, or three and three

# %% [markdown] slide="notes"
# Bit for bit the same is possible. Ask what is missing if it is only nearly
# the same.

# %%
def run(seed):
    """Everything that a training has, as at the start of a program."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    return model, optimizer, scheduler, generator


def go_on(model, optimizer, scheduler, generator, epochs):
    data = TensorDataset(images[:400], labels[:400])
    loader = DataLoader(data, 50, shuffle=True, generator=generator)
    for _ in range(epochs):
        train_on(model, loader, held_out, optimizer, 1)
        scheduler.step()


# %%
import tempfile
from pathlib import Path

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "digits.pt"
Keeper = use("training.checkpoint")

# %% slide="more"
whole = run(seed=1)
go_on(*whole, epochs=6)

first = run(seed=1)
go_on(*first, epochs=3)
Keeper(*first).save(path)

second = run(seed=99)  # a new program
Keeper(*second).load(path)
go_on(*second, epochs=3)

one, other = whole[0].state_dict(), second[0].state_dict()
print("the same to the last bit:",
      all(torch.equal(one[name], other[name]) for name in one))

# %% [markdown]
# They are exactly the same. This is what the file holds:

# %% [markdown] slide="subslide"
# ## What a checkpoint holds

# %% [markdown] slide="notes"
# Walk through the parts of the file. The optimizer's part is the largest.

# %% slide="more" show="output"
viz.contents(torch.load(path), depth=1)

# %% [markdown]
# The optimizer's state is twice as large as the model; the section *Measure* comes
# back to it. Here is the file with one level more:

# %%
viz.contents(torch.load(path))

# %% [markdown]
# A checkpoint in the *middle* of an epoch also needs the position in the epoch. The
# `Trainer` saves the states of all generators from the beginning of the epoch, and
# the number of batches that were done. When it continues, the loader draws the same
# order again, and the `Trainer` skips those batches.

# %% [markdown] slide="slide"
# ### Fine-tuning a trained network
#
# `lenet(weights="digits")` has been trained to read the ten digits. Our question is
# another one: is a digit **odd or even**? We have only 60 examples. We keep its
# convolutions, which find the features, and give it a new last layer.
#
# Its weights were trained on all 1,437 training digits, our validation digits
# included. Only the test digits are new to it. So the comparison uses these, and
# all settings were fixed before.

# %% [markdown] slide="notes"
# Sixty examples are few. The convolutions are kept, and only the head is
# learned.

# %%
from toytorch.vision.models import lenet

odd, test_odd = labels % 2, test_labels % 2
sixty = DataLoader(TensorDataset(images[:60], odd[:60]), 10, shuffle=True)
choose = DataLoader(TensorDataset(choose_images, choose_labels % 2), 237)


def odd_or_even(pretrained):
    """Train on 60 digits; the share of the test digits that is right."""
    torch.manual_seed(0)
    model = lenet(weights="digits") if pretrained else lenet(size=8)
    model.classifier = nn.Linear(64, 2)
    parameters = list(model.parameters())
    if pretrained:
        parameters = use("training.freeze")(model, "classifier")
    optimizer = torch.optim.Adam(parameters, 1e-2)
    train_on(model, sixty, choose, optimizer, 30)
    numbers = sum(p.numel() for p in parameters)
    return model, numbers, accuracy(model, test_images, test_odd)


# %% slide="more" varies=true
alone, numbers, share = odd_or_even(pretrained=False)
print(f"from nothing:      {numbers:4} numbers learned, {share:.1%} right")
tuned, numbers, share = odd_or_even(pretrained=True)
print(f"with LeNet's eyes: {numbers:4} numbers learned, {share:.1%} right")

# %% [markdown]
# The second network has trained only 130 parameters, and it reads better.
#
# There is one danger: `model.train()` in your loop sets all parts to training mode,
# also the frozen ones. LeNet has neither dropout nor batch normalisation, so this
# changes nothing here. In a network that has them, call `.eval()` on the frozen
# parts again after `model.train()`.
#
# Training is also cheaper. The frozen part gets no gradient, so it is not in the
# graph, and **nothing is saved** for it.

# %% [markdown] slide="subslide"
# ## What the graph keeps for the backward pass

# %% [markdown] slide="notes"
# Frozen layers keep nothing for the backward pass. So fine-tuning needs less
# memory as well.

# %% slide="more"
def saved_bytes(result):
    """What all nodes behind a result keep for backward."""
    kept, seen, stack = {}, set(), [result.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        stack.extend(target for target, _ in node.next_functions)
        kept |= {id(value): value for _, value in node.saved_items()
                 if isinstance(value, torch.Tensor)}
    return sum(v.numel() * v.element_size() for v in kept.values())


for name, model in (("all trained", alone), ("eyes frozen", tuned)):
    print(f"{name}: {saved_bytes(model(images[:60])):7,} bytes saved")

# %% [markdown] slide="slide"
# ## Your own package: a convolution, and digits
#
# A convolution is the last layer that your package needs to read pictures. Its
# windows come from your `Layout` of chapter 02, and it is a `Function` as in
# chapter 06.

# %% [markdown] slide="notes"
# The convolution joins two earlier files: windows from the layout, and a
# Function for the derivative.

# %%
import numpy as np

from mytorch.function import Function
from mytorch.layout import Layout
from mytorch.tensor import Tensor

# %% exercise="training.conv" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Forty minutes, homework. Forward is one product over all windows. Backward
# adds each window's share to its place.

# %% check="training.conv" points=5

# %% [markdown]
# The last exercise puts the chapter together: a step that refuses NaN and clips,
# measuring in evaluation mode, early stopping that keeps the best parameters, and a
# state from which a training goes on. It drives your optimizer of chapter 08 and your
# loader of chapter 09.

# %% exercise="training.package" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifty minutes, homework. Go through the trace of patience on the whiteboard: which
# epoch's parameters are left?

# %% check="training.package" points=6

# %% [markdown] slide="subslide"
# ## Milestone: digits on your own package
#
# This program uses your convolution, trainer, loader, loss, optimizer, and NumPy. There
# are 1,200 images for training, 300 for validation, and 297 for one test at the
# end.

# %% [markdown] slide="notes"
# Predict the share of test digits. They are looked at once, at the end.

# %% slide="more" show="output" varies=true
milestone(10)

# %% [markdown] slide="slide"
# ## Look inside
#
# How many random generators can a program use? toytorch's `Trainer` saves the states
# of four:

# %% [markdown] slide="notes"
# Four sources of chance: toytorch's, Python's, NumPy's, and the loader's own
# generators. Forget one and the run cannot be repeated.

# %% slide="more" show="output"
from toytorch.trainer import random_state

look(random_state.capture)

# %% [markdown]
# This is everything that it puts into a checkpoint, beside yours:

# %%
from toytorch.trainer import checkpoint

look(checkpoint.collect, Checkpoint)

# %% [markdown]
# And this is its early stopping. It has more conditions: it can also stop when a
# good value is reached, or when a value is hopeless:

# %%
from toytorch.trainer import EarlyStopping

look(EarlyStopping._reason, Patience)

# %% [markdown]
# ### TensorBoard
#
# TensorBoard draws curves while a training runs, in a browser. It needs the
# extra `pip install "toytorch[tensorboard]"`. Without it, the numbers go into a
# CSV file here.

# %%
from toytorch.trainer.loggers import CSVLogger
from toytorch.utils.tensorboard import SummaryWriter

_, _, unseen = curves(100, 5)
try:
    with SummaryWriter(f"{folder.name}/runs") as writer:
        for epoch, share in enumerate(unseen):
            writer.add_scalar("accuracy/unseen", share, epoch)
        writer.add_histogram("weights/first", tuned.features[0].weight)
except ImportError:
    logger = CSVLogger(f"{folder.name}/runs")
    for epoch, share in enumerate(unseen):
        logger.log_metrics({"accuracy": share}, epoch)
    logger.save()
files = [p for p in Path(folder.name, "runs").rglob("*") if p.is_file()]
print("something was written:", sum(p.stat().st_size for p in files) > 100)

# %% [markdown]
# In a terminal, `tensorboard --logdir runs` shows it at
# `http://localhost:6006`. A `Trainer` writes there by itself with
# `logger=TensorBoardLogger("runs")`.

# %% [markdown] slide="slide"
# ## Measure: how large is a checkpoint?
#
# A network with $n$ bytes of parameters. **Predict** the size of all that has
# to be saved, as a multiple of $n$: with plain SGD, with momentum, with Adam.

# %% [markdown] slide="notes"
# Predict the three multiples. Adam's two averages make the file three times
# as large.

# %%
def tensor_bytes(value):
    """The bytes of all tensors in nested dictionaries."""
    if isinstance(value, dict):
        return sum(tensor_bytes(part) for part in value.values())
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    return 0


# %% slide="more"
SGD, Adam = torch.optim.SGD, torch.optim.Adam
for name, make in (("SGD     ", lambda p: SGD(p, 0.1)),
                   ("momentum", lambda p: SGD(p, 0.1, momentum=0.9)),
                   ("Adam    ", lambda p: Adam(p, 1e-3))):
    model = network()
    optimizer = make(model.parameters())
    nn.functional.cross_entropy(model(few), theirs).backward()
    optimizer.step()
    weights = tensor_bytes(model.state_dict())
    memory = tensor_bytes(optimizer.state_dict()["state"])
    print(f"{name} {(weights + memory) / weights:.1f} times the model")

# %% [markdown]
# Momentum keeps one element for each parameter, and Adam keeps two. For a large
# model this state is most of the file, and much of the memory during training. If
# you only want to *use* the model, save `model.state_dict()` alone.

# %% [markdown] slide="slide"
# ## Traps
#
# Run these on purpose. Somebody wants to keep the best weights:

# %% [markdown] slide="notes"
# The state shares memory with the model, so it has moved on. Only the copy is
# the best one.

# %% slide="more"
model = nn.Linear(2, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
best = model.state_dict()  # surely safe now?
kept = copy.deepcopy(best)
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
print("best is as it was:", torch.equal(best["weight"], kept["weight"]))
print("best is the model:", torch.equal(best["weight"], model.weight))

# %% [markdown]
# `state_dict()` copies nothing. Its tensors share the model's memory, so training
# changes them too. Save to a file, or use `copy.deepcopy`.

# %% [markdown] slide="subslide"
# ## One network, two answers

# %% [markdown] slide="notes"
# Dropout and batch norm answer differently in the two modes. Switch to
# evaluation before judging.

# %% slide="more"
model = network()
twice = [model(few[:4]) for _ in range(2)]  # in training mode
print("training mode, the same answer twice:", torch.equal(*twice))
model.eval()
twice = [model(few[:4]) for _ in range(2)]
print("evaluation mode, the same twice:     ", torch.equal(*twice))

# %% [markdown]
# In training mode dropout sets other elements to 0 in each call. Batch
# normalization uses the mean and variance of the batch, and updates its running
# averages, with or without `no_grad`.

# %% [markdown] slide="subslide"
# ## A file for another network

# %% [markdown] slide="notes"
# The message lists each name and both shapes. Ask what one may leave out when
# loading on purpose.

# %% raises=true slide="more"
two = lenet(size=8, num_classes=2)
lenet(size=8).load_state_dict(two.state_dict())

# %% [markdown] slide="subslide"
# ### A file from a stranger
#
# A `.pt` file is a zip archive with the raw values and a pickle. A pickle can name a
# function, which is called when the file is loaded.

# %% [markdown] slide="notes"
# A pickle can call any function. Show the names inside the file: numbers in
# one place, the pickle in another.

# %% slide="more"
import io
import pickle
import zipfile

torch.save({"weights": torch.ones(3)}, path)
print(*(n.split("/", 1)[1] for n in zipfile.ZipFile(path).namelist()))


class Surprise:
    def __reduce__(self):  # how pickle is to bring it back
        return print, ("a stranger's code has run",)


pickle.loads(pickle.dumps(Surprise()))

# %% slide="subslide" raises=true
changed = io.BytesIO()
with zipfile.ZipFile(path) as good, zipfile.ZipFile(changed, "w") as bad:
    for name in good.namelist():
        pickled = name.endswith("data.pkl")
        bad.writestr(name, pickle.dumps(Surprise()) if pickled
                     else good.read(name))
torch.load(io.BytesIO(changed.getvalue()))

# %% [markdown] slide="notes"
# The changed file is refused: only known types are built. Never switch that
# off for a file from a stranger.

# %% [markdown]
# toytorch loads tensors, containers, numbers and strings, and raises an error for
# everything else. PyTorch does the same since 2.6, unless you write
# `weights_only=False`. Each can load the other's files. A `.safetensors` file
# contains no pickle at all.

# %%
folder.cleanup()

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** A network for 26 letters has not been trained. Its loss is 9.1. What should
# it be, and what do you look at first?
#
# <details><summary>Answer</summary>
#
# About log 26 = 3.3, because a network that knows nothing should give all letters
# about the same probability. With 9.1 it is sure of wrong answers: e⁻⁹·¹ is about
# one in nine thousand. Look at the scores of the last layer. They are probably
# too large, for example because inputs are bytes up to 255 or because the weights
# start too large.
#
# </details>
#
# **2.** A thousand networks only guess yes or no. The one that is best on 50
# validation examples is chosen. What does it reach there, and what on new data?
#
# ```python
# draw = np.random.default_rng(0)
# right = draw.random((1000, 50)) < 0.5
# print(right.mean(1).max())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 0.72
# ```
#
# It looks much better than a guess and is right in half of the cases on new data,
# as all of them are. The maximum of many results that depend on chance is too
# good. So the loss of the network that was chosen has to be measured on data that
# took no part in the choice.
#
# </details>
#
# **3.** A network is judged under `no_grad`, but `eval()` is forgotten. What has
# changed afterwards?
#
# ```python
# norm = torch.nn.BatchNorm1d(1)
# with torch.no_grad():
#     norm(torch.tensor([[1.0], [3.0]]))
# print(f"{norm.running_mean.item():.1f}")
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 0.2
# ```
#
# In training mode a batch norm moves its running mean by a tenth towards the
# batch's mean, which is 2. `no_grad` does not prevent it, because the update is
# not a gradient step. So the validation data have entered the model.
#
# </details>
#
# **4.** The rows of this confusion matrix are healthy and ill. What are the accuracy
# and the share of ill people that are found?
#
# ```python
# m = torch.tensor([[90.0, 0.0], [9.0, 1.0]])
# print(f"{(m.diagonal().sum() / m.sum()).item():.2f}",
#       f"{(m[1, 1] / m[1].sum()).item():.2f}")
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 0.91 0.10
# ```
#
# 91 of 100 answers are right, and nine of ten ill people are missed. A network
# that always says *healthy* would be right in 90 % of the cases. If one class is
# rare, the accuracy says little about it, and the rows of the matrix show it.
#
# </details>
#
# **5.** The validation losses are 1.0, 0.8, 0.9, 0.85, 0.6. When does a patience of
# 2 stop, and what would a patience of 3 do?
#
# <details><summary>Answer</summary>
#
# With 2 it stops after the fourth epoch. The third and the fourth are both above
# the best so far, 0.8, although the fourth is better than the third. A patience
# of 3 would reach the fifth epoch, which is a new best and sets the count back.
# A larger patience costs time, and a smaller one may stop too early.
#
# </details>
#
# **6.** A training goes on from a file that holds the weights only. Where is `p`
# after the second step, with the old optimizer and with a fresh one?
#
# ```python
# def step(p, optimizer):
#     p.grad = torch.ones(1)
#     optimizer.step()
#
#
# for kept in (True, False):
#     p = torch.ones(1, requires_grad=True)
#     optimizer = torch.optim.SGD([p], lr=0.1, momentum=0.9)
#     step(p, optimizer)
#     if not kept:
#         optimizer = torch.optim.SGD([p], lr=0.1, momentum=0.9)
#     step(p, optimizer)
#     print(f"{p.item():.2f}")
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 0.71
# 0.80
# ```
#
# The first step moves by 0.1. The old optimizer remembers the velocity 1 and
# moves by 0.1 · (0.9 + 1) = 0.19. The fresh one has a velocity of 0 and moves by
# 0.1 again. So the optimizer's state belongs to a checkpoint.
#
# </details>
#
# **7.** All parameters are frozen. Does the part still change in training mode?
#
# ```python
# part = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
# part.requires_grad_(False)
# before = part[1].running_mean.clone()
# part(torch.tensor([[1.0, 2.0], [3.0, 5.0]]))
# print(torch.equal(before, part[1].running_mean))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# False
# ```
#
# `requires_grad_(False)` concerns parameters. The running mean is a buffer, and a
# batch norm updates it in every call in training mode. A frozen part therefore
# needs `eval()` as well.
#
# </details>
#
# **8.** Network A reads 99 % of its training digits and 80 % of the validation
# digits. Network B reads 62 % and 61 %. Which of these helps which network: more
# data, a larger network, dropout, more epochs?
#
# <details><summary>Answer</summary>
#
# A has a large gap: it knows its training digits by heart. More data and dropout
# make the gap smaller, a larger network or more epochs do not. B has no gap and
# learns too little. It needs a larger network, more epochs or another learning
# rate, and dropout would make it worse.
#
# </details>
#
# **9.** *Chapter 08.* The gradient is 0 and the decay is 0.5. Where do Adam and
# AdamW move a parameter of 1?
#
# ```python
# for kind in (torch.optim.Adam, torch.optim.AdamW):
#     p = torch.ones(1, requires_grad=True)
#     p.grad = torch.zeros(1)
#     kind([p], lr=0.1, weight_decay=0.5).step()
#     print(f"{p.item():.2f}")
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 0.90
# 0.95
# ```
#
# Adam adds the decay to the gradient, which becomes 0.5. Then it divides by the
# root of the mean square, so the step has the length 0.1 whatever the decay is.
# AdamW multiplies the parameter by 1 - 0.1 · 0.5 = 0.95, and Adam's own step is 0.
#
# </details>
#
# **10.** *Chapter 08.* A batch does not fit into memory, so two halves are sent
# backward one after the other. Are the gradients equal?
#
# ```python
# x = torch.tensor([1.0, 2.0, 3.0, 4.0])
# for parts in (x.split(4), x.split(2)):
#     w = torch.ones(1, requires_grad=True)
#     for part in parts:
#         (w * part).mean().backward()
#     print(w.grad.item())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 2.5
# 5.0
# ```
#
# `backward` adds to `.grad`, so the means of the two halves, 1.5 and 3.5, are
# added. The mean over all four is 2.5. Divide the loss of each half by 2, and
# call `zero_grad` and `step` only once for both.
#
# </details>

# %% [markdown] slide="slide"
# ## Beyond
#
# * You compare five optimizers on the validation digits and keep the best. Then
#   you look at the test digits, and the fourth is better there. What do you report?
# * Freeze the convolutions for ten epochs, then train everything with a small rate.
#   Why in this order?
# * Take the mean of the weights of the last ten epochs instead of the last.
#   What about the buffers of batch normalisation?
# * A label is wrong now and then. Which of the 1,200 digits would you look at
#   first, and how does the loss tell you?
#
# **Next:** chapter 11 measures. Where does the time of a step go, and why is a
# sum of three tensors as slow as three sums?

# %% [markdown] slide="notes"
# The first question is about honesty in reporting. The lowest of many numbers
# looks better than it is.
