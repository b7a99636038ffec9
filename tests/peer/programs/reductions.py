"""Reductions, and what runs along a dimension."""
import math

import torch
import torch.nn.functional as F

from program import FLOATS, KINDS, WHOLE, Refused, meet
from table import *


@operation(6)
def reduced(p):
    rng = p.rng
    a = p.pick(otherwise=p.made)
    t, kind = p.native[a], p.kind[a]
    op = rng.choice(["sum", "sum", "mean", "prod", "amax", "amin", "any", "all", "var", "std", "norm", "logsumexp"])
    dims = [] if t.dim() == 0 or rng.random() < 0.25 else some_dims(p, t)
    keep = rng.random() < 0.4
    every = sorted({d % t.dim() for d in dims}) if dims else list(range(t.dim()))
    count = math.prod(t.shape[d] for d in every)
    told = "nil" if not dims else dims_text(dims)
    if len(dims) == 1 and op not in ("amax", "amin") and rng.random() < 0.5:
        told = dim_text(dims[0])
    k = kind if kind in FLOATS else {"sum": "i64", "prod": "i64", "amax": kind, "amin": kind, "any": "bool",
                                     "all": "bool"}.get(op, "f32")
    if op in ("any", "all"):
        k = "bool"
    kept = str(keep).lower()

    def along(f):                        # torch's one-dimensional functions, over several
        def run(w, x):
            y = x
            for d in reversed(every):
                y = f(y, d)
            if keep:
                y = y.reshape([1 if i in every else s for i, s in enumerate(x.shape)])
            return y
        return run

    if op in ("sum", "mean"):
        f = getattr(torch, op)
        p.emit(f"{{0}}:{op}({told}, {kept})", lambda w, x: f(w.cast(x, k), every, keepdim=keep) if every
               else w.cast(x, k).clone(),
               [a], [k], "tensor")
    elif op == "prod":
        if kind not in FLOATS and count > 9:
            raise Refused("wraps")
        p.emit(f"{{0}}:prod({told}, {kept})", lambda w, x: along(torch.prod)(w, w.cast(x, k)), [a], [k], "near",
               slack=4 + count)
    elif op in ("amax", "amin"):
        if not count:
            raise Refused("empty")
        f = getattr(torch, op)
        p.emit(f"({{0}}:{op[1:]}({told}, {kept}))", lambda w, x: f(x, every, keepdim=keep) if every else x.clone(),
               [a], [k], "exact")
    elif op in ("any", "all"):
        p.emit(f"{{0}}:{op}({told}, {kept})", lambda w, x: along(lambda y, d: getattr(torch, op)(y, d))(w, x != 0),
               [a], [k], "exact", slope=False)
    elif op in ("var", "std"):
        c = rng.choice([0, 1, 1, 2])
        if count <= c:
            raise Refused("few")

        def spread(w, x):
            y = w.cast(x, k)
            v = torch.var(y, every, correction=c, keepdim=keep) if every else torch.zeros_like(y)
            if op == "var":
                return v
            return torch.where(v == 0, 0 * v, torch.sqrt(torch.where(v == 0, torch.ones_like(v), v)))
        p.emit(f"{{0}}:{op}({told}, {{{{correction = {c}, keepdim = {kept}}}}})", spread, [a], [k], "tensor", slack=4)
    elif op == "norm":
        o = rng.choice([1, 2, 2, 3, math.inf])
        if o == math.inf and not count:
            raise Refused("empty")

        def norm(w, x):
            x = w.cast(x, k)
            if not every:
                return x.abs()
            if o == math.inf:
                return torch.amax(x.abs(), every, keepdim=keep)
            total = torch.sum(x.abs() ** o if o != 1 else x.abs(), every, keepdim=keep)
            none = total == 0
            return torch.where(none, 0 * total, torch.where(none, torch.ones_like(total), total) ** (1 / o))
        p.emit(f"{{0}}:norm({num(o)}, {told}, {kept})", norm, [a], [k], "tensor", slack=4)
    else:
        p.emit(f"{{0}}:logsumexp({told}, {kept})", lambda w, x: torch.logsumexp(w.cast(x, k), every, keepdim=keep)
               if every else
               w.cast(x, k).clone(), [a], [k], "tensor", slack=2)


@operation(2)
def extremes(p):
    rng = p.rng
    a = p.pick(ranked(1), lambda: p.made(shape=p.shape(rng.randint(1, 3))))
    t, k = p.native[a], p.kind[a]
    d, keep = rng.randrange(t.dim()), rng.random() < 0.4
    if t.shape[d] == 0:
        raise Refused("empty")
    op = rng.choice(["max", "min", "argmax", "argmin"])

    def first(x):                        # where it is: the first of ties
        y = torch.amax(x, d, keepdim=True) if "max" in op else torch.amin(x, d, keepdim=True)
        same = torch.isnan(x) if x.is_floating_point() else torch.zeros_like(x, dtype=torch.bool)
        same = (x == y) | same
        return same.to(torch.uint8).argmax(d, keepdim=keep)
    if op[:3] == "arg":
        p.emit(f"{{0}}:{op}({d + 1}, {str(keep).lower()})", lambda w, x: first(x), [a], ["i64"], "exact", slope=False)
    else:
        f = torch.amax if op == "max" else torch.amin
        p.emit(f"{{0}}:{op}({d + 1}, {str(keep).lower()})", lambda w, x: [f(x, d, keepdim=keep), first(x.detach())],
               [a],
               [k, "i64"], "exact")


@operation(3)
def along(p):
    rng = p.rng
    a = p.pick(ranked(1), lambda: p.made(shape=p.shape(rng.randint(1, 3))))
    t, kind = p.native[a], p.kind[a]
    d = rng.randrange(t.dim())
    op = rng.choice(["cumsum", "softmax", "log_softmax"])
    told = dim_text(d - t.dim() if rng.random() < 0.3 else d)
    if op == "cumsum":
        k = kind if kind in FLOATS else "i64"
        p.emit(f"{{0}}:cumsum({told})", lambda w, x: torch.cumsum(w.cast(x, k), d), [a], [k], "tensor", slack=2)
        return
    if kind not in FLOATS:
        raise Refused("type")
    p.emit(f"{{0}}:{op}({told})", lambda w, x: getattr(torch, op)(x, d), [a], [kind], "tensor", slack=2)
