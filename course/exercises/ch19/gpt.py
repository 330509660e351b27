"""A GPT for the learner's own package."""

import numpy as np

import toytorch as torch
from course.cases import case
from course.properties import agrees
from course.records import Exercise
from mytorch.adam import AdamW
from mytorch.attention import Attention
from mytorch.cross_entropy import CrossEntropy
from mytorch.embedding import Embedding
from mytorch.linear import Linear
from mytorch.module import Module
from mytorch.norm import LayerNorm
from mytorch.tensor import Tensor

gpt = Exercise(
    "capstone.gpt",
    "A GPT",
    chapter=19,
    minutes=50,
    prompt="""
    The model itself, from your layers: `GPT(letters, size, heads, depth, time, seed=0)`. Texts are
    arrays of whole numbers below `letters`. Each layer starts with random numbers of its own,
    which depend on `seed` alone.

    **1. Parts.** The checks look for these attributes; n is a block's number:

    | attribute | what it is |
    | --- | --- |
    | `token`, `place` | embeddings of letters, and of `time` places |
    | `before[n]`, `attend[n]` | a `LayerNorm(size)` and an `Attention(size, heads)` |
    | `between[n]`, `wide[n]`, `narrow[n]` | a `LayerNorm(size)`, and `Linear` from size to 4 · size and back |
    | `norm`, `head` | a `LayerNorm(size)` and `Linear(size, letters)` |

    2. **Forward.** For tokens (batch, t) the scores (batch, t, letters) of each place's next letter:
       `x = token + place` of the places 0 to t − 1, then all blocks, then `norm` and `head`. A block
       adds to x what each of its halves makes of it:

       $$x \\leftarrow x + \\mathrm{attend}(\\mathrm{before}(x)), \\qquad
       x \\leftarrow x + \\mathrm{narrow}(\\mathrm{relu}(\\mathrm{wide}(\\mathrm{between}(x)))).$$

       Write it as `block(n, x)`. A text longer than `time` is a `ValueError`.
    3. **Loss.** `loss(tokens)` for texts (batch, t + 1) is the mean cross-entropy of letters 1 to t, each
       predicted from those before it.
    4. **Groups.** `groups(decay)` gives two groups for your `AdamW`: the parameters with two dimensions
       or more decay, biases and the numbers of layer norms do not.
    5. **Writing.** `write(tokens, count, temperature=1.0, top=None, seed=0)` returns the list `tokens`
       with `count` letters more. Each is drawn with `draw.choice(len(p), p=p)`, `draw` being
       `np.random.default_rng(seed)`, and p the softmax of scores / temperature at the last place. The
       model sees the last `time` letters. A temperature of 0 takes the letter with the largest score.
       With `top`, all but that many of the largest scores have p = 0.

    A trace of one text [7, 2, 5], size 4, in a model with 9 letters:

    | step | shape | what is in it |
    | --- | --- | --- |
    | `token` | (1, 3, 4) | rows 7, 2, 5 of its table |
    | `place` | (3, 4) | rows 0, 1, 2 of its table, added to each text |
    | each block | (1, 3, 4) | place 2 has seen letters 7, 2 and 5, place 0 only letter 7 |
    | `head(norm(x))` | (1, 3, 9) | at place 1: scores for what follows 7, 2 |
    | loss of [7, 2, 5] | | rows 0 and 1, for the letters 2 and 5 |
    """,
    without=(
        "torch.nn.functional.scaled_dot_product_attention",
        "torch.nn.TransformerEncoderLayer",
        "torch.nn.functional.cross_entropy",
    ),
    hints=(
        """
        Five short methods, each on top of the one before. `forward` is a loop over `block`; `loss` calls
        the model on all letters but the last, and compares with all but the first; `write` calls it again
        and again with one letter more. Lists of modules are children, so parameters are found by
        themselves.
        """,
        """
        `loss` for tokens of shape (2, 4), with 9 letters:

        | what | shape |
        | --- | --- |
        | tokens without the last letter | (2, 3) |
        | scores | (2, 3, 9) |
        | scores, one row for each prediction | (6, 9) |
        | tokens without the first letter, flat | (6,) |

        `write([3, 1], 2)` with `time` 2:

        | sees | scores of place | draws | tokens |
        | --- | --- | --- | --- |
        | [3, 1] | 1, the last one | 4 | [3, 1, 4] |
        | [1, 4], the last two | 1 | 0 | [3, 1, 4, 0] |

        Scores [2, 1, 3, 0] with `top=2`: the second largest is 2, so 1 and 0 become −∞ before softmax, and
        p is [0.27, 0, 0.73, 0].
        """,
        """
        ```python
        class GPT(Module):
            def __init__(self, letters, size, heads, depth, time, seed=0):
                self.time = time
                self.token = Embedding(letters, size, seed=(seed, 1))
                self.place = ...
                numbers = range(depth)
                self.before = [... for n in numbers]
                self.attend = [... for n in numbers]
                self.between = [... for n in numbers]
                self.wide = [... for n in numbers]
                self.narrow = [... for n in numbers]
                self.norm = LayerNorm(size)
                self.head = ...

            def block(self, n, x):
                x = ...
                wide = ...
                return x + ...

            def forward(self, tokens):
                length = tokens.shape[1]
                if length > self.time:
                    raise ValueError(f"{length} letters, at most {self.time}")
                x = ...
                for n in range(len(self.before)):
                    ...
                return ...

            def loss(self, tokens):
                scores = self(...)
                letters = scores.data.shape[-1]
                rows = ...
                return CrossEntropy.apply(rows, ...)

            def groups(self, decay):
                flat = ...
                rest = ...
                return [
                    {"parameters": rest, "decay": decay},
                    ...,
                ]

            def write(self, tokens, count, temperature=1.0, top=None, seed=0):
                draw = np.random.default_rng(seed)
                tokens = ...
                for _ in range(count):
                    scores = ...  # of the last place
                    if temperature == 0:
                        ...
                        continue
                    if top is not None:
                        least = ...
                        scores = ...
                    p = ...
                    p = p / p.sum()
                    ...
                return tokens
        ```
        """,
    ),
)


