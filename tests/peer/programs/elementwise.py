"""Element by element: arithmetic, functions, comparisons, bits, casts."""
import math

import torch
import torch.nn.functional as F

from program import FLOATS, KINDS, WHOLE, Refused, meet
from table import *


BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum, "minimum": torch.minimum}
COMPARE = {"lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge, "eq": torch.eq, "ne": torch.ne}
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "^", "remainder": "%"}


@operation(8)
def arithmetic(p):
    op = p.rng.choice(list(BINARY))
    a = p.pick(otherwise=p.made)
    b = partner(p, a)
    if p.rng.random() < 0.5:
        a, b = b, a
    k = numbers(meet(p.kind[a], p.kind[b]))
    f = BINARY[op]
    text = f"{{0}} {SIGNS[op]} {{1}}" if op in SIGNS and p.rng.random() < 0.5 else f"{{0}}:{op}({{1}})"
    p.emit(text, lambda w, x, y: f(w.cast(x, k), w.cast(y, k)), [a, b], [k],
           how="exact" if op[:2] in ("ma", "mi") else "near")


@operation(4)
def quotient(p):
    op = p.rng.choice(["div", "div", "atan2", "remainder", "floor_divide", "pow"])
    a = p.pick(otherwise=p.made)
    if op == "pow":
        a = p.made(p.rng.choice(p.profile.floats), None, "positive")
    b = partner(p, a, style="nonzero") if op != "pow" else partner(p, a, p.profile.floats)
    k = meet(p.kind[a], p.kind[b])
    k = numbers(k) if op in ("remainder", "floor_divide") else k if k in FLOATS else "f32"
    f = {"div": torch.div, "atan2": torch.atan2, "remainder": torch.remainder, "floor_divide": lambda x,
         y: flat(torch.floor_divide(x.detach(), y.detach()), x, y),
         "pow": torch.pow}[op]
    if op in ("remainder", "floor_divide") and p.kind[b] == "bool":
        raise Refused("zeros")
    how = "native" if op in ("remainder", "floor_divide") else "near"
    text = f"{{0}} {SIGNS[op]} {{1}}" if op in SIGNS and p.rng.random() < 0.5 else f"{{0}}:{op}({{1}})"
    p.emit(text, lambda w, x, y: f(w.cast(x, k), w.cast(y, k)), [a, b], [k], how=how, slack=4 if op == "pow" else 1)


