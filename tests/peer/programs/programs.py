"""Random programs of tensor operations in Rille and in torch.

usage: programs.py RILLE [--seed N] [--count N] [--batch N] [--threads 1,2] [--modes all,plain,compiled]
[--print]
Programs run as they are, with handles dropped at random, and compiled; a compiled function must give the bits of the
plain one. program.py tells how values are compared. --print shows the programs: a fault is found again by its seed
with --count 1. It needs a Python that has torch (tests/requirements-torch.txt).
"""
import argparse, json, math, os, pathlib, random, shutil, struct, subprocess, sys, tempfile, time

import torch

import operations
from program import FLOATS, KINDS, Program, Refused, World

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = {"bool": "BOOL", "u8": "U8", "i8": "I8", "i32": "I32", "i64": "I64", "f16": "F16", "bf16": "BF16", "f32": "F32",
         "f64": "F64"}
EPS = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}
TINY = {"f16": 2.0**-24, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}


class Profile:
    """What kind of programs: types, whether there are gradients, empty tensors, NaN and infinities."""

    def __init__(self, rng):
        self.gradients = rng.random() < 0.7
        self.empty = 0.08 if rng.random() < 0.3 else 0.0
        self.special = rng.random() < 0.1
        floats = rng.choice([["f64"], ["f64"], ["f32"], ["f32"], ["f32", "f64"], ["bf16"], ["f16"], ["bf16", "f32"],
                             ["f16", "bf16", "f32", "f64"]])
        whole = rng.sample(["bool", "u8", "i8", "i32", "i64"], rng.choice([0, 1, 2, 5]))
        if not self.gradients and rng.random() < 0.3:
            whole = ["bool", "u8", "i8", "i32", "i64"]
        self.floats, self.kinds = floats, floats * (3 if whole and len(whole) < 5 else 1) + whole


def generate(seed):
    rng = random.Random(seed)
    p = Program(seed, Profile(rng))
    size = rng.choice([1, 2, 3, 5, 8, 13, 20, 30, 40])
    makers = [f for f, _ in operations.OPERATIONS]
    weights = [w for _, w in operations.OPERATIONS]
    if rng.random() < 0.5:               # a program of few kinds of operations
        chosen = rng.sample(range(len(makers)), 6)
        makers, weights = [makers[i] for i in chosen], [weights[i] for i in chosen]
    tries = 0
    while len(p.statements) < size and tries < 10 * size + 30:
        tries += 1
        try:
            rng.choices(makers, weights)[0](p)
        except (Refused, RuntimeError):
            pass
    return p.finish()


