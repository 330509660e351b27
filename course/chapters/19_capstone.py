# %% [markdown] slide="slide"
# # 19 · Capstone: a GPT on what you built
#
# A GPT reads a text and says which letter comes next. Repeat that, and it
# writes. In this chapter a small one learns a story, and everything it runs
# on is your package: Tensor, Function, Module, AdamW, and three new layers.
#
# > **The question of this chapter:** how can a network look back at a text of
# > any length, and find in it what matters for the next letter?

# %% [markdown] slide="notes"
# 45 minutes: question 5, play 10, the trace of attention on the whiteboard 10,
# exercise 3 live up to the mask 10, milestone 5, traps 5. Embedding and
# layer norm are homework. Let the class predict the loss of guessing first.

# %% keep=true slide="more" show="output"
import matplotlib.pyplot as plt
import numpy as np

from course import check, hint, look, milestone, setup, use
from mytorch.function import Function
from mytorch.linear import Linear
from mytorch.module import Module
from mytorch.tensor import Tensor

setup()
text = "the cat sat on"
draw = np.random.default_rng(2)
vectors = {letter: draw.normal(size=16) for letter in sorted(set(text))}
x = np.stack([vectors[letter] for letter in text])
scores = x @ x.T / np.sqrt(16)
scores[np.triu_indices(len(text), 1)] = -np.inf
weights = np.exp(scores - scores.max(1, keepdims=True))
weights /= weights.sum(1, keepdims=True)
figure, axes = plt.subplots(figsize=(5.4, 4.6))
axes.imshow(weights, cmap="Oranges")
shown = text.replace(" ", "␣")
axes.set_xticks(range(len(text)), shown)
axes.set_yticks(range(len(text)), shown)
axes.set_xlabel("looks at")
axes.set_ylabel("place in the text")
axes.grid(False)
axes.set_title("Attention weights; nobody looks ahead")
plt.show()

# %% [markdown]
# Each row belongs to one letter of the text and sums to 1. A dark cell means
# that the row's letter takes over much from the column's letter. The triangle
# above the diagonal is empty: there lie the letters that are still to come.
# Here every letter has a random vector, and letters attend to equal ones. A
# trained network finds more useful vectors.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# The story below has 57 different letters. A model gives each a probability,
# and its loss is −log of what it gave to the letter that came. **Predict** the
# loss (1) of a model that gives all letters the same probability, (2) of one
# that knows how often each letter occurs, (3) of one that also knows the letter
# before.

# %% [markdown] slide="notes"
# Three losses, each below the one before. The first is the logarithm of the
# number of letters.

# %% slide="more" show="output"
from toytorch.vision import datasets

story = datasets.text()
letters = sorted(set(story))
data = np.array([letters.index(letter) for letter in story])
count = len(letters)
often = np.bincount(data, minlength=count) / len(data)
pairs = np.full((count, count), 0.1)
np.add.at(pairs, (data[:-1], data[1:]), 1)
pairs /= pairs.sum(1, keepdims=True)
print(f"same for all: {np.log(count):.2f}")
print(f"frequencies:  {-np.log(often[data]).mean():.2f}")
print(f"letter pairs: {-np.log(pairs[data[:-1], data[1:]]).mean():.2f}")

# %% [markdown]
# The unit is *nats a letter*: natural logarithms. To get below the last number,
# a model has to look back further than one letter. A table for pairs has 57²
# entries; one for five letters would have 57⁵, more than 600 million, and the
# story has 12,880 letters. So the model must compute instead of count.

# %% [markdown] slide="slide"
# ## Play: attention by hand
#
# Three letters, and for each a *query* (what it looks for), a *key* (what it
# offers) and a *value* (what it hands over). Here each is a single number.

# %% [markdown] slide="notes"
# Compute one row by hand. The future is set to minus infinity before the
# softmax, so its weight is 0.