@gpt.reference(stub={
    "__init__": "stage 1, your code here: about 13 lines",
    "block": "stage 2, your code here: about 3 lines",
    "forward": "stage 2, your code here: about 7 lines",
    "loss": "stage 3, your code here: about 4 lines",
    "groups": "stage 4, your code here: about 6 lines",
    "write": "stage 5, your code here: about 15 lines",
})
class GPT(Module):
    """Scores of each place's next letter, from all letters before."""

    def __init__(self, letters, size, heads, depth, time, seed=0):
        self.time = time
        self.token = Embedding(letters, size, seed=(seed, 1))
        self.place = Embedding(time, size, seed=(seed, 2))
        numbers = range(depth)
        self.before = [LayerNorm(size) for n in numbers]
        self.attend = [
            Attention(size, heads, seed=100 * seed + n) for n in numbers
        ]
        self.between = [LayerNorm(size) for n in numbers]
        self.wide = [
            Linear(size, 4 * size, seed=(seed, 3, n)) for n in numbers
        ]
        self.narrow = [
            Linear(4 * size, size, seed=(seed, 4, n)) for n in numbers
        ]
        self.norm = LayerNorm(size)
        self.head = Linear(size, letters, seed=(seed, 5))

    def block(self, n, x):
        """x after block n: (batch, time, size), as before."""
        x = x + self.attend[n](self.before[n](x))
        wide = self.wide[n](self.between[n](x)).relu()
        return x + self.narrow[n](wide)

    def forward(self, tokens):
        length = tokens.shape[1]
        if length > self.time:
            raise ValueError(f"{length} letters, at most {self.time}")
        x = self.token(tokens) + self.place(np.arange(length))
        for n in range(len(self.before)):
            x = self.block(n, x)
        return self.head(self.norm(x))

    def loss(self, tokens):
        """The mean cross-entropy of the letters after the first."""
        scores = self(tokens[:, :-1])
        letters = scores.data.shape[-1]
        rows = scores.reshape(-1, letters)
        return CrossEntropy.apply(rows, tokens[:, 1:].ravel())

    def groups(self, decay):
        """Groups for AdamW: matrices decay, vectors do not."""
        flat = [p for p in self.parameters() if p.data.ndim < 2]
        rest = [p for p in self.parameters() if p.data.ndim >= 2]
        return [
            {"parameters": rest, "decay": decay},
            {"parameters": flat, "decay": 0.0},
        ]

    def write(self, tokens, count, temperature=1.0, top=None, seed=0):
        """The tokens, and as many more drawn one by one."""
        draw = np.random.default_rng(seed)
        tokens = list(tokens)
        for _ in range(count):
            scores = self(np.array([tokens[-self.time :]])).data[0, -1]
            if temperature == 0:
                tokens.append(int(scores.argmax()))
                continue
            if top is not None:
                least = np.sort(scores)[-top]
                scores = np.where(scores < least, -np.inf, scores)
            p = np.exp((scores - scores.max()) / temperature)
            p = p / p.sum()
            tokens.append(int(draw.choice(len(p), p=p)))
        return tokens


