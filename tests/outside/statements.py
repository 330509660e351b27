"""The kinds of statements that programs are made of; each function gives the text of one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from random import Random
from typing import Any

from tests.oracle import torch
from tests.outside import arguments, leaves, signatures
from tests.outside.arguments import Scope, tensors

Drawer = Callable[[Random, Scope], str]


def pick(rng: Random, scope: Scope) -> str:
    """A variable that holds a tensor, later ones more often."""
    names = tensors(scope)
    return names[max(rng.randrange(len(names)), rng.randrange(len(names)))]


def leaf(rng: Random, scope: Scope) -> str:
    known = [v.shape for v in scope.values() if isinstance(v, torch.Tensor) and v.numel() < 40]
    if known and rng.random() < 0.6:
        shape = tuple(rng.choice(known))
        if rng.random() < 0.3:
            shape = tuple(1 if rng.random() < 0.4 else s for s in shape)[rng.randint(0, 1) :]
    else:
        shape = rng.choice(leaves.SHAPES)
    dtype = rng.choice(leaves.DTYPES)
    text = leaves.tensor(rng, shape, dtype, special=rng.random() < 0.15)
    if dtype in leaves.FLOATS + ("complex64", "complex128") and rng.random() < 0.45:
        text += ".requires_grad_()"
    return text


def apart(scope: Scope, first: str, count: int) -> list[str]:
    """Variables with memory of their own each; PyTorch writes beyond it where results share some."""
    taken = {scope[first].untyped_storage().data_ptr()} if first else set()
    found = []
    for n in tensors(scope):
        at = scope[n].untyped_storage().data_ptr()
        if at not in taken and scope[n]._base is None:
            taken.add(at)
            found.append(n)
    return found[-count:] if len(found) >= count else []


def call(rng: Random, scope: Scope, name: str | None = None) -> str:
    """A call from a signature, as a function or as a method; of a name, if one is given."""
    names = signatures.by_name()
    s = rng.choice(names[name or rng.choice(list(names))])
    spelled = signatures.spellings(s)
    spelling = rng.choice(spelled)
    wants = bool(s.arguments) and s.arguments[0].type == "Tensor"
    ref = pick(rng, scope) if wants else None
    first, words = arguments.drawn(rng, s, scope, ref)
    if s.outs > 1 and not apart(scope, first, s.outs):
        return f"{first or '0'} + 0"
    if s.outs and spelling[0] == ".":
        spelling = next((p for p in spelled if p[0] != "."), "")  # methods take no out=
        if not spelling:
            return f"{first}.clone()"
    if s.outs:
        out = [pick(rng, scope)] if s.outs == 1 else apart(scope, first, s.outs)
        words.append(f"out={out[0]}" if s.outs == 1 else f"out=({', '.join(out)})")
    if spelling[0] == "." and first:
        return f"{first}{spelling}({', '.join(words)})"
    if first and rng.random() < 0.1:
        first = f"{rng.choice(('input', 'self', 'x'))}={first}"
        if any("=" not in w for w in words):
            first = first.partition("=")[2]
    return f"{spelling}({', '.join([first] * bool(first) + words)})"


@functools.cache
def samples(i: int) -> list[Any]:
    """Small samples of an entry of the database."""
    info, found = signatures.database()[i], []
    for dtype in ("float32", "int64", "float64", "complex64"):
        if getattr(torch, dtype) in info.dtypes:
            torch.manual_seed(0)
            some = info.sample_inputs("cpu", getattr(torch, dtype), requires_grad=False)
            found += [s for s, _ in zip(some, range(12))]
    return [s for s in found if sum(t.numel() for t in inside(s)) <= 48]


def inside(x: Any) -> list[Any]:
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, (list, tuple)):
        return [t for v in x for t in inside(v)]
    if isinstance(x, dict):
        return inside(list(x.values()))
    return inside([x.input, x.args, x.kwargs]) if hasattr(x, "kwargs") else []


class Unwritable(Exception):
    """A sample that has no text."""


def written(rng: Random, scope: Scope, x: Any) -> str:
    """The text of a sample's argument; its tensors become new ones, or variables of their shape."""
    if isinstance(x, torch.Tensor):
        dtype = str(x.dtype)[6:]
        same = [
            n
            for n in tensors(scope)
            if scope[n].shape == x.shape and (scope[n].dtype == x.dtype or rng.random() < 0.3)
        ]
        if same and rng.random() < 0.5:
            return rng.choice(same)
        if x.layout is not torch.strided or dtype not in leaves.DTYPES:
            raise Unwritable
        if x.dtype.is_floating_point and rng.random() < 0.6:
            return leaves.tensor(rng, tuple(x.shape), dtype)
        if x.dtype.is_floating_point or x.dtype.is_complex:
            parts = torch.view_as_real(x) if x.is_complex() else x
            parts = parts.mul(64).round().div(64)  # which have short texts
            x = torch.view_as_complex(parts) if x.is_complex() else parts
        if 0 in x.shape:
            return f"torch.zeros({tuple(x.shape)}, dtype=torch.{dtype})"
        return f"torch.tensor({x.tolist()}, dtype=torch.{dtype})"
    if isinstance(x, torch.Size):
        x = tuple(x)
    if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
        parts = ", ".join(written(rng, scope, v) for v in x)
        return f"[{parts}]" if isinstance(x, list) else f"({parts}{',' * (len(x) == 1)})"
    if isinstance(x, (torch.dtype, torch.memory_format)):
        return str(x)
    if isinstance(x, slice):
        return f"slice({x.start}, {x.stop}, {x.step})"
    if x is None or isinstance(x, (bool, int, float, str)) or x is Ellipsis:
        return repr(x)
    if isinstance(x, complex):
        return f"complex({x.real!r}, {x.imag!r})"
    raise Unwritable