# -- files
def write_tensors(tensors, path):
    header, parts, at = {}, [], 0
    for name, t in tensors.items():
        raw = bytes(t.detach().contiguous().reshape(-1).view(torch.uint8).numpy()) if t.numel() else b""
        kind = next(k for k, d in KINDS.items() if d == t.dtype)
        header[name] = {"dtype": WORDS[kind], "shape": list(t.shape), "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read_tensors(path):
    raw = pathlib.Path(path).read_bytes()
    start = 8 + struct.unpack_from("<Q", raw)[0]
    kinds = {w: KINDS[k] for k, w in WORDS.items()}
    out = {}
    for name, at in json.loads(raw[8:start]).items():
        if name == "__metadata__":
            continue
        part = bytearray(raw[start + at["data_offsets"][0]:start + at["data_offsets"][1]])
        kind = kinds[at["dtype"]]
        out[name] = (torch.frombuffer(part, dtype=kind) if part else torch.empty(0, dtype=kind)).reshape(at["shape"])
    return out


# -- Lua
def lua_of(p, at):
    """The program as one Lua function of its tensors v; `keep` sees each result, `rest` may read or collect."""
    rng = random.Random(p.seed + 1)
    lines = [f"P[{at}] = {{ seed = {p.seed},"]
    lines.append("  inputs = {" + ", ".join(f'"{i.name}"' for i in p.inputs.values() if not i.leaf) + "},")
    lines.append("  leaves = {" + ", ".join(f'"{i.name}"' for i in p.inputs.values() if i.leaf) + "},")
    lines.append("  outputs = {" + ", ".join(f'"{o}"' for o in p.outputs) + "},")
    lines.append("  fn = function(v, keep, rest)")
    last = {}
    for i, s in enumerate(p.statements):
        for n in [*s.args, *s.outs]:
            last[n] = i
    for i, s in enumerate(p.statements):
        lines.append("    " + s.text())
        for n in s.outs or s.args[:1]:
            lines.append(f'    keep("{i}.{n}", v.{n})')
        if s.write:
            for n in sharing(p, s.args[0]):
                lines.append(f'    keep("{i}.{n}", v.{n})')
        if rng.random() < 0.2:
            lines.append(f"    rest(v.{(s.outs or s.args)[0]})")
        for n in sorted({*s.args, *s.outs}):
            if last[n] == i and n not in p.outputs and n not in p.inputs:
                lines.append(f"    rest(v, \"{n}\")")
    terms = [f"({{0}} * v.{w}):sum():to(\"f64\")".replace("{0}", "v." + o) for o, w in p.weights.items()]
    if terms:
        lines.append("    local loss = " + terms[0])
        for t in terms[1:]:
            lines.append("    loss = loss + " + t)
        lines.append("    if loss.requires_grad then loss:backward() end")
    lines.append("  end }")
    return "\n".join(lines)


def sharing(p, name):
    """Inputs and earlier results that lie in the same memory: a write must show there, too, or must not."""
    at = p.native[name].untyped_storage().data_ptr()
    return [n for n in p.inputs if n != name and p.native[n].untyped_storage().data_ptr() == at][:3]


# -- one batch of programs in one process of Rille
class Rille:
    def __init__(self, program, folder):
        self.program, self.folder = os.path.abspath(program), folder
        self.env = dict(os.environ, RILLE_HOME=folder + "/state", XDG_CONFIG_HOME=folder)

    def __call__(self, programs, threads, modes="all,plain,compiled"):
        text = ["return function(P)", *(lua_of(p, i + 1) for i, p in enumerate(programs)), "end", ""]
        pathlib.Path(self.folder, "programs_made.lua").write_text("\n".join(text))
        shutil.copy(os.path.join(HERE, "programs.lua"), self.folder)
        given = {}
        for i, p in enumerate(programs):
            for n, which in ((n, w) for n in p.inputs.values() for w in "AB"):
                given[f"{i + 1}.{which}.{n.name}"] = n.make(random.Random(f"{p.seed} {n.name} {which}"))
        write_tensors(given, self.folder + "/given.safetensors")
        for old in pathlib.Path(self.folder).glob("got*"):
            old.unlink()
        r = subprocess.run([self.program, "--json", "run", self.folder + "/programs.lua", "--dir", self.folder,
                            "--modes", modes],
                           env=dict(self.env, RILLE_THREADS=str(threads)), capture_output=True, text=True, timeout=900)
        if r.returncode:
            return given, None, r.stdout[-3000:] + r.stderr[-3000:]
        return given, read_tensors(self.folder + "/got.safetensors"), json.loads(r.stdout)["result"]


# -- comparing
def same(a, b):
    """The same bits; a NaN is like another."""
    def bits(t):
        t = t.contiguous().reshape(-1)
        t = torch.where(t.isnan(), torch.zeros_like(t), t) if t.is_floating_point() else t
        return t.view(torch.uint8) if t.numel() else t.to(torch.uint8)
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b)) and \
        torch.equal(a.isnan(), b.isnan())


def in_range(want, kind):
    """What has no room in the type is infinite."""
    return torch.where(want.abs() > torch.finfo(KINDS[kind]).max * (1 + EPS[kind]), want.sign() * math.inf, want)


def off(got, want, allowed):
    """Where they differ by more than is allowed: a text, or None."""
    got, want = got.double(), want.double()
    bad = torch.isnan(got) != torch.isnan(want)
    inf = torch.isinf(got) | torch.isinf(want)
    bad |= inf & (got != want) & ~(torch.isnan(got) & torch.isnan(want))
    bad |= ~inf & ~torch.isnan(want) & ((got - want).abs() > allowed)
    if not bad.any():
        return None
    at = tuple(int(i) for i in bad.nonzero()[0])
    return f"{int(bad.sum())} of {bad.numel()} at {at}: {got[at].item()!r}, not {want[at].item()!r}"