gpt.changed(
    "one block, several times",
    """
    `[x] * depth` is a list of `depth` times the *same* object. All blocks share their weights, and the
    model has those of one block only. Make a new layer for each.
    """,
    ("[LayerNorm(size) for n in numbers]\n        self.attend", "[LayerNorm(size)] * depth\n        self.attend"),
    (
        "            Attention(size, heads, seed=100 * seed + n) for n in numbers\n        ]",
        "            Attention(size, heads, seed=100 * seed)\n        ] * depth",
    ),
    ("self.between = [LayerNorm(size) for n in numbers]", "self.between = [LayerNorm(size)] * depth"),
    (
        "            Linear(size, 4 * size, seed=(seed, 3, n)) for n in numbers\n        ]",
        "            Linear(size, 4 * size, seed=(seed, 3))\n        ] * depth",
    ),
    (
        "            Linear(4 * size, size, seed=(seed, 4, n)) for n in numbers\n        ]",
        "            Linear(4 * size, size, seed=(seed, 4))\n        ] * depth",
    ),
)

gpt.changed(
    "all blocks start with the same numbers",
    """
    The layers of all blocks were drawn from the same seed. Blocks that start alike get similar gradients
    and learn similar things. Let the block's number have a part in the seed.
    """,
    ("seed=100 * seed + n", "seed=100 * seed"),
    ("seed=(seed, 3, n)", "seed=(seed, 3)"),
    ("seed=(seed, 4, n)", "seed=(seed, 4)"),
)

gpt.changed(
    "the halves replace x instead of adding to it",
    """
    Without `x +` the block passes on only what attention and the network make, and the gradient has to go
    through all of them. Through the sum it reaches every block unchanged.
    """,
    ("x = x + self.attend[n](self.before[n](x))", "x = self.attend[n](self.before[n](x))"),
    ("return x + self.narrow[n](wide)", "return self.narrow[n](wide)"),
)

gpt.changed(
    "normalizes the sum",
    """
    Here layer norm came after the addition, as in the first paper of 2017. Then x itself is changed by
    each norm. This model normalizes what *goes into* each half, and leaves x alone.
    """,
    ("x = x + self.attend[n](self.before[n](x))", "x = self.before[n](x + self.attend[n](x))"),
    (
        "        wide = self.wide[n](self.between[n](x)).relu()\n        return x + self.narrow[n](wide)",
        "        return self.between[n](x + self.narrow[n](self.wide[n](x).relu()))",
    ),
)

gpt.changed(
    "the network of a block is linear",
    """
    Two linear layers in a row are one linear layer. `relu` between them makes the
    network nonlinear.
    """,
    ("self.wide[n](self.between[n](x)).relu()", "self.wide[n](self.between[n](x))"),
)

gpt.changed(
    "the place is not used",
    """
    Attention does not know where a letter stands. Only the embedding of the place tells the model that
    *ab* is not *ba*.
    """,
    (" + self.place(np.arange(length))", ""),
)

gpt.changed(
    "the place of the letter's number",
    """
    `place` was asked for the letters again. It belongs to the *places* 0, 1, 2, …, which are the same for
    every text.
    """,
    ("self.place(np.arange(length))", "self.place(tokens % self.time)"),
)

