"""Types of expressions: names become places, and conversions that C does silently become nodes."""

from __future__ import annotations

import numpy as np

from toytorch.cuda.emulator import arithmetic
from toytorch.cuda.emulator import program as p
from toytorch.cuda.emulator import syntax as s
from toytorch.cuda.emulator import types as t
from toytorch.cuda.emulator.check_places import PlaceChecker
from toytorch.cuda.emulator.errors import At, CompileError
from toytorch.cuda.emulator.functions import NAMED_NUMBERS

SPECIAL = ("threadIdx", "blockIdx", "blockDim", "gridDim")
COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")
WHOLE_ONLY = ("%", "&", "|", "^", "<<", ">>")


class ExpressionChecker(PlaceChecker):
    """Gives expressions their types."""

    def value(self, node: s.Expression) -> p.Expr:
        """The typed form of an expression that is read."""
        rule = getattr(self, f"of_{type(node).__name__.lower()}")
        return rule(node)

    def of_number(self, node: s.Number) -> p.Expr:
        text = node.text
        if text[0] == "'":
            letter = text[1:-1].encode().decode("unicode_escape")
            return self.constant(t.CHAR, ord(letter), node.at)
        lower = text.lower()
        based = lower.startswith(("0x", "0b"))
        digits = lower.rstrip("ul" if based else "ulf")
        suffix = lower[len(digits) :]
        if not based and ("." in digits or "e" in digits or "f" in suffix):
            if suffix not in ("", "f") or (suffix and digits.isdigit()):
                raise CompileError(f"{text!r} is no number: a float is written 1.0f", node.at)
            with np.errstate(all="ignore"):
                return self.constant(t.FLOAT if suffix else t.DOUBLE, float(digits), node.at)
        if suffix not in ("", "u", "l", "ul", "lu", "ll", "ull", "llu"):
            raise CompileError(f"{text!r} has an unknown ending", node.at)
        octal = digits[0] == "0" and digits.isdigit() and len(digits) > 1
        try:
            number = int(digits, 8 if octal else 0)
        except ValueError:
            raise CompileError(f"{text!r} is no number", node.at) from None
        longs, unsigned = suffix.count("l"), "u" in suffix
        for type in ((t.INT, t.UINT), (t.LONG, t.ULONG), (t.LLONG, t.ULLONG))[longs:]:
            for choice in type:
                allowed = choice.is_signed != unsigned if choice.is_signed or unsigned else based
                if allowed and number <= np.iinfo(choice.dtype).max:
                    return self.constant(choice, number, node.at)
        raise CompileError(f"{text} does not fit into 64 bits", node.at)

    def of_text(self, node: s.Text) -> p.Expr:
        raise CompileError("a string can only stand in printf and assert", node.at)

    def of_braces(self, node: s.Braces) -> p.Expr:
        raise CompileError("braces can only initialise an array or a vector", node.at)

    def of_name(self, node: s.Name) -> p.Expr:
        found = self.symbol(node.name)
        if found is not None and found.constant is not None:
            return p.Constant(found.type, node.at, found.constant)
        place = self.named_place(node)
        if place is not None:
            return self.read(place, node.at, node.name)
        if node.name in NAMED_NUMBERS:
            type, number = NAMED_NUMBERS[node.name]
            return self.constant(type, number, node.at)
        if node.name in ("nullptr", "NULL"):
            return self.constant(t.INT, 0, node.at)
        if node.name in SPECIAL:
            raise CompileError(f"{node.name} has members: say {node.name}.x", node.at)
        raise CompileError(f"{node.name!r} is not declared", node.at)

    def of_index(self, node: s.Index) -> p.Expr:
        return self.read(self.indexed(node), node.at)

    def of_member(self, node: s.Member) -> p.Expr:
        if (
            isinstance(node.base, s.Name)
            and node.base.name in SPECIAL
            and not self.symbol(node.base.name)
        ):
            axis = "xyz".find(node.name)
            if axis < 0 or len(node.name) != 1:
                raise CompileError(f"{node.base.name} has no member {node.name!r}", node.at)
            return p.Special(t.UINT, node.base.at, node.base.name, axis)
        place = self.member_place(node)
        if place is not None:
            return self.read(place, node.at)
        vector = self.value(node.base)
        kind, part = self.member(vector.type, node)
        return p.Component(kind.element, node.at, vector, part)

    def of_unary(self, node: s.Unary) -> p.Expr:
        if node.sign == "&":
            place = self.place(node.operand)
            if not isinstance(place, p.Cell):
                raise CompileError("'&' needs a variable or an element of an array", node.at)
            return p.Convert(t.Pointer(place.type, place.const), node.at, place.pointer)
        if node.sign == "*":
            place = self.place(node)
            assert place is not None
            return self.read(place, node.at)
        if node.sign.endswith(("++", "--")):
            place = self.place(node.operand)
            if place is not None and place.type == t.BOOL:
                raise CompileError("a bool cannot be counted up or down", node.at)
            one = s.Number(node.at, "1")
            assign = s.Assign(node.at, node.sign[-1], node.operand, one)
            return self.of_assign(assign, gives_old=node.sign[0] == "p")
        operand = self.value(node.operand)
        if node.sign == "!":
            return self.folded(p.Unary(t.BOOL, node.at, "!", self.truth(operand)))
        type = t.promoted(self.number(operand, node.sign))
        if node.sign == "~" and type.is_float:
            raise CompileError(f"'~' is not defined for '{type}'", node.at)
        operand = self.convert(operand, type)
        return (
            operand if node.sign == "+" else self.folded(p.Unary(type, node.at, node.sign, operand))
        )

    def of_binary(self, node: s.Binary) -> p.Expr:
        if node.sign == ",":
            first = self.value(node.left)
            second = self.value(node.right)
            return p.Comma(second.type, node.at, first, second)
        left, right = self.value(node.left), self.value(node.right)
        if node.sign in ("&&", "||"):
            return self.folded(
                p.Logic(t.BOOL, node.at, node.sign, self.truth(left), self.truth(right))
            )
        if isinstance(left.type, t.Pointer) or isinstance(right.type, t.Pointer):
            return self.of_pointers(node, left, right)
        return self.arithmetic(node.sign, left, right, node.at)

    def arithmetic(self, sign: str, left: p.Expr, right: p.Expr, at: At) -> p.Expr:
        """An operator between two numbers."""
        within = self.within(sign, left, right, at)
        if sign in ("<<", ">>"):
            right = self.convert(right, t.promoted(self.number(right, sign)))
        else:
            right = self.convert(right, within)
        result = t.BOOL if sign in COMPARISONS else within
        return self.folded(p.Binary(result, at, sign, self.convert(left, within), right))

    def within(self, sign: str, left: p.Expr, right: p.Expr, at: At) -> t.Scalar:
        """The type that two numbers are computed in."""
        a, b = self.number(left, sign), self.number(right, sign)
        if sign in WHOLE_ONLY and (a.is_float or b.is_float):
            floating = a if a.is_float else b
            hint = ": use fmodf" if sign == "%" else ""
            raise CompileError(f"{sign!r} is not defined for '{floating}'{hint}", at)
        if (a is t.HALF) != (b is t.HALF):
            raise CompileError(
                f"'{a}' {sign} '{b}' is ambiguous in CUDA: use __half2float or __float2half", at
            )
        return t.promoted(a) if sign in ("<<", ">>") else t.common(a, b)

    def of_pointers(self, node: s.Binary, left: p.Expr, right: p.Expr) -> p.Expr:
        """`p + i`, `i + p`, `p - i`, `p - q` and comparisons."""
        if not isinstance(left.type, t.Pointer) and node.sign == "+":
            left, right = right, left
        if (
            isinstance(left.type, t.Pointer)
            and isinstance(right.type, t.Scalar)
            and not right.type.is_float
        ):
            if node.sign == "+":
                return self.offset(left, right, node.at)
            if node.sign == "-":
                less = p.Unary(t.LONG, right.at, "-", self.convert(right, t.LONG))
                return self.offset(left, less, node.at)
        if node.sign in COMPARISONS:
            if not isinstance(left.type, t.Pointer):
                left = self.convert(left, right.type)
            else:
                right = self.convert(right, t.Pointer(left.type.target, True))
            return p.Binary(t.BOOL, node.at, node.sign, left, right)
        if (
            node.sign == "-"
            and isinstance(left.type, t.Pointer)
            and isinstance(right.type, t.Pointer)
            and left.type.target == right.type.target
        ):
            apart = p.Binary(t.LONG, node.at, "-", left, right)
            size = self.constant(t.LONG, left.type.target.size, node.at)
            return p.Binary(t.LONG, node.at, "/", apart, size)
        raise CompileError(
            f"{node.sign!r} is not defined for '{left.type}' and '{right.type}'", node.at
        )

    def of_assign(self, node: s.Assign, gives_old: bool = False) -> p.Expr:
        place = self.place(node.place)
        if place is None:
            self.value(node.place)  # an undeclared name is said first
            raise CompileError("this is a value: it has no place to write to", node.place.at)
        if place.const:
            raise CompileError("this is const: it cannot be written to", node.place.at)
        if isinstance(place.type, t.Array):
            raise CompileError("an array is not assigned as a whole", node.at)
        value = self.value(node.value)
        if not node.sign:
            return p.Assign(place.type, node.at, place, self.convert(value, place.type))
        within: t.Type
        if isinstance(place.type, t.Pointer):
            if node.sign not in "+-" or self.number(value, node.sign).is_float:
                raise CompileError(f"'{node.sign}=' is not defined for '{place.type}'", node.at)
            size = self.constant(t.LONG, place.type.target.size, node.at)
            value = self.arithmetic("*", self.convert(value, t.LONG), size, node.at)
            within = place.type
        else:
            old = p.Read(place.type, node.at, -1, "")  # stands for its type only
            within = self.within(node.sign, old, value, node.at)
            shift = node.sign in ("<<", ">>")
            value = self.convert(
                value, t.promoted(self.number(value, node.sign)) if shift else within
            )
        return p.Assign(place.type, node.at, place, value, node.sign, within, gives_old)

    def of_conditional(self, node: s.Conditional) -> p.Expr:
        condition = self.truth(self.value(node.condition))
        yes, no = self.value(node.yes), self.value(node.no)
        type: t.Type
        if isinstance(yes.type, t.Scalar) and isinstance(no.type, t.Scalar):
            type = yes.type if yes.type == no.type else self.within("?:", yes, no, node.at)
        elif isinstance(yes.type, t.Pointer) and isinstance(no.type, t.Pointer):
            type = t.Pointer(yes.type.target, yes.type.const or no.type.const)
        else:
            type = yes.type
        yes, no = self.convert(yes, type), self.convert(no, type)
        if isinstance(condition, p.Constant):
            return yes if condition.value else no
        return p.Select(type, node.at, condition, yes, no)

    def of_cast(self, node: s.Cast) -> p.Expr:
        type, value = self.type_of(node.type), self.value(node.operand)
        if isinstance(type, t.Pointer) and isinstance(value.type, t.Pointer):
            return p.Convert(type, node.at, value)
        wide = (t.LONG, t.ULONG, t.LLONG, t.ULLONG)
        if isinstance(value.type, t.Pointer) and type in wide:
            return p.Convert(type, node.at, p.Convert(t.LONG, node.at, value))
        if isinstance(type, t.Void):
            return p.Convert(t.VOID, node.at, value)
        return self.convert(value, type, node.at)

    def of_sizeof(self, node: s.SizeOf) -> p.Expr:
        if isinstance(node.operand, s.TypeName):
            size = self.type_of(node.operand).size
        else:
            place = self.place(node.operand)
            size = place.type.size if place is not None else self.value(node.operand).type.size
        return self.constant(t.ULONG, size, node.at)

    def of_call(self, node: s.Call) -> p.Expr:
        raise NotImplementedError  # in check_calls

    def folded(self, node: p.Unary | p.Binary | p.Logic) -> p.Expr:
        """The result, where it is known now."""
        sides = [node.operand] if isinstance(node, p.Unary) else [node.left, node.right]
        values = [side.value for side in sides if isinstance(side, p.Constant)]
        if isinstance(node, p.Logic) and values and isinstance(node.left, p.Constant):
            if bool(values[0]) == (node.sign == "||"):  # the right side is never asked
                return p.Constant(t.BOOL, node.at, np.bool_(node.sign == "||"))
            return node.right
        if len(values) < len(sides):
            return node
        with np.errstate(all="ignore"):
            if isinstance(node, p.Unary):
                found = arithmetic.unary(node.sign, values[0])
            else:
                try:
                    found = arithmetic.binary(node.sign, values[0], values[1], sides[0].type)
                except ZeroDivisionError:
                    raise CompileError("division by zero", node.at) from None
        return p.Constant(node.type, node.at, found)