def sampled(rng: Random, scope: Scope, entry: int | None = None) -> str:
    """A call of PyTorch's database of operators, or of one of its entries, on tensors of our own."""
    entries = signatures.database()
    if not entries:
        return call(rng, scope)
    for _ in range(20):
        i = rng.randrange(len(entries)) if entry is None else entry
        info = entries[i]
        try:
            found = samples(i)
        except Exception:
            continue  # samples of types or libraries that this build of PyTorch lacks
        if not found:
            continue
        s = rng.choice(found)
        try:
            parts = [written(rng, scope, v) for v in (s.input, *s.args)]
            words = [f"{k}={written(rng, scope, v)}" for k, v in s.kwargs.items()]
        except Unwritable:
            continue
        name = signatures.where(info)
        if name.startswith("torch."):
            return f"{name}({', '.join(parts + words)})"
        return f"{parts[0]}{name}({', '.join(parts[1:] + words)})"
    return call(rng, scope)


BINARY = (
    "+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "<<",
    ">>",
)  # fmt: skip


def operator(rng: Random, scope: Scope) -> str:
    a = pick(rng, scope)
    if rng.random() < 0.15:
        return rng.choice(("-{}", "~{}", "abs({})", "+{}", "round({})", "{}.T", "{}.mT")).format(a)
    b = arguments.like(rng, scope, scope[a]) if rng.random() < 0.7 else arguments.scalar(rng)
    sign = rng.choice(BINARY[:8] * 3 + BINARY)
    return f"{a} {sign} {b}" if rng.random() < 0.8 else f"{b} {sign} {a}"


def in_place(rng: Random, scope: Scope) -> str:
    """A statement that binds nothing: `a += b`, `a[...] = b`, a method with an underscore."""
    a, way = pick(rng, scope), rng.random()
    b = arguments.like(rng, scope, scope[a]) if rng.random() < 0.6 else arguments.scalar(rng)
    if way < 0.3:
        return f"{a} {rng.choice(BINARY[:8])}= {b}"
    if way < 0.6:
        return f"{a}[{subscript(rng, scope, a)}] = {b}"
    if way < 0.7:
        return f"{a}[{subscript(rng, scope, a)}] {rng.choice('+-*')}= {b}"
    some = "zero_ relu_ neg_ exp_ sigmoid_ tanh_ sqrt_ t_ unsqueeze_(0) squeeze_ abs_ round_ sign_"
    if way < 0.8:
        name = rng.choice((some + " detach_ conj_physical_ logical_not_ sin_ ceil_").split())
        return f"{a}.{name}" + "()" * ("(" not in name)
    name = rng.choice(
        [
            "add_",
            "mul_",
            "sub_",
            "div_",
            "copy_",
            "fill_",
            "pow_",
            "clamp_",
            "maximum",
            "masked_fill_",
            "lerp_",
        ]
    )
    if name == "masked_fill_":
        return f"{a}.masked_fill_({a} > 0, {arguments.scalar(rng)})"
    return f"{a}.{name}({b})" if name != "lerp_" else f"{a}.lerp_({b}, 0.5)"