@operation(4)
def with_number(p):
    op = p.rng.choice(["add", "sub", "mul", "div", "pow", "maximum", "minimum", "remainder", "floor_divide", "atan2"])
    a = p.pick(otherwise=p.made)
    n, left = p.number(), p.rng.random() < 0.4
    if op in ("div", "remainder", "floor_divide") and not left:
        n = n or 2
    if op == "pow":
        n = p.rng.choice([0, 1, 2, 3, 0.5, -1, -2, 2.5])
        if left or n not in (0, 1, 2, 3):
            a, n = p.made(p.rng.choice(p.profile.floats), None, "positive"), n if not left else abs(n) or 2
    elif left and op in ("div", "remainder", "floor_divide"):
        a = p.made(None, None, "nonzero")
        if p.kind[a] == "bool":
            raise Refused("zeros")
    if left and op not in SIGNS:
        left = False
    kind = p.kind[a]
    k = kind if kind in FLOATS else "f32" if op in ("div", "pow", "atan2") or n != int(n) else numbers(kind)
    if k in ("u8", "i8") and not (0 <= n <= 255 if k == "u8" else -128 <= n <= 127):
        k = "i64"
    fs = {**BINARY, "div": torch.div, "pow": torch.pow, "remainder": torch.remainder,
          "floor_divide": lambda x, y: flat(torch.floor_divide(x.detach(), y.detach()), x, y), "atan2": torch.atan2}
    f = fs[op]

    def run(w, x):
        x = w.cast(x, k)
        if w.native and k in ("f16", "bf16"):      # the number is not rounded to the operand's type
            x = x.float()
        if op in ("maximum", "minimum", "atan2"):
            return f(x, torch.full((), n, dtype=x.dtype))
        if op == "floor_divide":
            return flat(n // x.detach() if left else torch.floor_divide(x.detach(), n), x)
        if left:
            return {"add": lambda: n + x, "sub": lambda: n - x, "mul": lambda: n * x, "div": lambda: n / x,
                    "pow": lambda: n ** x, "remainder": lambda: torch.remainder(torch.full_like(x, n), x)}[op]()
        return f(x, n)
    sign = SIGNS.get(op)
    text = f"{num(n)} {sign} {{0}}" if left else f"{{0}} {sign} {num(n)}" if sign and p.rng.random() < 0.5 else \
        f"{{0}}:{op}({num(n)})"
    p.emit(text, run, [a], [k], how="native" if op in ("remainder", "floor_divide") else "tensor")


@operation(3)
def compare(p):
    op = p.rng.choice(list(COMPARE))
    f, a = COMPARE[op], p.pick(otherwise=p.made)
    if p.rng.random() < 0.3:
        n = p.number()
        if p.kind[a] in FLOATS:
            n = p.rng.randint(-4, 4) / 2
        elif p.kind[a] in ("u8", "bool") and n < 0:  # torch wraps the number to the operand's type
            raise Refused("range")
        p.emit(f"{{0}}:{op}({num(n)})", lambda w, x: f(x, n), [a], ["bool"], how="exact", slope=False)
        return
    b = partner(p, a)
    k = meet(p.kind[a], p.kind[b])
    p.emit(f"{{0}}:{op}({{1}})", lambda w, x, y: f(w.cast(x, k), w.cast(y, k)), [a, b], ["bool"], how="native",
           slope=False)


def hardsigmoid(x):
    """torch's slope is 1/6 in f32."""
    ends = torch.where(x.isnan(), x, (x >= 3).to(x.dtype))
    return torch.where((x > -3) & (x < 3), (x + 3) / 6, ends)


UNARY = {"exp": torch.exp, "expm1": torch.expm1, "exp2": torch.exp2, "sin": torch.sin, "cos": torch.cos,
         "atan": torch.atan, "tanh": torch.tanh, "erf": torch.erf, "sigmoid": torch.sigmoid, "relu": torch.relu,
         "silu": F.silu,
         "hardswish": lambda x: torch.where(x <= -3, 0 * x.nan_to_num(0, 0, 0), F.hardswish(x)),
         "hardsigmoid": hardsigmoid, "square": torch.square,
         "sinh": torch.sinh, "cosh": torch.cosh, "tan": torch.tan}
POSITIVE = {"log": torch.log, "log2": torch.log2, "log10": torch.log10, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
            "reciprocal": torch.reciprocal, "log1p": torch.log1p}
UNIT = {"asin": torch.asin, "acos": torch.acos}
ROUND = {"floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "trunc": torch.trunc}


@operation(6)
def unary(p):
    table, style = p.rng.choice([(UNARY, None), (UNARY, None), (POSITIVE, "positive"), (UNIT, "unit")])
    op = p.rng.choice(list(table))
    f = table[op]
    a = p.pick(otherwise=p.made) if style is None else p.made(p.rng.choice(p.profile.floats), None, style)
    if p.profile.special:
        a = p.pick(otherwise=p.made)
    if p.kind[a] in ("i32", "i64") and p.native[a].numel() and p.native[a].abs().max() > 2**20:
        raise Refused("rounded to f32 first")
    k = floating(p, a) if op != "square" else numbers(p.kind[a])
    p.emit(f"{{0}}:{op}()", lambda w, x: f(w.cast(x, k)), [a], [k], slack=2)


@operation(3)
def signs(p):
    op = p.rng.choice(["neg", "abs", "sign", "floor", "ceil", "round", "trunc"])
    a = p.pick(otherwise=p.made)
    k = p.kind[a]
    f = {"neg": torch.neg, "abs": torch.abs, "sign": lambda x: torch.where(x.isnan(), x, torch.sign(x)), **ROUND}[op]
    if op in ("neg", "abs", "sign"):
        k = "i64" if k in ("bool", "u8") else k
    elif k not in FLOATS:
        f = torch.clone
    p.emit("-{0}" if op == "neg" and p.rng.random() < 0.5 else f"{{0}}:{op}()", lambda w, x: f(w.cast(x, k)), [a], [k],
           how="exact", slope=op not in ROUND or True)


def clamped(x, low, high):
    """The slope at a bound is 1, not torch's 0."""
    y = torch.clamp(x.detach(), low, high)
    inside = ((x >= (-math.inf if low is None else low)) & (x <= (math.inf if high is None else high))).detach()
    return torch.where(inside, x, y)


@operation(3)
def shaped(p):
    a = p.pick(otherwise=p.made)
    k = floating(p, a)
    if p.kind[a] not in FLOATS:
        raise Refused("type")
    which = p.rng.choice(["gelu", "gelu_none", "leaky_relu", "elu", "softplus", "clamp"])
    if which == "gelu":
        p.emit("{0}:gelu()", lambda w, x: F.gelu(w.cast(x, k), approximate="tanh"), [a], [k], "tensor", slack=2)
    elif which == "gelu_none":
        p.emit('{0}:gelu("none")', lambda w, x: F.gelu(w.cast(x, k)), [a], [k], "tensor", slack=2)
    elif which == "leaky_relu":
        s = p.rng.choice([0.01, 0.25, 1.5])
        p.emit(f"{{0}}:leaky_relu({s})", lambda w, x: F.leaky_relu(w.cast(x, k), s), [a], [k])
    elif which == "elu":
        s = p.rng.choice([1, 0.5, 2])
        p.emit(f"{{0}}:elu({s})", lambda w, x: F.elu(w.cast(x, k), s), [a], [k])
    elif which == "softplus":
        s = p.rng.choice([1, 0.5, 2])
        p.emit(f"{{0}}:softplus({s})", lambda w, x: F.softplus(w.cast(x, k), s, threshold=1e9 if not w.native else 20),
               [a], [k],
               slack=2)
    else:
        low = p.rng.choice([None, -1, -0.5, 0, 1])
        high = p.rng.choice([1, 1.5, 2] if low is None else [None, 1, 1.5, 2])
        kind = p.kind[a]
        ints = [n for n in (low, high) if n is not None]
        if kind not in FLOATS:
            if any(n != int(n) for n in ints) or kind == "bool" or (kind == "u8" and any(n < 0 for n in ints)):
                raise Refused("types")
            k = kind
        p.emit(f"{{0}}:clamp({'nil' if low is None else low}, {'nil' if high is None else high})",
               lambda w, x: clamped(w.cast(x, k), low, high), [a], [k], how="exact")


@operation(2)
def finite(p):
    op = p.rng.choice(["isnan", "isinf", "isfinite"])
    a = p.pick(otherwise=p.made)
    p.emit(f"{{0}}:{op}()", lambda w, x: getattr(torch, op)(x), [a], ["bool"], how="exact", slope=False)


@operation(2)
def truth(p):
    op = p.rng.choice(["logical_and", "logical_or", "logical_xor", "logical_not"])
    a = p.pick(otherwise=p.made)
    if op == "logical_not":
        p.emit("{0}:logical_not()", lambda w, x: torch.logical_not(x), [a], ["bool"], how="exact", slope=False)
    else:
        f = getattr(torch, op)
        p.emit(f"{{0}}:{op}({{1}})", lambda w, x, y: f(x, y), [a, partner(p, a)], ["bool"], how="exact", slope=False)


@operation(2)
def bits(p):
    op = p.rng.choice(["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"])
    kinds = ["bool", *WHOLE]
    a = p.pick(lambda n, t: p.kind[n] in kinds, lambda: p.made(p.rng.choice(kinds), None, "wide"))
    f = getattr(torch, op)
    if op == "bitwise_not":
        p.emit("{0}:bitwise_not()", lambda w, x: f(x), [a], [p.kind[a]], how="exact")
        return
    b = partner(p, a, kinds, "wide" if p.rng.random() < 0.5 else None)
    k = meet(p.kind[a], p.kind[b])
    p.emit(f"{{0}}:{op}({{1}})", lambda w, x, y: f(w.cast(x, k), w.cast(y, k)), [a, b], [k], how="exact")


@operation(3)
def where(p):
    a = p.pick(otherwise=p.made)
    b, c = partner(p, a), partner(p, a, ["bool"])
    k = meet(p.kind[a], p.kind[b])
    if p.rng.random() < 0.3:
        n = p.rng.randint(-4, 4)
        k = p.kind[a]
        if k == "bool" or (k == "u8" and n < 0):
            raise Refused("range")
        left = p.rng.random() < 0.5
        p.emit(f"{{0}}:where({n}, {{1}})" if left else f"{{0}}:where({{1}}, {n})",
               lambda w, m, x: torch.where(m, torch.full((), n, dtype=x.dtype), x) if left else
               torch.where(m, x, torch.full((), n, dtype=x.dtype)), [c, a], [k], how="exact")
        return
    p.emit("{0}:where({1}, {2})", lambda w, m, x, y: torch.where(m, w.cast(x, k), w.cast(y, k)), [c, a, b], [k],
           how="exact")


@operation(2)
def masked_fill(p):
    a = p.pick(otherwise=p.made)
    m = p.made("bool", [s if p.rng.random() < 0.7 else 1 for s in p.native[a].shape])
    n = p.rng.choice([0, 1, 2, 3])
    k = p.kind[a]
    p.emit(f"{{0}}:masked_fill({{1}}, {n})", lambda w, x, y: x.masked_fill(y, n), [a, m], [k], how="exact")


@operation(4)
def cast(p):
    a = p.pick(otherwise=p.made)
    k = p.rng.choice(p.profile.kinds)
    if p.kind[a] in FLOATS and k not in FLOATS:
        size = p.native[a].detach().double().abs()
        if size.numel() and not size.max() < 100 or k == "u8" and size.numel() and p.native[a].min() < 0:
            raise Refused("what does not fit is undefined")
        # The values of another call's data are not known: only from a bounded function.
        b = p.emit("{0}:tanh()", lambda w, x: torch.tanh(x), [a], [p.kind[a]])[0]
        b = p.emit("{0}:abs()", lambda w, x: torch.abs(x), [b], [p.kind[a]], how="exact")[0]
        a = p.emit("{0} * 5", lambda w, x: x * 5, [b], [p.kind[a]])[0]
    other = p.kind[a] != k
    p.emit(f'{{0}}:to("{k}")', lambda w, x: w.cast(x, k).clone() if other else x.view_as(x), [a], [k],
           how="exact" if k in ("f64", *WHOLE, "bool") else "near",
           view=k == p.kind[a], slope=k in FLOATS)
