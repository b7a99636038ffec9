"""Views, copies in other orders, choosing by number, and writing in place."""
import math

import torch
import torch.nn.functional as F

from program import FLOATS, KINDS, WHOLE, Refused, meet
from table import *


@operation(6)
def views(p):
    rng = p.rng
    a = p.pick(otherwise=p.made)
    t = p.native[a]
    which = rng.choice(["permute", "transpose", "narrow", "select", "unsqueeze", "squeeze", "expand", "slice"])
    if t.dim() == 0 and which not in ("unsqueeze", "expand"):
        raise Refused("rank")
    k = [p.kind[a]]
    if which == "permute":
        order = list(range(t.dim()))
        rng.shuffle(order)
        p.emit(f"{{0}}:permute({dims_text(order)[2:-2]})", lambda w, x: x.permute(order), [a], k, "exact", view=True)
    elif which == "transpose":
        if t.dim() < 2:
            raise Refused("rank")
        i, j = rng.randrange(t.dim()), rng.randrange(t.dim())
        p.emit(f"{{0}}:transpose({i + 1}, {j + 1})", lambda w, x: x.transpose(i, j), [a], k, "exact", view=True)
    elif which == "narrow":
        d = rng.randrange(t.dim())
        start = rng.randint(0, max(0, t.shape[d] - 1))
        if t.shape[d] == 0:
            raise Refused("empty")
        n = rng.randint(0 if rng.random() < p.profile.empty else 1, t.shape[d] - start)
        p.emit(f"{{0}}:narrow({d + 1}, {start + 1}, {n})", lambda w, x: x.narrow(d, start, n), [a], k, "exact",
               view=True)
    elif which == "select":
        d = rng.randrange(t.dim())
        if t.shape[d] == 0:
            raise Refused("empty")
        i = rng.randrange(t.shape[d])
        text = f"{{0}}:select({d + 1}, {i - t.shape[d] if rng.random() < 0.3 else i + 1})"
        if d == 0 and rng.random() < 0.4:
            text = f"{{0}}[{i + 1}]"
        p.emit(text, lambda w, x: x.select(d, i), [a], k, "exact", view=True)
    elif which == "unsqueeze":
        if t.dim() > 4:
            raise Refused("rank")
        d = rng.randint(0, t.dim())
        p.emit(f"{{0}}:unsqueeze({d + 1})", lambda w, x: x.unsqueeze(d), [a], k, "exact", view=True)
    elif which == "squeeze":
        d = rng.randrange(t.dim())
        p.emit(f"{{0}}:squeeze({d + 1})", lambda w, x: x.squeeze(d), [a], k, "exact", view=True)
    elif which == "expand":
        if t.dim() > 3:
            raise Refused("rank")
        sizes = [s if s != 1 else rng.choice([1, 2, 3]) for s in t.shape]
        if rng.random() < 0.5 or t.dim() == 0:
            sizes = [rng.randint(1, 4), *sizes]
        p.emit(f"{{0}}:expand({sizes_text(sizes)})", lambda w, x: x.expand(sizes), [a], k, "exact", view=True)
    else:
        slices(p, a, lambda text, fn: p.emit("{0}" + text, fn, [a], k, "exact", view=True))


def slices(p, a, emit):
    t, parts, index = p.native[a], [], []
    if 0 in t.shape:
        raise Refused("empty")
    for size in t.shape:
        which = p.rng.random()
        i = p.rng.randrange(size)
        j = p.rng.randrange(i, size)
        if which < 0.3:
            parts.append("{}")
            index.append(slice(None))
        elif which < 0.55:
            parts.append(str(i + 1))
            index.append(i)
        else:
            parts.append(f"{{{i + 1}, {j + 1}}}")
            index.append(slice(i, j + 1))
    index = tuple(index)
    emit("[{{" + ", ".join(parts).replace("{", "{{").replace("}", "}}") + "}}]", lambda w, x: x[index])


@operation(4)
def reshape(p):
    a = p.pick(otherwise=p.made)
    t = p.native[a]
    n = t.numel()
    sizes = []
    rest = n
    while rest > 1 and len(sizes) < 4 and p.rng.random() < 0.8:
        found = [d for d in range(1, rest + 1) if rest % d == 0][:12]
        sizes.append(p.rng.choice(found))
        rest //= sizes[-1]
    sizes.append(rest)
    if n == 0:
        sizes = [0] + [p.rng.randint(1, 3) for _ in range(p.rng.randint(0, 2))]
    told = list(sizes)
    if n and p.rng.random() < 0.4:
        told[p.rng.randrange(len(told))] = -1
    if p.rng.random() < 0.15 and t.dim() > 1:
        first = p.rng.randrange(t.dim() - 1)
        last = p.rng.randrange(first, t.dim())
        p.emit(f"{{0}}:flatten({first + 1}, {last + 1})", lambda w, x: x.flatten(first, last), [a], [p.kind[a]],
               "exact", view=True)
        return
    verb = "reshape"
    if a in p.inputs and p.rng.random() < 0.5:
        verb = "view"
    p.emit(f"{{0}}:{verb}({sizes_text(told)})", lambda w, x: x.reshape(sizes), [a], [p.kind[a]], "exact", view=True)


