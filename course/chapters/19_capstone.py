# %% [markdown] slide="slide"
# # 19 · Capstone: a GPT on what you built
#
# A GPT reads a text and gives a probability for each letter that may come next. To
# write, it draws a letter, appends it, and repeats. In this chapter a small GPT
# learns a story. It runs only on your package: Tensor, Function, Module, AdamW,
# three new layers, and the model that you build of them.
#
# > **The question of this chapter:** how can a network use a text of any length,
# > and find in it what matters for the next letter?

# %% [markdown] slide="notes"
# 45 minutes: question 5, play 10, the trace of attention on the whiteboard 10,
# exercise 3 live up to the mask 10, milestone 5, traps 5. Embedding and
# layer norm are homework. Let the class predict the loss of guessing first.

# %%
import matplotlib.pyplot as plt
import numpy as np

from course import check, hint, look, milestone, setup, use
from mytorch.adam import AdamW
from mytorch.attention import Attention
from mytorch.cross_entropy import CrossEntropy
from mytorch.embedding import Embedding
from mytorch.function import Function
from mytorch.linear import Linear
from mytorch.module import Module
from mytorch.norm import LayerNorm
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

# %% keep=true slide="more" folded=true
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
# Each row belongs to one letter of the text, and its weights sum to 1. A dark cell
# means that the result for the row's letter contains much of the column's letter.
# The triangle above the diagonal is empty, because those letters come later in the
# text.
#
# Here every letter has a random vector, so a letter attends mostly to equal
# letters. Training finds more useful vectors.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# The story below has 57 different letters. A model gives each letter a probability,
# and its loss is −log of the probability of the letter that came. **Predict** the
# loss of three models:
#
# 1. It gives all letters the same probability.
# 2. It knows how often each letter occurs.
# 3. It knows how often each letter occurs after the letter before.

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
# The unit is *nats per letter*, because the logarithm is the natural one. For a
# smaller loss than the last, a model has to look back further than one letter.
#
# A table for pairs has 57² entries. A table for five letters would have 57⁵, more
# than 600 million, and the story has only 12,880 letters to fill it. So counting is
# not enough, and the model has to learn a function.

# %% [markdown] slide="slide"
# ## Play: attention by hand
#
# There are three letters. Each has a *query* (what it looks for), a *key* (what it
# offers) and a *value* (what others take over from it). Here each of these is a
# single number.

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
# The first letter can only look at itself, so its result is 10. The second letter
# looks at both, and mostly at itself, because the product with its own key is
# larger. **Try it:** which single number has to change so that the result of the
# third letter is 20?
#
# Softmax and products have derivatives, so queries, keys and values can be
# learned. Linear layers compute them from the letter's vector, and no parameter
# depends on the length of the text. That answers the question of this chapter.

# %% [markdown] slide="slide"
# ## Build
#
# Three layers of your package `mytorch`, and what is built of them:
#
# 1. an **embedding**, which turns letters into vectors
# 2. **layer normalization**, which keeps the vectors at the same size
# 3. **attention** with several heads
# 4. the **GPT**: blocks of both, its loss, and how it writes
#
# Everything else is there: `Tensor`, `Module`, `Linear`, `CrossEntropy` and `AdamW`.

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
# Your Tensor computes it by itself. As a formula: let $\hat x = (x - \mu)/\sigma$ with
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

# %% exercise="capstone.gpt" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifty minutes, homework. Ask what the first block would learn if nothing were added
# to x, and which row of the scores a writer needs.

# %% check="capstone.gpt" points=6

# %% [markdown] slide="slide"
# ## Plug in: your GPT learns to write
#
# The program below trains your GPT with two blocks, without toytorch. Each block adds
# the result of attention to the vectors of the text, and then the result of a small
# network. It is trained on nine tenths of the story and tested on the last tenth.
#
# **Predict**: will its loss on the last tenth be smaller than that
# of the letter pairs?