# %% slide="more"
q = np.array([1.0, 2.0, 1.0])
k = np.array([0.0, 1.0, 3.0])
v = np.array([10.0, 20.0, 30.0])
scores = np.outer(q, k)
print("scores\n", scores)
scores[np.triu_indices(3, 1)] = -np.inf
weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
print("weights\n", weights.round(2))
print("result", (weights @ v).round(1))

# %% [markdown]
# The first letter can only look at itself, and takes over 10. The second looks
# at both, mostly at itself, since its key fits better. **Try it:** which single
# number has to change so that the third letter takes over 20?
#
# Softmax and products have derivatives, so queries, keys and values can be
# learned: each comes from the letter's vector by a linear layer. Nothing in it
# depends on the length of the text. That answers the question of this chapter.

# %% [markdown] slide="slide"
# ## Build
#
# Three layers of your package `mytorch`:
#
# 1. an **embedding**, which turns letters into vectors
# 2. **layer normalization**, which keeps the vectors' size
# 3. **attention** with several heads
#
# With your `Tensor`, `Module`, `Linear`, `CrossEntropy` and `AdamW`, they make
# a GPT.

# %% [markdown] slide="notes"
# Draw the score matrix for three letters before exercise 3. Ask what happens
# to softmax when a whole row is minus infinity (which row would that be?).

# %% exercise="capstone.embedding" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifteen minutes. A row is picked by an index; the gradient is added to that
# row, also when it occurs twice.

# %% check="capstone.embedding" points=2

# %% exercise="capstone.norm" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifteen minutes. Mean and variance depend on the input, so three terms meet
# in the gradient.

# %% check="capstone.norm" points=2

# %% [markdown]
# <details><summary>The gradient of layer norm, in full</summary>
#
# Your Tensor finds it by itself. On paper: let $\hat x = (x - \mu)/\sigma$ with
# $\sigma = \sqrt{\mathrm{var} + \epsilon}$, and let $h = g \cdot \mathrm{weight}$
# be the gradient of $\hat x$. $x_i$ acts on the loss in three ways: through its
# own $\hat x_i$, through $\mu$, and through $\sigma$:
#
# $$\frac{\partial L}{\partial x_i} = \frac{h_i}{\sigma}
#   - \frac{1}{n}\sum_j \frac{h_j}{\sigma}
#   - \frac{1}{n}\,\frac{\hat x_i}{\sigma} \sum_j h_j \hat x_j.$$
#
# The second part comes from $\partial\mu/\partial x_i = 1/n$, with
# $\sum_j \hat x_j$ vanishing in what $\mu$ does to $\sigma$. The third comes from
# $\partial\sigma/\partial x_i = \hat x_i / n$ and $\partial\hat x_j /
# \partial\sigma = -\hat x_j/\sigma$. So the gradient loses its mean and its
# component along $\hat x$: moving x in these directions changes nothing.
# </details>

# %% exercise="capstone.attention" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Forty minutes, homework. Draw the shapes of the heads on the whiteboard: batch,
# heads, time, size.

# %% check="capstone.attention" points=6

# %% [markdown] slide="slide"
# ## Plug in: your GPT learns to write
#
# The program below builds a GPT of two blocks from your package. Each block adds
# attention, then a small network, to the vectors of the text. It trains on nine
# tenths of the story and is tested on the last tenth. toytorch is not there.
# **Predict**: will it get below the letter pairs on text it has never seen?

# %% [markdown] slide="notes"
# Everything in this program is from the package. Predict whether it beats the
# table of letter pairs.

# %% [markdown] slide="subslide"
# ## Milestone: what it learned, and what it writes

# %% [markdown] slide="notes"
# It takes about ten seconds. Read the text aloud: words appear, sense does
# not.

# %% slide="more" show="output" varies=true
milestone(19)  # about ten seconds

# %% [markdown]
# The words are mostly invented, and their beginnings and ends look English. The
# model has 64 thousand parameters and has seen twelve thousand letters. Real
# ones have a million times as many of both, and the same layers.

# %% [markdown] slide="slide"
# ## Look inside
#
# toytorch's own attention does the same in one fused operation. Here is the
# part that is run where no fast kernel fits, beside yours:

# %% [markdown] slide="notes"
# The same steps in one operation: scores, mask, softmax, sum. Compare line by
# line.

# %%
from toytorch.nn import functional

look(functional.scaled_dot_product_attention, use("capstone.attention"))

# %% [markdown] slide="slide"
# ## Measure: what a longer text costs
#
# The scores are a matrix of time × time for each head. **Predict**: by what
# factor does the number of scores grow when the text is twice as long, and by
# what factor do the parameters?

# %% [markdown] slide="notes"
# Predict both factors. Twice the text is four times the scores, and no
# parameter more.

# %% slide="more"
attention = use("capstone.attention")
layer = attention(16, 4)
for time in (32, 64, 128, 256):
    cells = 4 * time * time
    print(f"{time:>4} letters: {cells:>7} scores,",
          f"{cells * 8 / 2**20:.2f} MB, and",
          sum(p.data.size for p in layer.parameters()), "parameters")

# %% [markdown]
# The memory grows with the square of the length, the parameters not at all. For
# 100,000 letters the scores of one head would take 75 GB. *Flash attention* (Dao
# et al. 2022) computes them in blocks and never stores the matrix; chapter 15
# builds it.

# %% [markdown] slide="slide"
# ## Traps
#
# **No position.** Attention compares vectors, and where they stand plays no
# part: without the mask, a shuffled text gives the shuffled result. That is why
# a GPT adds an embedding of the *place* to that of the letter.

# %% [markdown] slide="notes"
# Without a place, order is invisible. Then the temperature: near 0 the
# largest wins, high makes all alike.

# %% slide="more" show="output"
x = np.random.default_rng(0).normal(size=(5, 8))
scores = x @ x.T
weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
result = weights @ x
order = np.array([3, 1, 4, 0, 2])
scores = x[order] @ x[order].T
weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
same = np.allclose(weights @ x[order], result[order])
print("the shuffled text gives the shuffled result:", same)

# %% [markdown]
# **A mask that is applied after softmax.** Weights that were set to zero
# afterwards no longer sum to 1, and letters early in a text get vectors that are
# too small:

# %%
scores = np.zeros((3, 3))
p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
print("sums of the rows:", np.tril(p).sum(1).round(2))

# %% [markdown]
# **A temperature of 0.** Drawn letters follow softmax(scores / temperature).
# Small temperatures repeat the most likely letter, large ones approach noise,
# and 0 divides by zero:

# %% slide="more"
scores = np.array([2.0, 1.0, 0.0])
for temperature in (0.1, 0.7, 1.0, 10.0):
    e = np.exp((scores - scores.max()) / temperature)
    print(temperature, (e / e.sum()).round(3))

# %%
figure, axes = plt.subplots(figsize=(5.4, 2.6))
for n, temperature in enumerate((0.1, 0.7, 1.0, 10.0)):
    e = np.exp((scores - scores.max()) / temperature)
    places = np.arange(3) + 0.2 * n - 0.3
    axes.bar(places, e / e.sum(), 0.18, label=f"{temperature}")
axes.set_xticks(range(3), ["score 2", "score 1", "score 0"])
axes.set_ylabel("probability")
axes.set_title("The same scores at four temperatures")
axes.legend(title="temperature")
plt.show()

# %% raises=true
[score / 0 for score in scores.tolist()]

# %% [markdown] slide="slide"
# ## Beyond
#
# * While it writes, the model computes the keys and values of the whole text
#   again for every letter. What could be kept? (It is called a KV cache.)
# * Change `TIME` in `course/milestones/19_gpt.py` to 8. How much is lost?
# * Letters are a poor unit. What would change if a token were a word, or a
#   part of a word?
# * Your package is now about 500 lines. Which file would you make faster first,
#   and how would you find out?
#
# **Next:** chapter 20 follows the same path through PyTorch's own source.

# %% [markdown] slide="notes"
# Keeping keys and values is the first thing that real systems do. Discuss
# what it costs in memory.