@operation(3)
def copies(p):
    a = p.pick(otherwise=p.made)
    op = p.rng.choice(["contiguous", "clone", "detach", "dropout"])
    if op == "dropout":
        if p.kind[a] not in FLOATS:
            raise Refused("type")
        text = p.rng.choice(["{0}:dropout(0)", "{0}:dropout(0.5, false)"])
        p.emit(text, lambda w, x: x.view_as(x), [a], [p.kind[a]], "exact", view=True)
        return
    f = {"contiguous": lambda x: x.contiguous(), "clone": torch.clone, "detach": lambda x: x.detach()}[op]
    p.emit(f"{{0}}:{op}()", lambda w, x: f(x), [a], [p.kind[a]], "exact", view=op != "clone")


@operation(4)
def joined(p):
    rng = p.rng
    a = p.pick(ranked(1), lambda: p.made(shape=p.shape(rng.randint(1, 3))))
    t, k = p.native[a], p.kind[a]
    if rng.random() < 0.4:
        others = [rng.choice(p.names(lambda n, u: u.shape == t.shape and p.kind[n] == k))
                  for _ in range(rng.randint(1, 2))]
        d = rng.randint(0, t.dim())
        args = [a, *others]
        p.emit(f"{{0}}:stack({{{{{', '.join('{%d}' % (i + 1) for i in range(len(others)))}}}}}, {d + 1})",
               lambda w, *xs: torch.stack(xs, d), args, [k], "exact")
        return
    d = rng.randrange(t.dim())

    def fits(n, u):
        return u.dim() == t.dim() and p.kind[n] == k and all(i == d or x == y for i,
                                                             (x, y) in enumerate(zip(u.shape, t.shape)))
    others = [rng.choice(p.names(fits)) for _ in range(rng.randint(1, 3))]
    p.emit(f"{{0}}:cat({{{{{', '.join('{%d}' % (i + 1) for i in range(len(others)))}}}}}, {d + 1})",
           lambda w, *xs: torch.cat(xs, d), [a, *others], [k], "exact")


@operation(2)
def cut(p):
    rng = p.rng
    a = p.pick(ranked(1), lambda: p.made(shape=p.shape(rng.randint(1, 3))))
    t = p.native[a]
    d = rng.randrange(t.dim())
    n = t.shape[d]
    if n == 0:
        raise Refused("empty")
    if rng.random() < 0.4:
        pieces = rng.randint(1, 4)
        count = len(t.chunk(pieces, d))
        names = p.emit(f"{{0}}:chunk({pieces}, {d + 1})", lambda w, x: x.chunk(pieces, d), [a], [p.kind[a]] * count,
                       "exact", view=True)
    else:
        sizes, left = [], n
        while left:
            sizes.append(rng.randint(1, left))
            left -= sizes[-1]
        if len(sizes) > 6:
            raise Refused("many")
        names = p.emit(f"{{0}}:split({sizes_text(sizes)}, {d + 1})", lambda w, x: x.split(sizes, d), [a],
                       [p.kind[a]] * len(sizes), "exact", view=True)
    if rng.random() < 0.5 and len(names) > 1:
        i = rng.randrange(len(names) - 1)
        p.emit(f"{{0}}:cat({{{{{{1}}}}}}, {d + 1})", lambda w, x, y: torch.cat([x, y], d), names[i:i + 2], [p.kind[a]],
               "exact")