def subscript(rng: Random, scope: Scope, name: str) -> str:
    x, parts = scope[name], list[str]()
    way = rng.random()
    if way < 0.1:
        return f"{name} > 0"
    if way < 0.15:
        return rng.choice(("...", "None", "()", "..., 0", "None, ..., None", "True", "False"))
    for s in list(x.shape)[: rng.randint(1, max(x.dim(), 1))] or [1]:
        parts.append(one_subscript(rng, s))
    if rng.random() < 0.15:
        parts.insert(rng.randint(0, len(parts)), rng.choice(("None", "...", "None")))
    return ", ".join(parts)


def one_subscript(rng: Random, s: int) -> str:
    way = rng.random()
    if way < 0.3:
        return str(rng.randint(-max(s, 0), max(s - 1, 0)) if rng.random() < 0.95 else s)
    if way < 0.75:
        return rng.choice((":", ":", "1:", ":-1", "::2", "1:2", "0:0", "-2:", "5:"))
    values = [rng.randint(-s, s - 1) if s > 0 else 0 for _ in range(rng.randint(0, 3))]
    if way < 0.85:
        return str(values) if values else "[0]"
    if way < 0.95:
        return f"torch.tensor({values}, dtype=torch.int64)"
    return f"torch.tensor({[rng.random() < 0.5 for _ in range(s)]}, dtype=torch.bool)"


def indexed(rng: Random, scope: Scope) -> str:
    a = pick(rng, scope)
    return f"{a}[{subscript(rng, scope, a)}]"


def view(rng: Random, scope: Scope) -> str:
    """One or two views, one of the other."""
    a = pick(rng, scope)
    x, text = scope[a], a
    for _ in range(rng.choice((1, 1, 2))):
        n, d = x.dim(), arguments.dim(rng, x)
        order = tuple(rng.sample(range(n), n))
        text += rng.choice((
            f".transpose({d}, {arguments.dim(rng, x)})", f".permute{order if n else '(())'}", ".t()",
            f".unsqueeze({d})", f".squeeze({d})", ".squeeze()", f".view{size_of(rng, x)}",
            f".reshape({arguments.size(rng, x)})", f".view({arguments.size(rng, x)})",
            f".expand({arguments.size(rng, x)})", f".narrow({d}, {rng.randint(0, 1)}, {rng.randint(0, 2)})",
            f".select({d}, {rng.randint(-1, 1)})", f".diagonal({rng.randint(-1, 1)})", ".flatten()",
            f".flatten({rng.randint(0, 1)})", f".unfold({d}, {rng.randint(1, 2)}, {rng.randint(1, 2)})",
            f".swapaxes({d}, 0)", f".movedim({d}, 0)", f".chunk(2, {d})[0]", f".split(1, {d})[-1]",
            f".unbind({d})[0]", ".detach()", ".view(torch.int32)", ".view(torch.uint8)", ".real",
            ".imag", ".mT", ".T", ".H", ".conj()", "[::2]", "[..., None]", ".adjoint()", ".data",
            ".view_as(" + a + ")", ".expand_as(" + pick(rng, scope) + ")", ".contiguous()", ".clone()",
            f".as_strided({(rng.randint(1, 2), rng.randint(1, 3))}, {(rng.randint(0, 2), 1)}, {rng.randint(0, 1)})",
            ".to(memory_format=torch.channels_last)", ".contiguous(memory_format=torch.channels_last)",
            ".tensor_split(2)[-1]", ".hsplit(1)[0]", ".ravel()", ".unflatten(0, (1, -1))", ".to_dense()",
            ".positive()", ".resolve_conj()", ".type(torch.float32)", ".float()", ".double()", ".half()",
            ".to(torch.float64)", ".long()", ".bool()", ".byte()", ".bfloat16()", ".int()", ".cfloat()",
        ))  # fmt: skip
    return text


def size_of(rng: Random, x: Any) -> str:
    return str((-1,) if x.dim() != 2 else (x.shape[1], x.shape[0]))


