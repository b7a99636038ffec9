"""What all operations of the random programs are made with."""
import math

import torch

from program import FLOATS

OPERATIONS = []


def operation(weight=1):
    def add(f):
        OPERATIONS.append((f, weight))
        return f
    return add


def num(x):
    return "math.huge" if x == math.inf else "-math.huge" if x == -math.inf else repr(x)


def dims_text(dims):
    return "{{" + ", ".join(str(d + 1 if d >= 0 else d) for d in dims) + "}}"


def sizes_text(sizes):
    return "{{" + ", ".join(map(str, sizes)) + "}}"


def floating(p, name):
    return p.kind[name] if p.kind[name] in FLOATS else "f32"


def partner(p, a, kinds=None, style=None):
    """Something that broadcasts with a: there already, or made for it."""
    t = p.native[a]
    shape = [s if p.rng.random() < 0.75 else 1 for s in t.shape]
    if p.rng.random() < 0.3:
        shape = shape[p.rng.randint(0, len(shape)):]
    kind = p.rng.choice(kinds) if kinds else (p.kind[a] if p.rng.random() < 0.7 else None)
    if style is None and p.rng.random() < 0.5:
        def fits(n, u):
            try:
                torch.broadcast_shapes(u.shape, t.shape)
            except RuntimeError:
                return False
            return not kinds or p.kind[n] in kinds
        found = p.names(fits)
        if found:
            return p.rng.choice(found)
    return p.made(kind, tuple(shape), style)


def numbers(k):
    return "i64" if k == "bool" else k


def flat(y, *operands):
    """With a gradient of zero for each operand: torch has none for floor_divide."""
    for x in operands:
        if x.requires_grad:
            y = y + torch.where(torch.zeros_like(x, dtype=torch.bool), x, torch.zeros_like(x)).sum()
    return y


def some_dims(p, t, one=False):
    dims = list(range(t.dim()))
    p.rng.shuffle(dims)
    dims = dims[:1 if one else p.rng.randint(1, max(1, len(dims)))]
    return [d - t.dim() if p.rng.random() < 0.3 else d for d in dims]


def dim_text(d):
    return str(d + 1 if d >= 0 else d)


def ranked(least):
    return lambda n, t: t.dim() >= least