@operation(4)
def moved(p):
    rng = p.rng
    a = p.pick(ranked(1), lambda: p.made(shape=p.shape(rng.randint(1, 3))))
    t, k = p.native[a], [p.kind[a]]
    which = rng.choice(["flip", "roll", "tile", "repeat_interleave", "pad", "tril", "triu"])
    d = rng.randrange(t.dim())
    if which == "flip":
        dims = some_dims(p, t)
        p.emit(f"{{0}}:flip({dims_text(dims)})", lambda w, x: x.flip(dims), [a], k, "exact")
    elif which == "roll":
        n = rng.randint(-5, 5)
        p.emit(f"{{0}}:roll({n}, {d + 1})", lambda w, x: x.roll(n, d), [a], k, "exact")
    elif which == "tile":
        times = [rng.randint(1, 3) for _ in range(t.dim() + (rng.random() < 0.3))]
        if len(times) + t.dim() > 8:
            raise Refused("rank")
        p.emit(f"{{0}}:tile({sizes_text(times)})", lambda w, x: x.repeat(times), [a], k, "exact")
    elif which == "repeat_interleave":
        n = rng.randint(1, 3)
        p.emit(f"{{0}}:repeat_interleave({n}, {d + 1})", lambda w, x: x.repeat_interleave(n, d), [a], k, "exact")
    elif which == "pad":
        edges = [rng.choice([0, 0, 1, 2, 3]) for _ in range(2 * rng.randint(1, t.dim()))]
        n = rng.choice([0, 0, 1, 3])
        if p.kind[a] == "bool":
            n = 0
        p.emit(f"{{0}}:pad({sizes_text(edges)}, {n})", lambda w, x: F.pad(x, edges, value=n), [a], k, "exact")
    elif t.dim() >= 2:
        n = rng.randint(-3, 3)
        p.emit(f"{{0}}:{which}({n})", lambda w, x: getattr(torch, which)(x, n), [a], k, "exact")
    else:
        raise Refused("rank")


@operation(1)
def alike(p):
    a = p.pick(otherwise=p.made)
    k = p.rng.choice([p.kind[a], p.rng.choice(p.profile.kinds)])
    op = p.rng.choice(["zeros_like()", "ones_like()", "full_like(1)"])
    n = 0 if op[0] == "z" else 1
    p.emit("{0}:" + op.replace(")", f", {{{{dtype = \"{k}\"}}}})" if op[0] == "f" else f"{{{{dtype = \"{k}\"}}}})"),
           lambda w, x: w.cast(torch.full(x.shape, n), k), [a], [k], "exact", slope=False)


@operation(4)
def by_number(p):
    rng = p.rng
    a = p.pick(ranked(1), lambda: p.made(shape=p.shape(rng.randint(1, 3))))
    t, k = p.native[a], p.kind[a]
    d = rng.randrange(t.dim())
    n = t.shape[d]
    if n == 0:
        raise Refused("empty")
    index_kind = rng.choice(["i64", "i64", "i32", "u8" if n < 256 else "i64"])

    def index(shape, unique=False):
        def make(r):
            g = torch.Generator().manual_seed(r.getrandbits(40))
            if unique:
                return torch.rand(shape, generator=g).argsort(d).to(KINDS[index_kind]) if shape else torch.zeros((),
                    dtype=KINDS[index_kind])
            return torch.randint(0, n, shape, generator=g).to(KINDS[index_kind])
        return p.input(index_kind, shape, make)

    shape = [rng.randint(1, 2 * s) if i == d else rng.randint(1, max(1, s)) if s else 0 for i, s in enumerate(t.shape)]
    op = rng.choice(["gather", "scatter", "scatter_add", "scatter_number", "index_select", "embedding", "one_hot"])
    if op == "gather":
        p.emit(f"{{0}}:gather({d + 1}, {{1}})", lambda w, x, i: torch.gather(x, d, i.long()), [a, index(shape)], [k],
               "exact")
    elif op == "scatter":
        shape[d] = rng.randint(1, n)
        full = [n if i == d else s for i, s in enumerate(shape)]
        i = index(full, True)
        if shape[d] != n:
            i = p.emit(f"{{0}}:narrow({d + 1}, 1, {shape[d]})", lambda w, x: x.narrow(d, 0, shape[d]), [i],
                       [index_kind], "exact", view=True)[0]
        src = p.made(k, shape)
        p.emit(f"{{0}}:scatter({d + 1}, {{1}}, {{2}})", lambda w, x, i, s: x.scatter(d, i.long(), s), [a, i, src], [k],
               "exact")
    elif op == "scatter_add":
        if k == "bool":
            raise Refused("type")
        src = p.made(k, shape)
        p.emit(f"{{0}}:scatter_add({d + 1}, {{1}}, {{2}})", lambda w, x, i, s: x.scatter_add(d, i.long(), s),
               [a, index(shape), src], [k], "tensor", slack=8)
    elif op == "scatter_number":
        v = rng.randint(0, 3) if k != "bool" else 1
        p.emit(f"{{0}}:scatter({d + 1}, {{1}}, {v})", lambda w, x, i: x.scatter(d, i.long(), v), [a, index(shape)],
               [k], "exact")
    elif op == "index_select":
        p.emit(f"{{0}}:index_select({d + 1}, {{1}})", lambda w, x, i: x.index_select(d, i.long()),
               [a, index([rng.randint(0 if rng.random() < p.profile.empty else 1, 9)])], [k], "exact")
    elif op == "embedding":
        if t.dim() != 2 or k not in FLOATS:
            a = p.made(rng.choice(p.profile.floats), p.shape(2))
            t, k, d = p.native[a], p.kind[a], 0
            n = t.shape[0]
            if not n:
                raise Refused("empty")
        d, n = 0, t.shape[0]
        i = index(p.shape(rng.randint(0, 3), 60))
        p.emit("{1}:embedding({0})", lambda w, x, i: F.embedding(i.long(), x), [a, i], [k], "exact")
    else:
        p.emit(f"{{0}}:one_hot({n + 1})", lambda w, i: F.one_hot(i.long(), n + 1),
               [index(p.shape(rng.randint(0, 2), 60))], ["i64"], "exact")