# %% [markdown] slide="notes"
# Everything in this program is from the package. Predict whether it beats the
# table of letter pairs.

# %% [markdown] slide="subslide"
# ## Milestone: what it learned, and what it writes
#
# The last milestone trains the GPT of your own package:

# %% [markdown] slide="notes"
# It takes about ten seconds. Read the text aloud: words appear, sense does
# not.

# %% slide="more" show="output" varies=true
milestone(19)  # about ten seconds

# %% [markdown]
# Most of the words do not exist, but their beginnings and ends look English. The
# model has 64 thousand parameters and was trained on twelve thousand letters. Large
# language models have about a million times as many parameters, much more text, and
# layers of the same kinds.

# %% [markdown] slide="slide"
# ## Look inside
#
# toytorch's own attention does the same in one fused operation. The next cell of the
# notebook shows the code that runs where no fast kernel can be used, beside yours.

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
# The number of scores grows with the square of the length. The number of parameters
# stays the same. For 100,000 letters the scores of one head would take 75 GB.
# *Flash attention* (Dao et al. 2022) computes them in blocks and never stores the
# whole matrix. Chapter 15 builds it.

# %% [markdown] slide="slide"
# ## Traps
#
# **No position.** Attention compares vectors and does not use their places in the
# text. Without the mask, a shuffled text gives the shuffled result. So a GPT adds
# an embedding of the *place* to the embedding of the letter.

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
# **A mask that is applied after softmax.** If weights are set to zero after the
# softmax, the others no longer sum to 1. So letters early in a text get vectors that
# are too small:

# %%
scores = np.zeros((3, 3))
p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
print("sums of the rows:", np.tril(p).sum(1).round(2))

# %% [markdown]
# **A temperature of 0.** When a GPT writes, it draws letters with the probabilities
# softmax(scores / temperature). With a small temperature it nearly always draws the
# most likely letter. With a large one all letters become equally likely. A
# temperature of 0 divides by zero:

# %% slide="more"
scores = np.array([2.0, 1.0, 0.0])
for temperature in (0.1, 0.7, 1.0, 10.0):
    e = np.exp((scores - scores.max()) / temperature)
    print(temperature, (e / e.sum()).round(3))

