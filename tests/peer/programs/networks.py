"""Products, attention, convolution, normalisation, losses, Fourier transforms."""
import math

import torch
import torch.nn.functional as F

from program import FLOATS, KINDS, WHOLE, Refused, meet
from table import *


@operation(5)
def matmul(p):
    rng = p.rng
    a = p.pick_float(lambda t: t.dim() >= 1, shape=p.shape(rng.randint(1, 4)))
    t, k = p.native[a], p.kind[a]
    inner, n = t.shape[-1], rng.choice([1, 2, 3, 5, 8, 17, 33])
    which = rng.choice(["vector", "matrix", "matrix", "batch", "linear", "linear", "turned"])
    other = k
    if which == "vector":
        b = p.made(other, [inner])
    elif which == "batch" and t.dim() > 1:
        b = p.made(other, [s if rng.random() < 0.6 else 1 for s in t.shape[:-2]] + [inner, n])
    elif which == "linear":
        if k != p.kind[a]:
            raise Refused("types")
        weight = p.made(k, [n, inner])
        if rng.random() < 0.4:
            p.emit("{0}:linear({1})", lambda w, x, y: x @ y.t(), [a, weight], [k], "tensor", slack=2)
        else:
            p.emit("{0}:linear({1}, {2})", lambda w, x, y, z: x @ y.t() + z, [a, weight, p.made(k, [n])], [k],
                   "tensor", slack=2)
        return
    elif which == "turned":
        b = p.made(other, [n, inner])
        p.emit("{0}:matmul({1}:transpose())", lambda w, x, y: w.cast(x, k) @ w.cast(y.t(), k), [a, b], [k], "tensor",
               slack=2)
        return
    else:
        b = p.made(other, [inner, n])
    if rng.random() < 0.25:
        a, b = b, a
        if p.native[a].dim() == 0 or p.native[b].shape[max(-2, -p.native[b].dim())] != p.native[a].shape[-1]:
            raise Refused("sizes")
    p.emit("{0}:matmul({1})", lambda w, x, y: w.cast(x, k) @ w.cast(y, k), [a, b], [k], "tensor", slack=2)


@operation(2)
def einsum(p):
    rng = p.rng
    size = {c: rng.randint(1, 6) for c in "abcde"}
    count = rng.randint(1, 3)
    words = ["".join(rng.sample("abcde", rng.randint(1, 3))) for _ in range(count)]
    letters = sorted(set("".join(words)))
    out = "".join(rng.sample(letters, rng.randint(0, min(4, len(letters)))))
    k = rng.choice(p.profile.floats)
    args = [p.made(k, [size[c] for c in w]) for w in words]
    if count == 1 and len(out) == len(words[0]):
        raise Refused("a view")
    equation = ",".join(words) + "->" + out
    more = "".join(f", {{{i}}}" for i in range(1, count))
    p.emit(f'{{0}}:einsum("{equation}"{more})', lambda w, *xs: torch.einsum(equation, *xs), args, [k], "tensor",
           slack=8)


@operation(3)
def attention(p):
    rng = p.rng
    if p.profile.special:
        raise Refused("sums of infinities")
    k = rng.choice(p.profile.floats)
    b, g, group, t, s, d, e = rng.randint(1, 3), rng.randint(1, 2), rng.randint(1, 2), rng.randint(1,
        9), rng.randint(1, 9), \
        rng.choice([1, 2, 3, 4, 8, 16, 20]), rng.choice([2, 3, 4, 8])
    if rng.random() < 0.15:
        t, s = rng.choice([40, 65, 130]), rng.choice([33, 64, 129])
    e = d if rng.random() < 0.7 else e
    h, causal = g * group, rng.random() < 0.4
    if causal and t > s:
        t, s = s, t
    turned = rng.random() < 0.5          # the layout of one fused projection: [b, t, h, d]
    shapes = [(b, h, t, d), (b, g, s, d), (b, g, s, e)]
    args = []
    for shape in shapes:
        if turned:
            n = p.made(k, (shape[0], shape[2], shape[1], shape[3]), "normal")
            n = p.emit("{0}:transpose(2, 3)", lambda w, x: x.transpose(1, 2), [n], [k], "exact", view=True)[0]
        else:
            n = p.made(k, shape, "normal")
        args.append(n)
    options, mask, lengths = [], None, None
    scale = rng.choice([None, None, 0.5, 2.0])
    if causal:
        options.append("causal = true")
    if scale:
        options.append(f"scale = {scale}")
    if rng.random() < 0.5:
        mask = rng.choice(["bool", k])
        shape = [x if rng.random() < 0.6 else 1 for x in (b, h, t, s)][rng.choice([0, 0, 2]):]
        args.append(p.made(mask, shape, leaf=False))
        options.append(f"mask = {{{len(args) - 1}}}")
    if rng.random() < 0.3:
        lengths = len(args)
        args.append(p.input("i64", (b,), lambda r: torch.randint(0, s + 1, (b,),
                                                                 generator=torch.Generator().manual_seed(
            r.getrandbits(40)))))
        options.append(f"lengths = {{{lengths}}}")

    def run(w, q, key, v, *more):
        more = list(more)
        key, v = key.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = q @ key.transpose(-1, -2) * (scale or 1 / math.sqrt(d))
        seen = torch.ones(b, h, t, s, dtype=torch.bool)
        if causal:
            seen = seen & torch.ones(t, s, dtype=torch.bool).tril(s - t)
        if mask == "bool":
            seen = seen & more.pop(0)
        elif mask:
            scores = scores + more.pop(0).detach()
        if lengths is not None:
            seen = seen & (torch.arange(s) < more.pop(0).view(b, 1, 1, 1))
        none = ~seen.any(-1, keepdim=True)
        scores = scores.masked_fill(~seen & ~none, -math.inf)
        return (scores.softmax(-1) @ v).masked_fill(none, 0)
    p.emit(f"{{0}}:scaled_dot_product_attention({{1}}, {{2}}, {{{{{', '.join(options)}}}}})", run, args, [k], "tensor",
           slack=8)