def derivative(rng: Random, scope: Scope) -> str:
    """Something that asks for gradients, or that a gradient will meet."""
    a, b = pick(rng, scope), pick(rng, scope)
    grown = [n for n in tensors(scope) if scope[n].requires_grad and not scope[n].is_leaf]
    a = rng.choice(grown) if grown and rng.random() < 0.8 else a
    first = [n for n in tensors(scope) if scope[n].requires_grad]
    b = rng.choice(first) if first and rng.random() < 0.9 else b
    c = rng.choice(first) if first else b
    keep = rng.choice(("", ", retain_graph=True", ", create_graph=True", ", retain_graph=False"))
    return rng.choice((
        f"{a}.sum().backward({keep[2:]})", f"torch.autograd.backward({a}, torch.ones_like({a}){keep})",
        f"{a}.backward(torch.ones_like({a}){keep})", f"{a}.backward(gradient={a}.detach() * 2{keep})",
        f"{a}.abs().sum().backward({keep[2:]}, inputs=[{b}])".replace("(, ", "("),
        f"$ = torch.autograd.grad({a}.abs().sum(), [{b}, {c}], allow_unused=True{keep})",
        f"$ = torch.autograd.grad({a}, {b}, torch.ones_like({a}), allow_unused=True{keep})",
        f"$ = torch.autograd.grad({a}, [{b}], torch.ones_like({a}), materialize_grads=True{keep})",
        f"$ = {a}.register_hook(lambda g: g * 2)", f"$ = {b}.register_hook(lambda g: g.clamp(-1, 1))",
        f"$ = {b}.register_hook(lambda g: None)", f"{a}.retain_grad()", f"{b}.grad = None",
        f"$ = {b}.register_post_accumulate_grad_hook(lambda p: print(end=''))", f"$ = {b}.grad",
        f"{b}.requires_grad_()", f"{b}.requires_grad_(False)", f"{b}.requires_grad = True",
        f"with torch.no_grad():\n    $ = {a} * 2", f"with torch.no_grad():\n    {b}.mul_(0.5)",
        f"with torch.no_grad():\n    $ = {a}.view(-1)", f"{b}.data.mul_(2)", f"$ = {a}.detach()",
        f"with torch.enable_grad():\n    $ = {a} + {b}", f"with torch.inference_mode():\n    $ = {a} + 1",
        f"$ = {a}.clone()", f"{b}.grad.zero_()", f"{b}.data = {a}.detach()", f"{a}.detach_()",
        f"$ = torch.utils.checkpoint.checkpoint(lambda x: (x * x).sin(), {b}, use_reentrant=False)",
        f"$ = torch.nn.Parameter({b})", f"$ = {a}.grad_fn.name()", f"$ = {a}.is_leaf, {a}.requires_grad, {a}.output_nr",
    ))  # fmt: skip


def copied(rng: Random, scope: Scope) -> str:
    a, b = pick(rng, scope), pick(rng, scope)
    # PyTorch's pickle writes memory that is shared once for each tensor, and later writes tell.
    at = scope[a].untyped_storage().data_ptr()
    alone = a if scope[b].untyped_storage().data_ptr() == at else b
    return rng.choice((
        f"copy.copy({a})", f"copy.deepcopy({a})", f"copy.deepcopy([{a}, {b}])",
        f"pickle.loads(pickle.dumps({a}))", f"pickle.loads(pickle.dumps([{a}, {alone}, {a}]))",
        f"saved([{a}, {b}])", f"saved({{'a': {a}, 'b': {a}}})", f"torch.as_tensor({a})",
        f"torch.tensor({a})", f"torch.asarray({a})", f"{a}.new_tensor([1, 2])", f"torch.clone({a})",
        f"torch.from_numpy({a}.detach().numpy())", f"torch.as_tensor({a}.detach().numpy())",
        f"{a}.new_zeros((2, 3))", f"torch.zeros_like({a})", f"torch.ones_like({a}, dtype=torch.float32)",
        f"torch.full_like({a}, 2)", f"{a}.new_full((2,), 3)", f"torch.from_dlpack({a}.detach())",
        f"torch.empty_like({a}).copy_({a})", f"torch.empty_like({a}).fill_(1)",
    ))  # fmt: skip


def asked(rng: Random, scope: Scope) -> str:
    """What a program may ask a tensor for."""
    a, b = pick(rng, scope), pick(rng, scope)
    return rng.choice((
        f"repr({a})", f"str({a}.detach())", f"{a}.tolist()", f"{a}.item()", f"len({a})", f"bool({a})",
        f"{a}.stride()", f"{a}.size()", f"{a}.is_contiguous()", f"{a}.storage_offset()", f"float({a})",
        f"{a}.is_contiguous(memory_format=torch.channels_last)", f"{a}.numel()", f"list({a})",
        f"torch.result_type({a}, {b})", f"torch.equal({a}, {b})", f"torch.allclose({a}, {b})",
        f"{a}.is_floating_point()", f"{a}.nbytes", f"int({a})", f"{a} in {b}", f"{a}.type()",
        f"torch.can_cast({a}.dtype, {b}.dtype)", f"{a}.numpy()", f"np.asarray({a}.detach())",
        f"[x.shape for x in {a}]", f"{a}.data_ptr() == {b}.data_ptr()", f"{a}.is_set_to({b})",
        f"torch.broadcast_shapes({a}.shape, {b}.shape)", f"f'{{{a}:.2f}}'", f"{a}.untyped_storage().nbytes()",
        f"hash({a}) == hash({a})", f"{a}._version", f"{a}._is_view()", f"{a}.is_inference()",
    ))  # fmt: skip