# %% folded=true
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

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** All scores are 0, and the mask hides what is ahead. What are the weights of
# the three places?
#
# ```python
# ahead = torch.ones(3, 3).triu(1).bool()
# scores = torch.zeros(3, 3).masked_fill(ahead, -float("inf"))
# for row in torch.softmax(scores, 1).tolist():
#     print([round(w, 2) for w in row])
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [1.0, 0.0, 0.0]
# [0.5, 0.5, 0.0]
# [0.33, 0.33, 0.33]
# ```
#
# exp(-∞) is 0, so places ahead get no weight. The others share a sum of 1
# equally, because their scores are equal. No row consists of -∞ alone, since each
# place may look at itself.
#
# </details>
#
# **2.** Queries and keys have 64 elements with variance 1. What is the standard
# deviation of their products, before and after the division by √d?
#
# ```python
# draw = np.random.default_rng(0)
# q, k = draw.normal(size=(2, 20000, 64))
# scores = (q * k).sum(1)
# print(round(scores.std()), round((scores / 8).std()))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 8 1
# ```
#
# A score is a sum of 64 independent products of variance 1, so its variance is 64
# and its deviation 8. Scores of this size would make the softmax almost 0 and 1,
# and there its derivative is almost 0. The division brings the deviation back to
# 1.
#
# </details>
#
# **3.** There is no position embedding. A text has the letter *a* at place 3 and at
# place 7. Does attention give both places the same result?
#
# <details><summary>Answer</summary>
#
# Without a mask it does. Both places have the same query, and they see the same
# keys and values, so the order plays no part. With the mask, place 7 sees four
# letters more than place 3, and the results usually differ. But even then the
# order of the letters that a place sees makes no difference.
#
# </details>
#
# **4.** Row 1 of a table is looked up twice. What is the gradient of the table?
#
# ```python
# table = torch.zeros(3, 2, requires_grad=True)
# table[torch.tensor([1, 1, 0])].sum().backward()
# print(table.grad.tolist())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [[1.0, 1.0], [2.0, 2.0], [0.0, 0.0]]
# ```
#
# Each look-up sends its gradient to the row that it read, and gradients of the
# same row are added. Row 2 was not read, so its gradient is 0. A backward that
# writes instead of adding would give row 1 a gradient of 1.
#
# </details>
#
# **5.** Only the second row of the input differs. Is the first row of the result the
# same?
#
# ```python
# x = torch.tensor([[1.0, 3.0], [10.0, 20.0]])
# y = torch.tensor([[1.0, 3.0], [0.0, 0.0]])
# for norm in (torch.nn.LayerNorm(2), torch.nn.BatchNorm1d(2)):
#     print(torch.allclose(norm(x)[0], norm(y)[0]))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# True
# False
# ```
#
# Layer norm takes mean and variance of each vector by itself. Batch norm takes
# them over the batch, so every example depends on the others. For texts of
# different length, and for writing one letter at a time, layer norm is simpler:
# it is the same in training and evaluation.
#
# </details>
#
# **6.** A model of 57 letters has a loss of 1.5. Among how many equally likely
# letters would guessing have this loss, and how many are there before training?
#
# ```python
# print(f"{np.exp(1.5):.1f} {np.exp(np.log(57)):.1f}")
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 4.5 57.0
# ```
#
# A guess among n letters has the loss log n, so n is the exponential of the loss.
# It is called *perplexity*. Before training all letters are about equally likely,
# which makes 57.
#
# </details>
#
# **7.** Is a temperature of 0.5 the same as squaring the probabilities and dividing
# by their sum?
#
# ```python
# scores = torch.tensor([2.0, 1.0, 0.0])
# cold = torch.softmax(scores / 0.5, 0)
# squared = torch.softmax(scores, 0) ** 2
# print(torch.allclose(cold, squared / squared.sum()))
# print([round(p, 2) for p in cold.tolist()])
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# True
# [0.87, 0.12, 0.02]
# ```
#
# Dividing a score by 0.5 doubles it, and $e^{2s}$ is the square of $e^s$. Squares
# favour what is large already, so the most likely letter is drawn more often.
# Without the temperature its probability would be 0.67.
#
# </details>
#
# **8.** An attention layer of size 64 has 1 head, then 8 heads. How does the number
# of parameters change, and what is gained?
#
# <details><summary>Answer</summary>
#
# It stays the same: four linear layers of 64 × 64, with biases. Eight heads only
# cut queries, keys and values into parts of 8 elements. Each head has its own
# weights over the places, so a letter can look at several places for different
# reasons. One head has to mix all of that in a single row of weights.
#
# </details>
#
# **9.** *Chapter 10.* You try ten lengths of text for the GPT and keep the one with
# the smallest loss on the last tenth of the story. May you report that loss?
#
# <details><summary>Answer</summary>
#
# No. The last tenth was used to choose, so its loss is the smallest of ten and too
# good on average. Choose on one part that was held back, and report the loss on
# another part that took no part in the choice, once. With a text, take parts that
# lie apart, since neighbouring sentences resemble each other.
#
# </details>
#
# **10.** *Chapter 10.* The state of the generator is put back. Are the two draws
# equal, and what has that to do with checkpoints?
#
# ```python
# state = torch.get_rng_state()
# a = torch.rand(3)
# torch.set_rng_state(state)
# b = torch.rand(3)
# print(torch.equal(a, b))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# True
# ```
#
# A generator draws from its state alone, so the same state gives the same random
# numbers. Dropout and shuffling draw from generators. If a checkpoint does not
# hold their states, the training that goes on from it draws other numbers than
# the one that was not interrupted.
#
# </details>

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