class Check:
    """One program beside its results."""

    def __init__(self, p, given, got, prefix):
        self.p, self.got, self.prefix, self.found = p, got, prefix, []
        self.env = {}
        for n in p.inputs.values():
            t = given[n.name]
            t = t.double() if n.kind in FLOATS else t.clone()
            self.env[n.name] = t.requires_grad_() if n.leaf else t

    def report(self, kind, what):
        self.found.append((kind, what))

    def allowed(self, s, result, i, kind, clean):
        """How far a result may be off: rounding, and what a rounding of the operands changes."""
        eps = EPS[kind]
        out = result.detach().double()
        allowed = 6 * s.slack * eps * out.abs().nan_to_num(0, 0, 0) + 4 * TINY[kind]
        worst = max([eps] + [EPS[self.p.kind[a]] for a in s.args if self.p.kind[a] in FLOATS
                             and EPS[self.p.kind[a]] < 1e-6])
        for turn in range(2):
            g = torch.Generator().manual_seed(turn)
            near = [t * (1 + worst * (torch.rand(t.shape, generator=g, dtype=t.dtype) * 2 - 1))
                    if t.dtype == torch.float64
                    else t.clone() for t in clean]
            with torch.no_grad():
                try:
                    y = s.fn(World(False), *near)
                except RuntimeError:
                    continue
            y = (y if isinstance(y, torch.Tensor) else list(y)[i]).double()
            change = (y - out).abs().nan_to_num(0, 0, 0)
            if s.how == "tensor" and change.numel():
                change = torch.full_like(change, change.max().item())
            allowed = allowed + 6 * s.slack * change
        if s.how == "tensor" and out.numel():
            allowed = allowed + s.slack * eps * out.abs().nan_to_num(0, 0, 0).max()
        if kind in ("f16",):
            allowed = allowed + 2.0**-24
        return allowed

    def statement(self, at, s):
        w = World(False)
        operands = [self.env[a] for a in s.args]
        if s.write:
            before = self.env[s.args[0]].detach().clone().double()
            with torch.no_grad():
                s.fn(w, *operands)
            moved = (self.env[s.args[0]].detach().double() - before).abs().nan_to_num(0, 0, 0)
            moved = moved.max().item() if moved.numel() else 0
            for n in [s.args[0], *sharing(self.p, s.args[0])]:
                got = self.got[f"{self.prefix}.{at}.{n}"]
                want = self.env[n].detach()
                size = EPS.get(self.p.kind[n], 0) * 8 * (want.double().abs() + moved)
                wrong = off(got, want, size.nan_to_num(0, 0, 0))
                if wrong:
                    self.report("write", f"{s.text()} -> {n} {self.p.kind[n]}{list(want.shape)}: {wrong}")
                if not any(st == 0 and z > 1 for st, z in zip(want.stride(), want.shape)):
                    want.copy_(got)
            return
        clean = [t.detach().clone() for t in operands]
        with torch.set_grad_enabled(s.slope):
            results = s.fn(w, *operands)
        results = [results] if isinstance(results, torch.Tensor) else list(results)
        natives = None
        for i, (name, r, kind, shape) in enumerate(zip(s.outs, results, s.kinds, s.shapes)):
            got = self.got[f"{self.prefix}.{at}.{name}"]
            self.env[name] = r
            if got.dtype != KINDS[kind] or tuple(got.shape) != shape:
                self.report("type", f"{s.text()}: {got.dtype}{list(got.shape)}, not {kind}{list(shape)}")
                raise Broken
            if s.how == "native" or kind not in FLOATS:
                if natives is None:
                    kinds = [KINDS[self.p.kind[a]] for a in s.args]
                    torch.set_default_dtype(torch.float32)
                    natives = s.fn(World(True), *(c.to(k) for c, k in zip(clean, kinds)))
                    torch.set_default_dtype(torch.float64)
                    natives = [natives] if isinstance(natives, torch.Tensor) else list(natives)
                want, allowed = natives[i], 0.0
                if kind in ("f16", "bf16"):
                    allowed = EPS[kind] * want.double().abs()
            elif s.how == "exact":
                want, allowed = r.detach().to(KINDS[kind]), 0.0
            else:
                want, allowed = r.detach(), self.allowed(s, r, i, kind, clean)
                if kind in ("f16", "bf16", "f32"):
                    want = in_range(want, kind)
            wrong = off(got, want, allowed)
            if wrong:
                operands_told = ", ".join(f"{a}: {self.p.kind[a]}{list(self.env[a].shape)} strides "
                                          f"{self.env[a].stride()}" for a in s.args)
                self.report("value", f"{s.text()} -> {name} {kind}{list(shape)}: {wrong} ({operands_told})")
            r.data = r.data if s.view else r.data.clone()
            if not s.view:
                r.data.copy_(got)

    def run(self):
        torch.set_default_dtype(torch.float64)
        try:
            for at, s in enumerate(self.p.statements):
                self.statement(at, s)
            self.gradients()
        except Broken:
            pass
        except Exception as e:                     # a fault of this test, reported as such
            self.report("peer", f"{type(e).__name__} {e}")
        finally:
            torch.set_default_dtype(torch.float32)
        return self.found

    def gradients(self):
        p = self.p
        if not p.weights:
            return
        between = [self.env[o] for s in p.statements for o in s.outs if self.env[o].requires_grad
                   and self.env[o].dtype == torch.float64]
        for t in between:
            t.retain_grad()
        loss = sum((self.env[o] * self.env[w]).sum() for o, w in p.weights.items())
        if not loss.requires_grad:
            return
        loss.backward()
        sizes = [t.grad.abs().nan_to_num(0, 0, 0).max().item() for t in between if t.grad is not None and t.numel()]
        leaves = [n.name for n in p.inputs.values() if n.leaf]
        sizes += [self.env[n].grad.abs().nan_to_num(0, 0, 0).max().item() for n in leaves
                  if self.env[n].grad is not None and self.env[n].numel()]
        scale = max(sizes, default=0)
        kinds = {p.kind[n] for n in p.native if p.kind[n] in FLOATS}
        eps = max((EPS[k] for k in kinds), default=EPS["f64"])
        if scale > min((torch.finfo(KINDS[k]).max for k in kinds), default=math.inf):
            return                                 # what was in between had no room
        for n in leaves:
            want, got = self.env[n].grad, self.got.get(f"{self.prefix}.grad.{n}")
            if want is None and got is None:
                continue
            if want is None:
                want = torch.zeros_like(self.env[n])
            if got is None:
                if want.abs().nan_to_num(1, 1, 1).max().item() > 0 if want.numel() else False:
                    self.report("gradient", f"{n} {p.kind[n]}{list(want.shape)} has none")
                continue
            want = in_range(want, p.kind[n])
            if got.shape != want.shape or got.dtype != KINDS[p.kind[n]]:
                self.report("gradient", f"{n}: {got.dtype}{list(got.shape)}")
                continue
            factor = 2000 if eps < 1e-10 else 300 if eps < 1e-5 else 16 if eps < 2e-3 else 8
            wrong = off(got, want, factor * eps * (scale + 1e-30) * math.sqrt(1 + len(p.statements)))
            if wrong and not p.profile.special:        # what becomes of infinities there is slopes_test.lua's
                self.report("gradient", f"of {n} {p.kind[n]}{list(want.shape)}: {wrong} (scale {scale:.3g})")


