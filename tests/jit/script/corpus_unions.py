"""Programs about values of one of several types."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union

import toytorch as torch
from tests.jit.script.case import V, X, calls

Number = Union[int, float]


@calls((3,), ("abc",))
def number_or_text(x: Union[int, str]) -> int:
    return x + 1 if isinstance(x, int) else len(x)


@calls(("a",), (1,), (2.5,))
def three_types(x: int | float | str) -> str:
    if isinstance(x, str):
        return x
    elif isinstance(x, int):
        return "int"
    return str(x)


@calls((1,), (2.5,), ("abc",))
def several_at_once(x: Union[int, str, float]) -> int:
    if isinstance(x, (int, float)):
        return int(x)
    else:
        return len(x)


@calls((True,), (False,))
def returned_union(flag: bool) -> Union[int, str]:
    if flag:
        return 1
    return "a"


@calls((True,), (False,))
def returned_anything(flag: bool) -> Any:
    if flag:
        return 1
    return "a"


@calls((1,), (2,), (9,))
def returned_from_a_loop(n: int) -> Union[int, str, None]:
    for i in range(n):
        if i == 3:
            return "a"
    if n > 1:
        return n
    return None


@calls((X,), ([X, X],))
def tensor_or_tensors(x: Union[torch.Tensor, List[torch.Tensor]]):
    if isinstance(x, list):
        x = torch.cat(x)
    return x * 2


@calls((X,), ((X, X),))
def tensor_or_pair(x: Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]):
    if torch.jit.isinstance(x, Tuple[torch.Tensor, torch.Tensor]):
        return x[0] + x[1]
    assert isinstance(x, torch.Tensor)
    return x


@calls((V, True), (V, False))
def one_or_two(x, both: bool) -> Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]:
    y = x * 2
    if both:
        return y, x
    return y


@calls((3,), ([1, 2],))
def made_a_list(x: Union[int, List[int]]) -> int:
    if isinstance(x, int):
        x = [x]
    return len(x)


@calls((1,), ((1, 2),))
def made_a_pair(x: Union[int, Tuple[int, int]]) -> Tuple[int, int]:
    if isinstance(x, int):
        y = (x, x)
    else:
        y = x
    return y


@calls(([1],), (["a"],))
def list_of_which(x: Union[List[int], List[str]]) -> int:
    if torch.jit.isinstance(x, List[int]):
        return 1
    return 2


@calls((None,), (4,), ([1, 2],))
def union_with_none(x: Union[int, List[int], None]) -> int:
    if x is None:
        return -1
    if isinstance(x, int):
        return x
    return len(x)


@calls((None,), ("ab",), (7,))
def default_for_none(x: Optional[Union[int, str]]) -> int:
    if x is None:
        x = 3
    return number_or_text(x)


@calls(([1, "ab"],), ([],))
def list_of_unions(xs: List[Union[int, str]]) -> int:
    n = 0
    for x in xs:
        n += x if isinstance(x, int) else len(x)
    return n


@calls(())
def containers_of_unions():
    d: Dict[str, Union[int, str]] = {"a": 1, "b": "c"}
    d["z"] = 3
    xs: List[Union[int, str]] = [1, "a"]
    xs.append("q")
    return d, xs


@calls((True,), (False,))
def variable_of_a_union(flag: bool):
    x: Union[int, str] = 1
    if flag:
        x = "abcd"
    return number_or_text(x)


@calls((2,), (2.5,))
def number_of_a_kind(x: Number) -> float:
    return float(x) * 2


@calls((1, "abc"))
def called_with_members(a: int, b: str) -> int:
    return number_or_text(a) + number_or_text(b)


@calls((V,))
def literals_of_several_types(x):
    d = {"x": x, "n": 3}
    n = d["n"]
    assert isinstance(n, int)
    for v in [x, n, 5]:
        if isinstance(v, int):
            n += v
    return n, [1, "a"], [[1], 2], {"a": 1, "b": "c"}, [True, 1]
