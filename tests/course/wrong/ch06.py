"""Wrong answers of chapter 06."""

import toytorch as torch
from tests.course.wrong import handed_in, like, wrong
from toytorch.autograd import Function

# -- extending.swish

like(
    "extending.swish",
    "adds the slope to what comes in",
    ("grad * (s +", "grad + (s +"),
)
like(
    "extending.swish",
    "the sigmoid's slope as s * (1 - x)",
    ("(s + beta * x * s * (1 - s))", "(s + beta * x * s * (1 - x))"),
)
like(
    "extending.swish",
    "keeps x detached: it comes back without its history",
    ("save_for_backward(x, beta)", "save_for_backward(x.detach(), beta.detach())"),
)
like(
    "extending.swish",
    "computes the slope under no_grad",
    ("grad * (s + beta * x * s * (1 - s))", "grad * (s + beta * x * s * (1 - s)).detach()"),
    ("(grad * x * x * s * (1 - s)).sum()", "(grad * (x * x * s * (1 - s)).detach()).sum()"),
)
like(
    "extending.swish",
    "writes into the gradient that comes in",
    ("grad * (s + beta * x * s * (1 - s))", "grad.mul_(s + beta * x * s * (1 - s))"),
    ("(grad * x * x * s", "(grad.clone() * x * x * s"),
)
like(
    "extending.swish",
    "once differentiable",
    (
        "    @staticmethod\n    def backward",
        "    @staticmethod\n    @torch.autograd.function.once_differentiable\n    def backward",
    ),
)
like(
    "extending.swish",
    "forgets beta in the slope by x",
    ("(s + beta * x * s * (1 - s))", "(s + x * s * (1 - s))"),
)
like(
    "extending.swish",
    "one x too few in the slope by beta",
    ("(grad * x * x * s", "(grad * x * s"),
)
like(
    "extending.swish",
    "asks for the wrong input's need",
    ("needs_input_grad[1]", "needs_input_grad[0]"),
)
like(
    "extending.swish",
    "computes both gradients always",
    ("        if ctx.needs_input_grad[0]:\n", "        if any(ctx.needs_input_grad):\n"),
    ("        if ctx.needs_input_grad[1]:\n", "        if any(ctx.needs_input_grad):\n"),
)