def normalised(x, eps):
    """batch_norm's sum as it stands: torch's own gradient of turned f64 operands is off in the third digit."""
    dims = [0, *range(2, x.dim())]
    away = x - x.mean(dims, keepdim=True)
    return away / torch.sqrt((away * away).mean(dims, keepdim=True) + eps)


@operation(4)
def norms(p):
    rng = p.rng
    if p.profile.special:
        raise Refused("sums of infinities")
    a = p.pick_float(lambda t: t.dim() >= 1 and t.numel() > 0, shape=p.shape(rng.randint(2, 4)))
    t, k = p.native[a], p.kind[a]
    op = rng.choice(["layer_norm", "rms_norm", "batch_norm", "group_norm"])
    eps = rng.choice([1e-5, 1e-3])
    c = t.shape[-1] if op[0] in "lr" else t.shape[1] if t.dim() > 1 else 0
    if op in ("batch_norm", "group_norm") and (t.dim() < 2 or t.numel() // max(c, 1) < 2):
        raise Refused("shape")
    weight = p.made(k, [c], "positive") if rng.random() < 0.7 else None
    bias = p.made(k, [c]) if weight and rng.random() < 0.7 and op != "rms_norm" else None
    args = [a, *(x for x in (weight, bias) if x)]
    told = ("{1}" if weight else "nil") + (", {2}" if bias else ", nil")

    def affine(w, y, more, shape):
        if weight:
            y = y * more[0].reshape(shape)
        return y + more[1].reshape(shape) if bias else y
    channels = [1, c] + [1] * (t.dim() - 2)
    if op == "layer_norm":
        p.emit(f"{{0}}:layer_norm({told}, {eps})", lambda w, x,
               *m: F.layer_norm(x, (c,), *m, **({} if not m else {}), eps=eps)
               if len(m) != 1 else F.layer_norm(x, (c,), m[0], None, eps), args, [k], "tensor", slack=8)
    elif op == "rms_norm":
        p.emit(f"{{0}}:rms_norm({'{1}' if weight else 'nil'}, {eps})", lambda w, x,
               *m: F.rms_norm(x, (c,), m[0] if m else None, eps),
               args, [k], "tensor", slack=8)
    elif op == "group_norm":
        groups = rng.choice([g for g in range(1, c + 1) if c % g == 0]) if c else 1
        p.emit(f"{{0}}:group_norm({groups}, {told}, {eps})",
               lambda w, x, *m: affine(w, F.group_norm(x, groups, eps=eps), m, channels), args, [k], "tensor", slack=8)
    else:
        training = rng.random() < 0.7
        stats = "f32" if k in ("f16", "bf16") else k
        if training:
            p.emit(f"{{0}}:batch_norm({told}, {{{{eps = {eps}}}}})",
                   lambda w, x, *m: affine(w, normalised(x, eps), m, channels), args,
                   [k],
                   "tensor", slack=8)
        else:
            more = [p.made(stats, [c], "grid", False), p.made(stats, [c], "positive", False)]
            n = len(args)
            p.emit(f"{{0}}:batch_norm({told}, {{{{eps = {eps}, training = false, "
                   f"running_mean = {{{n}}}, running_var = {{{n + 1}}}}}}})",
                   lambda w, x, *m: affine(w, F.batch_norm(x, w.cast(m[-2], k), w.cast(m[-1], k), training=False,
                                                           eps=eps), m, channels),
                   args + more, [k], "tensor", slack=8)


def pair(rng, choices):
    a = rng.choice(choices)
    return (a, a) if rng.random() < 0.5 else (a, rng.choice(choices))


def pair_text(v):
    return str(v[0]) if v[0] == v[1] else f"{{{{{v[0]}, {v[1]}}}}}"


@operation(4)
def convolution(p):
    rng = p.rng
    if p.profile.special:
        raise Refused("sums of infinities")
    k = rng.choice(p.profile.floats)
    one = rng.random() < 0.3
    groups = rng.choice([1, 1, 1, 2, 3])
    cin, cout = groups * rng.choice([1, 1, 2, 3, 8]), groups * rng.choice([1, 2, 3, 8])
    stride, padding, dilation = pair(rng, [1, 1, 2, 3]), pair(rng, [0, 0, 1, 2, 3]), pair(rng, [1, 1, 1, 2, 3])
    kernel = pair(rng, [1, 2, 3, 3, 5])
    n, size = rng.randint(1, 3), (rng.randint(1, 12), rng.randint(1, 12))
    if one:
        x, weight = p.made(k, (n, cin, size[0])), p.made(k, (cout, cin // groups, kernel[0]))
        how = f"stride = {stride[0]}, padding = {padding[0]}, dilation = {dilation[0]}, groups = {groups}"
        f = lambda x, y, z: F.conv1d(x, y, z, stride[0], padding[0], dilation[0], groups)
    else:
        x, weight = p.made(k, (n, cin, *size)), p.made(k, (cout, cin // groups, *kernel))
        how = (f"stride = {pair_text(stride)}, padding = {pair_text(padding)}, dilation = {pair_text(dilation)}, "
               f"groups = {groups}")
        f = lambda x, y, z: F.conv2d(x, y, z, stride, padding, dilation, groups)
    if not one and rng.random() < 0.2:
        x = p.emit("{0}:transpose(3, 4)", lambda w, x: x.transpose(2, 3), [x], [k], "exact", view=True)[0]
    args = [x, weight] + ([p.made(k, (cout,))] if rng.random() < 0.6 else [])
    p.emit(f"{{0}}:conv{1 if one else 2}d({{1}}, {'{2}' if len(args) > 2 else 'nil'}, {{{{{how}}}}})",
           lambda w, x, y, *z: f(x, y, z[0] if z else None), args, [k], "tensor", slack=4)


@operation(3)
def pooling(p):
    rng = p.rng
    k = rng.choice(p.profile.floats)
    a = p.pick(lambda n, t: t.dim() == 4 and p.kind[n] in FLOATS and t.numel(), lambda: p.made(k, p.shape(4)))
    t, k = p.native[a], p.kind[a]
    window, padding = pair(rng, [1, 2, 3, 4]), None
    stride, dilation = pair(rng, [1, 2, 3]), pair(rng, [1, 1, 2])
    padding = tuple(rng.randint(0, x // 2) for x in window)
    op = rng.choice(["max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"])
    if 0 in t.shape:
        raise Refused("empty")
    if op == "max_pool2d":
        p.emit(f"{{0}}:max_pool2d({pair_text(window)}, {{{{stride = {pair_text(stride)}, "
               f"padding = {pair_text(padding)}, dilation = {pair_text(dilation)}}}}})",
               lambda w, x: F.max_pool2d(x, window, stride, padding, dilation), [a], [k], "exact")
    elif op == "avg_pool2d":
        pad = rng.random() < 0.5
        p.emit(f"{{0}}:avg_pool2d({pair_text(window)}, {{{{stride = {pair_text(stride)}, "
               f"padding = {pair_text(padding)}, count_include_pad = {str(pad).lower()}}}}})",
               lambda w, x: F.avg_pool2d(x, window, stride, padding, count_include_pad=pad), [a], [k], "tensor")
    else:
        size = (rng.randint(1, 7), rng.randint(1, 7))
        p.emit(f"{{0}}:adaptive_avg_pool2d({size[0]}, {size[1]})", lambda w, x: F.adaptive_avg_pool2d(x, size), [a],
               [k], "tensor")


@operation(2)
def losses(p):
    rng = p.rng
    if p.profile.special:
        raise Refused("sums of infinities")
    op = rng.choice(["cross_entropy", "cross_entropy", "nll_loss", "mse_loss", "bce"])
    a = p.pick_float(lambda t: t.dim() >= 1 and t.numel() > 0, shape=p.shape(rng.randint(1, 3)))
    t, k = p.native[a], p.kind[a]
    wide = "f32" if k in ("f16", "bf16") else k
    if op in ("mse_loss", "bce"):
        how = rng.choice(["mean", "sum", "none"])
        b = p.made(k, t.shape) if op == "mse_loss" else p.emit("{0}:sigmoid()", lambda w, x: torch.sigmoid(x),
                                                               [p.made(k, t.shape)], [k])[0]
        if op == "mse_loss":
            p.emit(f'{{0}}:mse_loss({{1}}, "{how}")', lambda w, x,
                   y: F.mse_loss(w.cast(x, wide), w.cast(y, wide), reduction=how), [a, b], None, "tensor", slack=8)
        else:
            p.emit(f'{{0}}:binary_cross_entropy_with_logits({{1}}, "{how}")',
                   lambda w, x, y: F.binary_cross_entropy_with_logits(w.cast(x, wide), w.cast(y, wide), reduction=how),
                   [a, b], None, "tensor", slack=8)
        return
    c, rows = t.shape[-1], t.shape[:-1]
    ignore = rng.choice([-100, -100, 0, c - 1])
    smooth = rng.choice([0, 0, 0.1]) if op == "cross_entropy" else 0
    kind = rng.choice(["i64", "i32"])

    def make(r):
        g = torch.Generator().manual_seed(r.getrandbits(40))
        y = torch.randint(0, c, rows, generator=g)
        return torch.where(torch.rand(rows, generator=g) < 0.3, torch.tensor(ignore), y).to(KINDS[kind])
    labels = p.input(kind, rows, make)
    options = f"ignore_index = {ignore}" + (f", label_smoothing = {smooth}" if smooth else "")

    def run(w, x, y):
        x, y = w.cast(x, wide).reshape(-1, c), y.long().reshape(-1)
        if op == "nll_loss":
            return F.nll_loss(x, y, ignore_index=ignore)
        return F.cross_entropy(x, y, ignore_index=ignore, label_smoothing=smooth)
    p.emit(f"{{0}}:{op}({{1}}, {{{{{options}}}}})", run, [a, labels], [wide] if op == "cross_entropy" else None,
           "tensor", slack=8)


@operation(2)
def fourier(p):
    rng = p.rng
    if p.profile.special:
        raise Refused("sums of infinities")
    k = rng.choice([f for f in p.profile.floats if f in ("f32", "f64")] or ["f32"])
    op = rng.choice(["fft", "ifft", "fft2", "ifft2", "rfft", "irfft", "rfft2", "irfft2"])
    two = op.endswith("2")
    shape = list(p.shape(rng.randint(2 if two else 1, 3)))
    if 0 in shape:
        raise Refused("empty")
    c = lambda x: torch.view_as_complex(x.contiguous())
    r = lambda z: torch.view_as_real(z.resolve_conj())
    f = getattr(torch.fft, op)
    if op.startswith("rfft"):
        a = p.made(k, shape)
        p.emit(f"{{0}}:{op}()", lambda w, x: r(f(x)), [a], [k], "tensor", slack=8)
        return
    a = p.made(k, [*shape, 2])
    if op.startswith("irfft"):
        bins = shape[-1]
        n = rng.choice([None, 2 * bins - 1])
        if n is None and bins == 1:
            raise Refused("one bin")
        size = n or 2 * bins - 2
        run = (lambda w, x: torch.fft.irfft2(c(x), s=(shape[-2], size))) if two else (lambda w,
                                                                                      x: torch.fft.irfft(c(x), size))
        p.emit(f"{{0}}:{op}({n or ''})", run, [a], [k], "tensor", slack=8)
    else:
        p.emit(f"{{0}}:{op}()", lambda w, x: r(f(c(x))), [a], [k], "tensor", slack=8)


@operation(1)
def rope(p):
    rng = p.rng
    k = rng.choice(p.profile.floats)
    t, d = rng.randint(1, 9), 2 * rng.randint(1, 8)
    x = p.made(k, [*p.shape(rng.randint(0, 2), 30), t, d])
    cos, sin = p.made(k, [t, d // 2], "unit", False), p.made(k, [t, d // 2], "unit", False)
    near = rng.random() < 0.5

    def run(w, x, c, s):
        if near:
            a, b = x[..., 0::2], x[..., 1::2]
            return torch.stack([a * c - b * s, b * c + a * s], -1).flatten(-2)
        a, b = x[..., :d // 2], x[..., d // 2:]
        return torch.cat([a * c - b * s, b * c + a * s], -1)
    p.emit(f"{{0}}:rope({{1}}, {{2}}, {{{{interleaved = {str(near).lower()}}}}})", run, [x, cos, sin], [k], "tensor",
           slack=4)