class Broken(Exception):
    pass


def check(p, i, given, got, result):
    """All faults of one program: beside torch, and of its modes beside each other."""
    errors = [(f"error {mode}", text) for mode, text in ((m, result["errors"].get(f"{i} {m}")) for m in
              ("all A", "plain A", "plain B", "compiled")) if text]
    if errors:
        return errors
    inputs = {n: given[f"{i}.A.{n}"] for n in p.inputs}
    found = Check(p, inputs, got, f"{i}.all.A").run()
    ends = [*(f"out.{o}" for o in p.outputs), *(f"grad.{n.name}" for n in p.inputs.values() if n.leaf),
            *(f"end.{n.name}" for n in p.inputs.values() if not n.leaf)]
    for mode in [f"compiled{c}.{w}" for c, w in zip("123456", "ABABAB")] + ["plain.A", "all.A"]:
        plain = f"{i}.plain.{mode[-1]}."
        for e in ends:
            a, b = got.get(plain + e), got.get(f"{i}.{mode}.{e}")
            if (a is None) != (b is None):
                found.append(("bits", f"{mode} {e}: {'there' if b is not None else 'missing'}"))
            elif a is not None and not same(a, b):
                found.append(("bits", f"{mode} {e} {a.dtype}{list(a.shape)}: {off(b, a, 0.0) or 'other bits'}"))
    return found


def show(p, found):
    print(f"seed {p.seed}: {'; '.join(f'{k}: {t}' for k, t in found[:4])}", flush=True)


def main():
    words = argparse.ArgumentParser()
    words.add_argument("rille")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--count", type=int, default=200)
    words.add_argument("--batch", type=int, default=50)
    words.add_argument("--threads", default="2")
    words.add_argument("--modes", default="all,plain,compiled")
    words.add_argument("--print", action="store_true")
    o = words.parse_args()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="rille-programs-")
    rille, bad, counted = Rille(o.rille, folder), 0, {}
    for start in range(o.seed, o.seed + o.count, o.batch):
        programs = [generate(s) for s in range(start, min(start + o.batch, o.seed + o.count))]
        if o.print:
            for p in programs:
                print(lua_of(p, 1))
        for threads in o.threads.split(","):
            given, got, result = rille(programs, threads, o.modes)
            if got is None:
                print(f"seeds {start}..: rille failed: {result}")
                bad += 1
                continue
            for i, p in enumerate(programs):
                found = check(p, i + 1, given, got, result)
                if found:
                    bad += 1
                    for k, _ in found[:1]:
                        counted[k] = counted.get(k, 0) + 1
                    show(p, found)
    print(f"{o.count} programs, {bad} differ {counted or ''}")
    shutil.rmtree(folder)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
