"""Programs: their text, and what is refused."""

from __future__ import annotations

import pytest

from toytorch.loops import Array, Program, Reduce, Scalar, Step, Unsupported
from toytorch.loops.runtime.kernel import Recipe


def test_text_and_records_say_the_same() -> None:
    text = "x[i,j] float32, s float32 -> y[i] float32\n a = x * s\n y = sum[j](a)"
    made = Program(
        (Array("x", "float32", ("i", "j")),),
        (Scalar("s", "float32"),),
        (
            Step("a", "mul", ("x", "s"), "float32", ("i", "j")),
            Reduce("y", "sum", "a", ("j",), "float32", ("i",)),
        ),
        (Array("y", "float32", ("i",)),),
    )
    assert Program.parse(text) == made and hash(Program.parse(text)) == hash(made)
    assert made.dims == ("i", "j") and made.over == ("j",)


@pytest.mark.parametrize(
    "text",
    [
        "x[i,j] -> y[i,j]\n e = exp(x - max[j](x))\n y = e / sum[j](e)",
        "x[i] int32, k int32 -> y[i] uint8\n z = x // 3 + k\n y = uint8(z & 255)",
        "x[i,j] -> y[i], n[i] bool\n y = mean[j](x)\n n = any[j](isnan(x) or x > 3)",
        "x[], s -> y[]\n y = -x if x < s else inf",
        "p[i], g[i], lr -> p[i]\n p = p - lr*g\n p = p*0.5",
        "x[i] float16 -> y[i] bfloat16\n y = x ** 2 + x ** 3",
    ],
)
def test_what_is_printed_is_read_again(text: str) -> None:
    program = Program.parse(text)
    assert Program.parse(str(program)) == program


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("x[i]", SyntaxError, "inputs -> outputs"),
        ("x[i] -> y[i]\n y = z", NameError, "'z' is not defined"),
        ("x[i] -> y[i]\n z = x + 1", NameError, "output 'y' is never assigned"),
        ("x[i] -> y[i]\n y = foo(x)", NameError, "no primitive 'foo'"),
        ("x[i] -> y[i]\n y = total[i](x)", NameError, "no reduction"),
        ("x[i] -> y[i]\n y = atan2(x)", TypeError, "takes 2 arguments, got 1"),
        ("x[i] int32, z[i] -> y[i]\n y = x + z", TypeError, "cast them to one"),
        ("x[i] int32 -> y[i] int32\n y = exp(x)", Unsupported, "exp is not supported for int32"),
        ("x[i] -> y[i] int32\n y = x + 1", TypeError, "is computed as float32"),
        ("x[i,j] -> y[i]\n y = x + 1", ValueError, "lacks dimensions"),
        ("x[i] -> y[i]\n y = sum[k](x)", ValueError, "reduces over"),
        ("x[i,i] -> y[i]\n y = x", ValueError, "has a dimension twice"),
        ("x[i] what -> y[i]\n y = x", TypeError, "unknown type 'what'"),
        ("exp[i] -> y[i]\n y = exp", ValueError, "cannot be the name"),
        ("n0[i] -> y[i]\n y = n0", ValueError, "cannot be the name"),
        ("x[i] -> y[i]\n y = x.sum()", NameError, "no primitive"),
        ("x[i] -> y[i]\n y = 3", SyntaxError, "is a constant"),
        ("x[i] -> y[i]\n y = where(x, x, x)", TypeError, "condition has to be bool"),
    ],
)
def test_what_is_wrong_is_said(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Program.parse(text)


def test_types_are_left_open_in_a_recipe() -> None:
    recipe = Recipe("x[i] -> y[i]\n y = x * x")
    assert recipe.program("float64").outputs[0].type == "float64"
    assert recipe.program("int32").outputs[0].type == "int32"


def test_long_chains_are_no_recursion() -> None:
    steps = "\n".join(" x = x + 1" for _ in range(3000))
    program = Program.parse(f"x[i] -> x[i]\n{steps}")
    assert len(program.steps) == 3000
