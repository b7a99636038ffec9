"""A random program of tensor operations, as data: statements that each know their Lua text and what torch does there.

A statement is checked by itself. torch computes it in f64 from the very operands that Rille had, and the result of
Rille then takes the place of torch's: so nothing adds up over a program, a difference names its operation, and
gradients in f64 go through the same choices (ties, kinks) that Rille made.
"""
import math, random
from dataclasses import dataclass, field

import torch

KINDS = {"bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i32": torch.int32, "i64": torch.int64,
         "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
ORDER = list(KINDS)
FLOATS = ("f16", "bf16", "f32", "f64")
WHOLE = ("u8", "i8", "i32", "i64")
LARGEST = {"f16": 3e4, "bf16": 1e9, "f32": 1e9, "f64": 1e9}


def meet(a, b):
    """The type at which two operands meet, as the manual has it."""
    low, high = sorted((a, b), key=ORDER.index)
    return {("u8", "i8"): "i32", ("f16", "bf16"): "f32"}.get((low, high), high)


class World:
    """How torch computes: with the types of the program (native), or with every float as f64."""

    def __init__(self, native):
        self.native = native

    def cast(self, t, kind):
        if kind in FLOATS and not self.native:
            return t if t.dtype == torch.float64 else t.to(torch.float64)
        return t.to(KINDS[kind])


@dataclass
class Input:
    name: str
    kind: str
    shape: tuple
    make: object                     # random.Random -> tensor
    leaf: bool = False               # a parameter, whose gradient is asked for


@dataclass
class Statement:
    lua: str                         # with {0}, {1} for the operands
    fn: object                       # (world, operands) -> tensor, or list of them
    args: list
    outs: list = field(default_factory=list)
    how: str = "near"                # exact, native, near, tensor: how results are compared
    write: bool = False              # writes its first operand in place
    view: bool = False
    slack: float = 1                 # a factor for the tolerance
    kinds: list = field(default_factory=list)
    shapes: list = field(default_factory=list)
    slope: bool = True               # whether gradients go through

    def text(self, name=lambda n: "v." + n):
        call = self.lua.format(*(name(a) for a in self.args))
        return call if not self.outs else ", ".join(name(o) for o in self.outs) + " = " + call


class Refused(Exception):
    """What was tried makes no program: too large, not finite, or refused by torch."""


class Program:
    def __init__(self, seed, profile):
        self.seed, self.rng, self.profile = seed, random.Random(seed), profile
        self.inputs, self.statements, self.outputs, self.weights = {}, [], [], {}
        self.kind, self.native = {}, {}          # by name: the type, the value with the program's own types
        self.frozen, self.count = set(), 0       # memory that a gradient may need; names

    # -- what operations ask for
    def fresh(self, letter="t"):
        self.count += 1
        return f"{letter}{self.count}"

    def input(self, kind, shape, make, leaf=False):
        name = self.fresh("p" if leaf else "a")
        value = make(random.Random(self.rng.random()))
        assert value.dtype == KINDS[kind] and tuple(value.shape) == tuple(shape), (value.dtype, kind, value.shape,
                                                                                   shape)
        self.inputs[name] = Input(name, kind, tuple(shape), make, leaf)
        self.kind[name] = kind
        self.native[name] = value.clone().requires_grad_() if leaf else value.clone()
        return name

    def number(self):
        return self.rng.choice([self.rng.randint(-4, 4), self.rng.randint(1, 8) / 4, round(self.rng.gauss(0, 2), 3)])

    def shape(self, rank=None, most=2000):
        rng = self.rng
        rank = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4]) if rank is None else rank
        while True:
            sizes = [rng.choice([1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17]) for _ in range(rank)]
            if rank and rng.random() < 0.15:
                sizes[rng.randrange(rank)] = rng.choice([31, 33, 64, 65, 100, 130, 257, 1030])
            if rank and rng.random() < self.profile.empty:
                sizes[rng.randrange(rank)] = 0
            if math.prod(sizes) <= most:
                return tuple(sizes)

    def values(self, kind, shape, style=None):
        """A maker of values. On a grid they tie, and sums of them are exact."""
        style = style or self.rng.choice(["grid", "grid", "normal"])
        special = self.profile.special and self.rng.random() < 0.5

        def make(rng):
            g = torch.Generator().manual_seed(rng.getrandbits(40))
            if kind == "bool":
                return torch.rand(shape, generator=g) < 0.6
            if kind in WHOLE:
                low = 0 if kind == "u8" else -9
                if style == "wide":
                    span = {"u8": (0, 256), "i8": (-128, 128), "i32": (-2**31, 2**31), "i64": (-2**62, 2**62)}[kind]
                    return torch.randint(*span, shape, generator=g).to(KINDS[kind])
                if style == "nonzero":
                    low = 1
                return torch.randint(low, 10, shape, generator=g).to(KINDS[kind])
            if style == "positive":
                t = torch.randint(1, 17, shape, generator=g) / 4
            elif style == "unit":
                t = torch.rand(shape, generator=g, dtype=torch.float64) * 1.8 - 0.9
            elif style == "grid":
                t = torch.randint(-8, 9, shape, generator=g) / 4
            elif style == "nonzero":
                t = torch.randint(1, 9, shape, generator=g) / 4 * (torch.randint(0, 2, shape, generator=g) * 2 - 1)
            else:
                t = torch.randn(shape, generator=g, dtype=torch.float64)
            t = t.to(torch.float64)
            if special:
                odd = torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0, 1e-30, 300.0, -1e4], dtype=torch.float64)
                at = torch.rand(shape, generator=g) < 0.25
                t = torch.where(at, odd[torch.randint(0, len(odd), shape, generator=g)], t)
            return t.to(KINDS[kind])
        return make

    def made(self, kind=None, shape=None, style=None, leaf=None):
        kind = kind or self.rng.choice(self.profile.kinds)
        shape = self.shape() if shape is None else tuple(shape)
        if leaf is None:
            leaf = kind in FLOATS and self.profile.gradients and self.rng.random() < 0.5
        return self.input(kind, shape, self.values(kind, shape, style), leaf and kind in FLOATS)

    def names(self, test=lambda n, t: True):
        return [n for n, t in self.native.items() if test(n, t)]

    def pick(self, test=lambda n, t: True, otherwise=None):
        """A tensor that is there already, mostly one of the newest; or a new input."""
        found = self.names(test)
        if not found or (otherwise and self.rng.random() < 0.1):
            if otherwise is None:
                raise Refused("nothing fits")
            return otherwise()
        if self.rng.random() < 0.6:
            found = found[-6:]
        return self.rng.choice(found)

    def pick_float(self, test=lambda t: True, **made):
        return self.pick(lambda n, t: self.kind[n] in FLOATS and test(t),
                         lambda: self.made(self.rng.choice(self.profile.floats), **made))

    # -- statements
    def emit(self, lua, fn, args, kinds=None, how="near", outs=1, write=False, view=False, slack=1, slope=True):
        """Adds a statement when torch can do it; returns the names of its results."""
        operands = [self.native[a] for a in args]
        needs = any(t.requires_grad for t in operands)
        if write and (needs or operands[0].untyped_storage().data_ptr() in self.frozen):
            raise Refused("memory that a gradient may need")
        if slope and not write and needs:
            for a in args:
                self.frozen.add(self.native[a].untyped_storage().data_ptr())
        with torch.set_grad_enabled(slope and not write):
            try:
                results = fn(World(True), *operands)
            except (RuntimeError, IndexError, NotImplementedError) as e:
                raise Refused(str(e))
        results = [results] if isinstance(results, torch.Tensor) else list(results)
        s = Statement(lua, fn, list(args), how=how, write=write, view=view, slack=slack, slope=slope)
        if write:
            self.statements.append(s)
            return []
        kinds = kinds or [None] * len(results)
        for r in results:
            if r.numel() > 20000 or r.dim() > 6:
                raise Refused("too large")
        s.kinds = [k or next(n for n, d in KINDS.items() if d == r.dtype) for k, r in zip(kinds, results)]
        for r, k in zip(results, s.kinds):
            if k in FLOATS and not self.profile.special and r.numel():
                size = r.detach().double().abs().max().item()
                if not size <= LARGEST[k]:
                    raise Refused("not finite, or large")
        s.shapes = [tuple(r.shape) for r in results]
        s.outs = [self.fresh() for _ in results]
        for name, r, k in zip(s.outs, results, s.kinds):
            self.native[name], self.kind[name] = r if r.dtype == KINDS[k] else r.to(KINDS[k]), k
            if slope and needs:
                self.frozen.add(self.native[name].untyped_storage().data_ptr())
        self.statements.append(s)
        return s.outs

    # -- the end: what is read, and the loss
    def finish(self):
        used = {a for s in self.statements for a in s.args}
        ends = [o for s in self.statements for o in s.outs if o not in used]
        every = [o for s in self.statements for o in s.outs]
        extra = [o for o in every if self.rng.random() < 0.15]
        self.outputs = [o for o in every if o in set(ends) | set(extra)][:40]
        for o in self.outputs:
            if self.native[o].requires_grad and self.kind[o] in FLOATS:
                kind, shape = self.kind[o], tuple(self.native[o].shape)
                self.weights[o] = self.input(kind, shape, self.values(kind, shape, "grid"))
        return self