@wrong("extending.swish", "keeps y and divides by x to find the sigmoid again")
class Swish(Function):
    @staticmethod
    def forward(ctx, x, beta):
        y = x * (beta * x).sigmoid()
        ctx.save_for_backward(x, beta, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, beta, y = ctx.saved_tensors
        s = y / x
        for_x = for_beta = None
        if ctx.needs_input_grad[0]:
            for_x = grad * (s + beta * y * (1 - s))
        if ctx.needs_input_grad[1]:
            for_beta = (grad * x * y * (1 - s)).sum()
        return for_x, for_beta


@wrong("extending.swish", "is torch.nn.functional.silu")
class Swish(Function):
    @staticmethod
    def apply(x, beta):
        return torch.nn.functional.silu(beta * x) / beta


# -- extending.gradcheck

like(
    "extending.gradcheck",
    "lets nan agree",
    (
        "if not abs(difference - slope[i].item()) <= tolerance:",
        "if abs(difference - slope[i].item()) > tolerance:",
    ),
)


@wrong("extending.gradcheck", "is torch.autograd.gradcheck")
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    return torch.autograd.gradcheck(f, inputs, eps=step, atol=tolerance, raise_exception=False)


@wrong("extending.gradcheck", "lets the mean error decide")
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    weights = torch.rand_like(f(*inputs))
    slopes = torch.autograd.grad((f(*inputs) * weights).sum(), inputs)
    errors = []
    for x, slope in zip(inputs, slopes):
        numbers, slope = x.detach().view(-1), slope.reshape(-1)
        for i in range(len(numbers)):
            before, ends = numbers[i].item(), []
            for move in (step, -step):
                numbers[i] = before + move
                ends.append((f(*inputs) * weights).sum().item())
            numbers[i] = before
            errors.append(abs((ends[0] - ends[1]) / (2 * step) - slope[i].item()))
    return sum(errors) / len(errors) <= tolerance


@wrong("extending.gradcheck", "moves all numbers of an input at once")
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    weights = torch.rand_like(f(*inputs))
    slopes = torch.autograd.grad((f(*inputs) * weights).sum(), inputs)
    for x, slope in zip(inputs, slopes):
        numbers = x.detach()
        kept, ends = numbers.clone(), []
        for move in (step, -step):
            numbers.copy_(kept + move)
            ends.append((f(*inputs) * weights).sum().item())
        numbers.copy_(kept)
        if not abs((ends[0] - ends[1]) / (2 * step) - slope.sum().item()) <= tolerance:
            return False
    return True


@wrong("extending.gradcheck", "leaves its gradients in .grad")
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    weights = torch.rand_like(f(*inputs))
    for x in inputs:
        x.grad = None
    (f(*inputs) * weights).sum().backward()
    for x in inputs:
        numbers, slope = x.detach().view(-1), x.grad.reshape(-1)
        for i in range(len(numbers)):
            before, ends = numbers[i].item(), []
            for move in (step, -step):
                numbers[i] = before + move
                ends.append((f(*inputs) * weights).sum().item())
            numbers[i] = before
            if not abs((ends[0] - ends[1]) / (2 * step) - slope[i].item()) <= tolerance:
                return False
    return True


@wrong("extending.gradcheck", "the inputs want no gradient any more")
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    weights = torch.rand_like(f(*inputs))
    slopes = torch.autograd.grad((f(*inputs) * weights).sum(), inputs)
    for x, slope in zip(inputs, slopes):
        x.requires_grad_(False)
        numbers, slope = x.view(-1), slope.reshape(-1)
        for i in range(len(numbers)):
            before, ends = numbers[i].item(), []
            for move in (step, -step):
                numbers[i] = before + move
                ends.append((f(*inputs) * weights).sum().item())
            numbers[i] = before
            if not abs((ends[0] - ends[1]) / (2 * step) - slope[i].item()) <= tolerance:
                return False
    return True


like(
    "extending.gradcheck",
    "puts the number back by moving it once more",
    ("numbers[i] = before\n", "numbers[i] = numbers[i].item() + step\n"),
)
like(
    "extending.gradcheck",
    "a tolerance relative to the slope only",
    ("<= tolerance:", "<= tolerance * abs(difference):"),
)
like(
    "extending.gradcheck",
    "ignores the step and the tolerance it is given",
    ("    result = f(*inputs)\n", "    step, tolerance = 1e-6, 1e-5\n    result = f(*inputs)\n"),
)

# -- extending.implicit

like("extending.implicit", "one gradient for three inputs", (", None, None", ""))
like("extending.implicit", "adds a small number below", ("/ by_y,", "/ (by_y + 1e-6),"))
like(
    "extending.implicit",
    "y and x are not guarded against being written over",
    ("ctx.save_for_backward(x, y)", "ctx.kept = x, y"),
    ("ctx.saved_tensors", "ctx.kept"),
)
like(
    "extending.implicit",
    "one slope for all numbers",
    ("return -grad * by_x / by_y,", "return -grad * by_x.sum() / by_y.sum(),"),
)
like(
    "extending.implicit",
    "the sum of both derivatives below",
    ("/ by_y,", "/ (by_x + by_y),"),
)
like(
    "extending.implicit",
    "leaves gradients behind: backward instead of grad",
    (
        "        x, y = (t.detach().requires_grad_() for t in ctx.saved_tensors)",
        "        x, y = ctx.saved_tensors\n        y = y.detach().requires_grad_()",
    ),
    (
        "        by_x, by_y = torch.autograd.grad(value, (x, y))",
        "        value.backward()\n        by_x, by_y = x.grad, y.grad",
    ),
)


like("extending.implicit", "does not divide", ("by_x / by_y, None", "by_x, None"))


# -- extending.hvp

like(
    "extending.hvp",
    "x wants a gradient afterwards",
    ("x = x.detach().requires_grad_()", "x.requires_grad_()"),
)
like("extending.hvp", "works for vectors only", ("(slope * v).sum()", "slope @ v"))
like(
    "extending.hvp",
    "the sum of v instead of v",
    ("(slope * v).sum()", "slope.sum() * v.sum()"),
)
like(
    "extending.hvp",
    "half the Hessian, as in Taylor's formula",
    ("return product", "return product / 2"),
)


@wrong("extending.hvp", "a difference of two slopes")
def hvp(f, x, v):
    def slope(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(f(x), x)[0]

    h = 1e-5
    return (slope(x + h * v) - slope(x - h * v)) / (2 * h)


@wrong("extending.hvp", "the slope's outer product, as in Gauss-Newton")
def hvp(f, x, v):
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(f(x), x)
    return slope * (slope * v).sum()


@wrong("extending.hvp", "is torch.autograd.functional.hvp")
def hvp(f, x, v):
    return torch.autograd.functional.hvp(f, x, v)[1]


@wrong("extending.hvp", "the diagonal only, number by number")
def hvp(f, x, v):
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(f(x), x, create_graph=True)
    rows = []
    for i in range(len(x)):
        (row,) = torch.autograd.grad(slope[i], x, retain_graph=True)
        rows.append(row[i] * v[i])
    return torch.stack(rows)


# -- extending.function ---------------------------------------------------------------------------

like(
    "extending.function",
    "no gradient becomes zeros of the result's shape",
    ("return np.zeros_like(x.data)", "return 0.0"),
)
like(
    "extending.function",
    "compares the number of elements only",
    ("if np.shape(part) != x.data.shape:", "if np.size(part) != x.data.size:"),
)
like(
    "extending.function",
    "a gradient too large is summed",
    (
        "        if np.shape(part) != x.data.shape:",
        "        part = np.asarray(part)\n"
        "        while part.ndim > x.data.ndim:\n"
        "            part = part.sum(0)\n"
        "        if np.shape(part) != x.data.shape:",
    ),
)
like(
    "extending.function",
    "makes an array of everything",
    (
        "x.data if isinstance(x, Tensor) else x for",
        "x.data if isinstance(x, Tensor) else np.asarray(x) for",
    ),
)
like(
    "extending.function",
    "only tensors that want a gradient are parents",
    (
        "parents = [x for x in inputs if isinstance(x, Tensor)]",
        "parents = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]",
    ),
)
like(
    "extending.function",
    "weighs with new random numbers each time",
    (
        "return float((result * weights).sum())",
        "return float((result * np.random.default_rng().normal(size=result.shape)).sum())",
    ),
)
like(
    "extending.function",
    "seeds everybody's random numbers",
    ("np.random.default_rng(0).normal(", "(np.random.seed(0) or np.random).normal("),
)
like("extending.function", "an absolute tolerance", ("tolerance * (1 + abs(wanted))", "tolerance"))
like(
    "extending.function",
    "puts gradients back only if all goes well",
    (
        (
            "        finally:\n"
            "            for (_, x), old in zip(wanting, kept):\n"
            "                x.grad = old\n"
            "        for (number"
        ),
        "        finally:\n            pass\n        for (number",
    ),
    (
        "        return True",
        (
            "        for (_, x), old in zip(wanting, kept):\n"
            "            x.grad = old\n"
            "        return True"
        ),
    ),
)
like(
    "extending.function",
    "counts only inputs that want a gradient",
    (
        "for (number, x), g in zip(wanting, found):",
        "for number, ((_, x), g) in enumerate(zip(wanting, found)):",
    ),
)
like(
    "extending.function", "says False instead of raising", ("raise AssertionError(", "return bool(")
)


handed_in("extending.function", "is torch.autograd.Function", lambda: torch.autograd.Function)