gpt.changed(
    "only the first block works",
    """
    Each block goes on from what the one before it made. Here every block was given the sum of the
    embeddings, and only the last one's result counted.
    """,
    ("            x = self.block(n, x)\n", "            last = self.block(n, x)\n        x = last\n"),
)

gpt.changed(
    "the last layer norm is missing",
    """
    Every block adds to x, so its elements grow with the depth. The last norm brings them back to size before
    the scores are made.
    """,
    ("return self.head(self.norm(x))", "return self.head(x)"),
)

gpt.changed(
    "predicts the letter that it sees",
    """
    Place i was asked for letter i, which is the one that it sees. The loss becomes small at once, and the
    model has learned to copy. Place i has to predict letter i + 1.
    """,
    ("tokens[:, 1:].ravel()", "tokens[:, :-1].ravel()"),
)

gpt.changed(
    "scores and letters in another order",
    """
    The scores are rows text by text, and the letters were put place by place. Each score is then
    compared with a letter of another text. Flatten both in the same order.
    """,
    ("tokens[:, 1:].ravel()", "tokens[:, 1:].T.ravel()"),
)

gpt.changed(
    "everything decays",
    """
    A bias or the scale of a layer norm is no matrix of weights that could grow out of bounds. Pulled towards
    0, a layer norm's scale of 1 makes its output smaller and smaller. Only matrices decay.
    """,
    ("if p.data.ndim < 2]", "if p.data.ndim < 1]"),
    ("if p.data.ndim >= 2]", "if p.data.ndim >= 1]"),
)

gpt.changed(
    "writes from the first place",
    """
    Row 0 of the scores says what follows the first letter. What comes next stands in the row of the *last*
    place.
    """,
    (".data[0, -1]", ".data[0, 0]"),
)

gpt.changed(
    "sees the beginning of the text only",
    """
    `tokens[:time]` are the first letters. When the text is longer, the model goes on looking at them
    and writes the same again and again. It needs the last ones.
    """,
    ("tokens[-self.time :]", "tokens[: self.time]"),
)

gpt.changed(
    "the caller's list grows",
    """
    `append` changes the list that was handed in. Make a list of your own first.
    """,
    ("        tokens = list(tokens)\n", ""),
)

gpt.changed(
    "multiplies by the temperature",
    """
    A high temperature is to make all letters alike, so it divides the scores. Multiplying does the
    opposite.
    """,
    ("(scores - scores.max()) / temperature", "(scores - scores.max()) * temperature"),
)

gpt.changed(
    "one letter too many at the top",
    """
    `sort` puts the largest last, at place −1. So the second largest is at −2, and with `top=2` nothing
    below it may stay.
    """,
    ("np.sort(scores)[-top]", "np.sort(scores)[-top - 1]"),
)

gpt.changed(
    "draws the same number each time",
    """
    The generator was made anew for each letter, so it drew the same random number again and again. Make it
    once, before the loop.
    """,
    ("int(draw.choice(len(p), p=p))", "int(np.random.default_rng(seed).choice(len(p), p=p))"),
)


def _numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).round(3)


LETTERS, SIZE, HEADS, DEPTH, TIME = 7, 4, 2, 2, 6


def _model(GPT, depth=DEPTH):
    """A model whose parameters are known, whatever it starts with."""
    model = GPT(LETTERS, SIZE, HEADS, depth, TIME, seed=0)
    for n, (_, p) in enumerate(sorted(model.named_parameters())):
        p.data = _numbers(n, *p.data.shape)
    return model


def _texts(seed, batch, length):
    return np.random.default_rng(seed).integers(LETTERS, size=(batch, length))