@operation(3)
def ordered(p):
    rng = p.rng
    a = p.pick(ranked(1), lambda: p.made(shape=p.shape(rng.randint(1, 3))))
    t, k = p.native[a], p.kind[a]
    d, down = rng.randrange(t.dim()), rng.random() < 0.5
    if k == "bool":
        raise Refused("type")
    op = rng.choice(["sort", "argsort", "topk"])
    if op == "sort":
        p.emit(f"{{0}}:sort({d + 1}, {{{{descending = {str(down).lower()}}}}})",
               lambda w, x: torch.sort(x, dim=d, descending=down, stable=True), [a], [k, "i64"], "exact")
    elif op == "argsort":
        p.emit(f"{{0}}:argsort({d + 1}, {{{{descending = {str(down).lower()}}}}})",
               lambda w, x: torch.sort(x, dim=d, descending=down, stable=True)[1], [a], ["i64"], "exact", slope=False)
    else:
        n = rng.randint(0 if rng.random() < p.profile.empty else min(1, t.shape[d]), t.shape[d])
        p.emit(f"{{0}}:topk({n}, {d + 1}, {{{{largest = {str(down).lower()}}}}})",
               lambda w, x: [y.narrow(d, 0, n) for y in torch.sort(x, dim=d, descending=down, stable=True)], [a],
               [k, "i64"], "exact")


@operation(6)
def writes(p):
    rng = p.rng
    free = p.names(lambda n, t: not t.requires_grad and t.untyped_storage().data_ptr() not in p.frozen and
                   not any(s == 0 and z > 1 for s, z in zip(t.stride(), t.shape)))
    if not free:
        raise Refused("nothing may be written")
    a = rng.choice(free)
    t, k = p.native[a], p.kind[a]
    op = rng.choice(["add_", "add_", "mul_", "mul_number", "copy_", "fill_", "zero_", "slice", "slice_number"])
    n = rng.choice([0, 1, 2, 3])
    if op in ("add_", "mul_", "copy_"):
        b = partner(p, a)
        if torch.broadcast_shapes(t.shape, p.native[b].shape) != t.shape:
            raise Refused("grows")
        if k not in FLOATS and p.kind[b] in FLOATS or (k == "bool" and op != "copy_"):
            raise Refused("narrows")
        c = lambda w, y: w.cast(y.detach().clone(), k)
        if op == "add_":
            alpha = rng.choice([1, 1, 2, -1] + ([0.5] if k in FLOATS else []))
            if k == "u8" and alpha < 0:
                alpha = 1
            p.emit(f"{{0}}:add_({{1}}, {alpha})", lambda w, x, y: x.add_(c(w, y) * alpha), [a, b], write=True)
        elif op == "mul_":
            p.emit("{0}:mul_({1})", lambda w, x, y: x.mul_(c(w, y)), [a, b], write=True)
        else:
            p.emit("{0}:copy_({1})", lambda w, x, y: x.copy_(c(w, y)), [a, b], write=True)
    elif op == "mul_number":
        n = rng.choice([2, 1, 0, -1] if k in WHOLE and k != "u8" else [2, 1] if k == "u8" else [0.5, 2, -1.5])
        if k == "bool":
            raise Refused("type")
        p.emit(f"{{0}}:mul_({n})", lambda w, x: x.mul_(n), [a], write=True)
    elif op == "fill_":
        p.emit(f"{{0}}:fill_({n})", lambda w, x: x.fill_(n), [a], write=True)
    elif op == "zero_":
        p.emit("{0}:zero_()", lambda w, x: x.zero_(), [a], write=True)
    else:
        if t.dim() == 0:
            raise Refused("rank")
        if op == "slice_number":
            slices(p, a, lambda text, fn: p.emit("{0}" + text + f" = {n}", lambda w, x: fn(w, x).fill_(n), [a],
                                                 write=True))
        else:
            def emit(text, fn):
                b = p.made(k, fn(None, t).shape, leaf=False)
                p.emit("{0}" + text + " = {1}", lambda w, x, y: fn(w, x).copy_(y), [a, b], write=True)
            slices(p, a, emit)
