"""Programs that cannot be compiled: the place the error points at stands between « and »."""

from __future__ import annotations

# Each: what the message says, then the function.
TEXT = """
undefined value nothing
def f(x):
    return «nothing» + 1
---
undefined value z
def f(x, n: int):
    for i in range(n):
        z = x + i
    return «z»
---
y is not defined in the false branch
def f(x, n: int):
    if n > 1:
        y = x
    return «y»
---
y is not defined in the true branch
def f(x, n: int):
    if n > 1:
        pass
    else:
        y = x
    return «y»
---
Type mismatch: y is set to type int in the true branch and type Tensor in the false branch
def f(x, n: int):
    if n > 1:
        y = 1
    else:
        y = x
    return «y»
---
Variable 'y' previously had type int but is now being assigned to a value of type Tensor
def f(x, n: int):
    y = 1
    if n > 1:
        «y = x»
    return y
---
Variable 'y' previously had type Tensor but is now being assigned to a value of type str
def f(x, n: int):
    y = x
    for i in range(n):
        «y = "a"»
    return y
---
Variable 'y' is annotated with type int but is being assigned to a value of type str
def f(x):
    «y: int = "a"»
    return y
---
value of type Tensor but this return statement returns a value of type int
def f(x, n: int):
    if n > 1:
        return x
    «return 1»
---
Return value was annotated as having type str but is actually of type int
def f(x: int) -> str:
    «return x»
---
Return value was annotated as having type Tensor but is actually of type None
def f(x, n: int) -> torch.Tensor:
    if n > 1:
        return x
    «return»
---
'Tensor' object has no attribute or method 'foo'
def f(x):
    return «x.foo»(1)
---
object has no attribute nope
def f(x):
    return «torch.nope»(x)
---
Expected a value of type 'Tensor' for argument 'other' but instead found type 'str'
def f(x):
    return «torch.add»(x, "a")
---
Expected a value of type 'int' for argument 'b' but instead found type 'str'
def f(n: int):
    return «n + "a"»
---
Expected a value of type 'int' for argument 'a' but instead found type 'Optional[int]'
def f(n: Optional[int]):
    return «n + 1»
---
Expected at most 2 arguments but found 3 positional arguments
def f(x):
    return «torch.mul»(x, x, x)
---
Unknown keyword argument 'dims'
def f(x):
    return «torch.neg»(x, dims=1)
---
Argument other not provided
def f(x):
    return «torch.mul»(x)
---
got an unexpected keyword argument
def f(x):
    return «torch.nn.functional.relu»(x, wrong=True)
---
function 'f' is called recursively. Recursive calls are not supported
def f(x):
    return «f»(x)
---
need 3 values to unpack but found only 2
def f(t: Tuple[int, int]):
    «a, b, c» = t
    return a
---
too many values to unpack: need 2 but found 3
def f(n: int):
    «a, b» = n, n, n
    return a
---
int cannot be used as a tuple
def f(n: int):
    «a, b» = n
    return a
---
global variables aren't supported
def f(x):
    «global» Q
    return x
---
Yield aren't supported
def f(x):
    «yield x»
---
Compiled functions can't take variable number of arguments
def f(x, *«args»):
    return x
---
Compiled functions can't take variable number of arguments
def f(x, **«kwargs»):
    return x
---
function definitions aren't supported
def f(x):
    «def» inner(y):
        return y
    return inner(x)
---
try blocks aren't supported
def f(x):
    «try»:
        return x
    except ValueError:
        return x
---
Set aren't supported
def f(n: int):
    return «{1, n}»
---
import statements aren't supported
def f(x):
    «import» os
    return x
---
class definitions aren't supported
def f(x):
    «class» A:
        pass
    return x
---
lambda functions aren't supported
def f(x):
    g = «lambda y: y»
    return x
---
assignment expressions aren't supported
def f(n: int):
    if («n := 3») > 1:
        return n
    return 0
---
set comprehensions aren't supported
def f(n: int):
    return «{i for i in range(n)}»
---
undefined value x
def f(x):
    del x
    return «x»
---
Tried to set an attribute: foo on a non-class: int
def f(n: int):
    «n.foo = 3»
    return n
---
'int' object is not iterable
def f(n: int):
    for a in «n»:
        pass
    return n
---
'int' object is not callable
def f(n: int):
    return «n»(1)
---
'int' object is not subscriptable
def f(n: int):
    return «n[0]»
---
Expected a value of type 'int' for argument 'idx' but instead found type 'str'
def f(xs: List[int]):
    return «xs["a"]»
---
Arguments for call are not valid
def f(xs: List[int]):
    «xs.append»("a")
    return xs
---
Arguments for call are not valid
def f(d: Dict[str, int]):
    «d[1] = 2»
    return d
---
Cannot index into a tuple with a non-integer literal
def f(n: int):
    t = (n, "a")
    return t[«n»]
---
Tuple index out of range: 2, and the tuple has 2 elements
def f(n: int):
    t = (n, "a")
    return «t[2]»
---
Could not cast value of type Tuple[int, int] to bool
def f(n: int):
    xs = (n, n)
    if «xs»:
        return 1
    return 0
---
range() arguments must be of type int, but found float
def f(x: float):
    for i in «range»(x):
        pass
    return x
---
Python builtin <built-in function open> is currently not supported in Torchscript
def f(x):
    return «open»("a")
---
Arguments for call are not valid
def f(n: int):
    return «len»(n)
---
Arguments for call are not valid
def f(n: int):
    return «abs»(n, 2)
---
Unknown type name 'Missing'
def f(x: «Missing»):
    return x
---
a Tuple has a fixed length
def f(x: «Tuple[int, ...]»):
    return x
---
break and continue are not supported
def f(n: int):
    for k in (1, 2):
        if k == n:
            «break»
    return n
---
else branches of for loops aren't supported
def f(n: int):
    for k in range(n):
        pass
    else:
        «n» = 1
    return n
---
else branches of while loops aren't supported
def f(n: int):
    while n > 1:
        n -= 1
    else:
        «n» = 1
    return n
---
Expected a value of type 'int' for argument 'k' but instead found type 'str'
def f(n: int):
    return «helper»("a")
---
Argument k not provided
def f(n: int):
    return «helper»()
---
Unknown keyword argument 'j'
def f(n: int):
    return «helper»(n, j=1)
---
Expected at most 1 arguments but found 2 positional arguments
def f(n: int):
    return «helper»(n, n)
---
exceptions must derive from BaseException
def f(n: int):
    «raise helper»
---
Starred unpacking is only possible for tuples
def f(xs: List[int]):
    «a, *b» = xs
    return a
---
expected an expression of type List[int] but found int
def f(n: int):
    return torch.jit.annotate(List[int], «n»)
---
a tensor's elements cannot be set to str
def f(x):
    «x[0] = "a"»
    return x
---
'str' object does not support subscripted assignment
def f(s: str):
    «s[0] = "a"»
    return s
---
Type mismatch: the true expression has type int but the false expression has type str
def f(n: int):
    return «n if n > 1 else "a"»
---
An index can only have a single ellipsis
def f(x):
    return «x[..., 0, ...]»
---
Python builtin <built-in function input> is currently not supported
def f(n: int):
    return «input»("?")
---
keyword-arg expansion is not supported
def f(n: int):
    return helper(**«{"k": n}»)
---
python value of type 'Tensor' cannot be used as a value
def f(x):
    return x + «outside»
---
With item expression must return an object
def f(x):
    with «torch.autograd.profiler.profile»():
        return x
---
object of type 'dict' cannot be used as a value
def f(x):
    return «table»
---
'List[int]' object has no attribute or method 'push'.
def f(xs: List[int]):
    return «xs.push»(1)
---
module 'math' function
def f(x: float):
    return «math.nextafter»(x, x)
"""
TEXT = TEXT.replace("object of type 'dict' cannot", "python value of type 'dict' cannot").replace(
    "module 'math' function",
    "Python builtin <built-in function nextafter> is currently not supported in Torchscript",
)
PROGRAMS = [part.strip("\n").split("\n", 1) for part in TEXT.split("---")]