def _names(depth):
    """The shapes of all parameters, by their names."""
    linear = {"weight": (SIZE, SIZE), "bias": (SIZE,)}
    norm = {"weight": (SIZE,), "bias": (SIZE,)}
    found = {"token.weight": (LETTERS, SIZE), "place.weight": (TIME, SIZE)}
    for n in range(depth):
        for part in ("query", "key", "value", "out"):
            found |= {f"attend.{n}.{part}.{name}": shape for name, shape in linear.items()}
        for part in ("before", "between"):
            found |= {f"{part}.{n}.{name}": shape for name, shape in norm.items()}
        found |= {f"wide.{n}.weight": (SIZE, 4 * SIZE), f"wide.{n}.bias": (4 * SIZE,)}
        found |= {f"narrow.{n}.weight": (4 * SIZE, SIZE), f"narrow.{n}.bias": (SIZE,)}
    found |= {f"norm.{name}": shape for name, shape in norm.items()}
    return found | {"head.weight": (SIZE, LETTERS), "head.bias": (LETTERS,)}


def _real(tokens, depth=DEPTH, loss=False):
    """The scores, or loss and gradients by names, by toytorch."""
    shapes = sorted(_names(depth).items())
    own = {
        name: torch.tensor(_numbers(n, *shape), requires_grad=True)
        for n, (name, shape) in enumerate(shapes)
    }
    functional = torch.nn.functional

    def linear(name, x):
        return x @ own[f"{name}.weight"] + own[f"{name}.bias"]

    def norm(name, x):
        return functional.layer_norm(x, (SIZE,), own[f"{name}.weight"], own[f"{name}.bias"])

    seen = torch.tensor(tokens[:, :-1] if loss else tokens)
    batch, time = seen.shape
    x = own["token.weight"][seen] + own["place.weight"][:time]
    for n in range(depth):
        y = norm(f"before.{n}", x)
        q, k, v = (
            linear(f"attend.{n}.{part}", y).reshape(batch, time, HEADS, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(f"attend.{n}.out", mixed.transpose(1, 2).reshape(batch, time, SIZE))
        x = x + linear(f"narrow.{n}", linear(f"wide.{n}", norm(f"between.{n}", x)).relu())
    scores = linear("head", norm("norm", x))
    if not loss:
        return scores.tolist()
    wanted = torch.tensor(np.ascontiguousarray(tokens[:, 1:]))
    value = functional.cross_entropy(scores.reshape(-1, LETTERS), wanted.reshape(-1))
    value.backward()
    zero = {name: np.zeros(shape).tolist() for name, shape in shapes}
    return value.item(), {
        name: zero[name] if p.grad is None else p.grad.tolist() for name, p in own.items()
    }


def _loss(GPT, tokens, depth=DEPTH):
    model = _model(GPT, depth)
    value = model.loss(tokens)
    value.backward()
    grads = {
        name: np.zeros(p.data.shape).tolist() if p.grad is None else p.grad.tolist()
        for name, p in model.named_parameters()
    }
    return float(value.data), dict(sorted(grads.items()))


@gpt.check("1 · parts")
def _(GPT):
    def shapes(depth):
        model = GPT(LETTERS, SIZE, HEADS, depth, TIME)
        return {name: p.data.shape for name, p in sorted(model.named_parameters())}

    for depth in (1, 2):
        yield case(
            f"GPT({LETTERS}, {SIZE}, {HEADS}, {depth}, {TIME}): names and shapes of the parameters",
            lambda depth=depth: shapes(depth),
        ).gives(dict(sorted(_names(depth).items())))

    def alike(first, second):
        def drawn(seed):
            model = GPT(LETTERS, SIZE, HEADS, DEPTH, TIME, seed=seed)
            return [p.data for _, p in model.named_parameters() if p.data.ndim > 1]

        return all(bool((a == b).all()) for a, b in zip(drawn(first), drawn(second)))

    yield case(
        "two models with seed 1: the same weights? with seeds 1 and 2?",
        lambda: (alike(1, 1), alike(1, 2)),
    ).gives((True, False))

    def blocks():
        model = GPT(LETTERS, SIZE, HEADS, DEPTH, TIME)
        pairs = [
            (model.attend[0].query, model.attend[1].query),
            (model.wide[0], model.wide[1]),
            (model.narrow[0], model.narrow[1]),
        ]
        return [bool((a.weight.data == b.weight.data).any()) for a, b in pairs]

    yield case("do weights of the two blocks start with the same numbers?", blocks).gives(
        [False, False, False]
    )


@gpt.check("2 · forward")
def _(GPT):
    def block():
        x = Tensor(_numbers(5, 2, 3, SIZE))
        model = _model(GPT, 1)
        before = x.data.copy()
        return model.block(0, x).data.shape, bool((x.data == before).all())

    yield case("the shape after a block, and is x as it was?", block).gives(((2, 3, SIZE), True))
    for depth, batch, length in ((0, 1, 2), (1, 1, 1), (1, 2, 3), (2, 3, 6)):
        yield case(
            f"scores of {batch} texts of {length} letters, {depth} blocks",
            lambda depth=depth, batch=batch, length=length: _model(GPT, depth)(
                _texts(1, batch, length)
            ).data.tolist(),
        ).gives(_real(_texts(1, batch, length), depth))
    yield case(
        f"a text of {TIME + 1} letters, time={TIME}", lambda: _model(GPT)(_texts(1, 1, TIME + 1))
    ).raises(ValueError)


@gpt.check("3 · loss")
def _(GPT):
    for depth, batch, length in ((1, 1, 3), (2, 3, 7)):
        yield case(
            f"{batch} texts of {length} letters, {depth} blocks: the loss, the gradients by names",
            lambda depth=depth, batch=batch, length=length: _loss(
                GPT, _texts(2, batch, length), depth
            ),
        ).gives(_real(_texts(2, batch, length), depth, True))


@gpt.check("4 · groups")
def _(GPT):
    def groups():
        model = _model(GPT, 1)
        names = {id(p): name for name, p in model.named_parameters()}
        return [
            (group["decay"], sorted(names[id(p)] for p in group["parameters"]))
            for group in model.groups(0.1)
        ]

    def wanted(flat):
        return sorted(name for name, shape in _names(1).items() if (len(shape) < 2) == flat)

    yield case("groups(0.1) of a model of one block", groups).gives(
        [(0.1, wanted(False)), (0.0, wanted(True))]
    )

    def trained():
        model, tokens = GPT(LETTERS, 8, 2, 1, TIME), _texts(3, 2, TIME + 1)
        optimizer = AdamW(model.groups(0.1), lr=0.02)
        first = float(model.loss(tokens).data)
        for _ in range(15):
            loss = model.loss(tokens)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return float(loss.data) < 0.8 * first

    yield case("15 steps of AdamW: does the loss fall by a fifth?", trained).gives(True)


def _written(GPT, start, count, options):
    tokens = list(start)
    written = _model(GPT).write(tokens, count, **options)
    return written, tokens == list(start), sorted({type(t).__name__ for t in written})


def _told(start, count, options):
    given = "".join(f", {name}={value}" for name, value in options.items())
    return (
        f"write({start}, {count}{given}): the letters, is the list that was handed in as before, the "
        "types"
    )


@gpt.check("5 · writing")
def _(GPT):
    yield case(
        _told([3, 1], 0, {}), lambda: _written(GPT, [3, 1], 0, {})
    ).gives(([3, 1], True, ["int"]))
    for start, count, options in (
        ([3, 1], 12, {"temperature": 0}),
        ([3], 9, {}),
        ([1, 2, 3, 4, 5, 6, 0, 1], 9, {"temperature": 3.0, "seed": 4}),
        ([2], 12, {"temperature": 5.0, "top": 2}),
        ([2], 9, {"temperature": 9.0, "top": 1}),
    ):
        yield case(
            _told(start, count, options),
            lambda start=start, count=count, options=options: _written(GPT, start, count, options),
        ).as_by(
            lambda start=start, count=count, options=options: _written(
                gpt.answer.value, start, count, options
            )
        )

    def drawn(draw):
        start = [draw.randrange(LETTERS) for _ in range(draw.randint(1, 8))]
        options = {
            "temperature": draw.choice([0, 0.5, 1.0, 4.0, 20.0]),
            "top": draw.choice([None, 1, 2, 3]),
            "seed": draw.randint(0, 9),
        }
        return start, draw.randint(0, 6), options

    yield agrees(
        lambda *args: _written(GPT, *args),
        lambda *args: _written(gpt.answer.value, *args),
        drawn,
        count=20,
        tell=_told,
    )