def network(rng: Random, scope: Scope) -> str:
    """A module on a tensor, with weights drawn from a seed."""
    a = pick(rng, scope)
    x = scope[a]
    last = x.shape[-1] if x.dim() else 1
    chans = x.shape[1] if x.dim() > 1 else 1
    makes = rng.choice((
        f"Linear({last}, 2)", f"Linear({last}, 3, bias=False)", "ReLU()", "ReLU(inplace=True)", "GELU()",
        "Softmax(dim=-1)", "LogSoftmax(dim=0)", f"LayerNorm({last})", f"LayerNorm(({last},), elementwise_affine=False)",
        f"BatchNorm1d({chans})", f"BatchNorm2d({chans})", f"Conv2d({chans}, 2, 1)", f"Conv1d({chans}, 2, 2, padding=1)",
        f"Conv2d({chans}, 2, 2, padding=1)", "Flatten()", "Flatten(0)", "Dropout(0.5)", "Embedding(6, 3)",
        "MaxPool2d(2, 1)", "AvgPool2d(2, 1)", "AdaptiveAvgPool2d(1)", "MaxPool1d(2)", f"GroupNorm(1, {chans})",
        f"InstanceNorm2d({chans})", f"LSTM({last}, 2)", f"GRU({last}, 2, batch_first=True)", f"RNN({last}, 2)",
        "PReLU()", "Hardswish(inplace=True)", "SiLU()", "ELU()", "LeakyReLU(0.1, inplace=True)", "Tanh()",
        f"Sequential(torch.nn.Linear({last}, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))", "Identity()",
        "Upsample(scale_factor=2)", "Upsample(scale_factor=2, mode='bilinear')", "PixelShuffle(1)", "Softplus()",
        f"RMSNorm({last})", "ZeroPad2d(1)", "ReflectionPad1d(1)", "Unfold(2)", f"ConvTranspose2d({chans}, 2, 2)",
        f"MultiheadAttention({last}, 1)", "Hardtanh()", "CELU()", "Mish()", "Threshold(0.1, 2)", "GLU()",
        f"Bilinear({last}, {last}, 2)", "CosineSimilarity(dim=-1)", "PairwiseDistance()",
    ))  # fmt: skip
    two = f", {a}" * makes.startswith(("Bil", "Cos", "Pairw")) + f", {a}, {a}" * makes.startswith(
        "Multi"
    )
    arg = f"{a}{two}" if x.dtype is torch.float32 or "Emb" in makes else f"{a}.float(){two}"
    ends = ("", ".eval()", ".double()") if rng.random() < 0.3 else ("",)
    return f"seeded(torch.nn.{makes}){rng.choice(ends)}({arg})"


LOSSES = (
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits kl_div "
    "poisson_nll_loss soft_margin_loss cross_entropy hinge_embedding_loss cosine_similarity"
)


def loss(rng: Random, scope: Scope) -> str:
    a = pick(rng, scope)
    name = rng.choice(LOSSES.split())
    b = arguments.like(rng, scope, scope[a])
    more = rng.choice(("", ", reduction='sum'", ", reduction='none'")) * (name[-1] == "s")
    return f"torch.nn.functional.{name}({a}, {b}{more})"


EXPRESSIONS: tuple[tuple[Drawer, int], ...] = (
    (leaf, 3), (call, 9), (sampled, 4), (operator, 4), (indexed, 3), (view, 5), (copied, 2),
    (asked, 2), (network, 1), (loss, 1),
)  # fmt: skip
PURE: tuple[tuple[Drawer, int], ...] = (  # what functions are made of
    (call, 4), (sampled, 2), (operator, 6), (indexed, 2), (view, 4), (loss, 1),
)  # fmt: skip


def weighted(rng: Random, kinds: tuple[tuple[Drawer, int], ...]) -> Drawer:
    return rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
