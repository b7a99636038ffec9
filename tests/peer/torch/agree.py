"""Rille beside PyTorch and Python's safetensors: the logits of the same weights, of GPT-2 here and of the models in
models.py, files in both directions, attention as torch.nn.MultiheadAttention has it, and twelve steps of each
optimizer.

usage: agree.py RILLE [--weights gpt2/model.safetensors], with a Python that has torch and numpy
(tests/requirements-torch.txt). Where safetensors are not installed the files are written and read by a few lines here.
With --weights the published 124M model is compared, too.
"""
import importlib.util, json, os, pathlib, struct, subprocess, sys, tempfile

import models

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16", "I64": "int64", "BOOL": "bool"}


def write_tensors(tensors, path):
    import torch
    header, parts, at = {}, [], 0
    for name, t in tensors.items():
        raw = t.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        kind = next(k for k, n in KINDS.items() if getattr(torch, n) == t.dtype)
        header[name] = {"dtype": kind, "shape": list(t.shape), "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read_tensors(path):
    import torch
    raw = pathlib.Path(path).read_bytes()
    start = 8 + struct.unpack_from("<Q", raw)[0]
    out = {}
    for name, at in json.loads(raw[8:start]).items():
        if name != "__metadata__":
            part = bytearray(raw[start + at["data_offsets"][0]:start + at["data_offsets"][1]])
            out[name] = torch.frombuffer(part, dtype=getattr(torch, KINDS[at["dtype"]])).reshape(at["shape"])
    return out


class Files:
    """Python's own safetensors, where they are installed."""

    def __init__(self):
        if importlib.util.find_spec("safetensors"):
            from safetensors.torch import load_file, save_file
            self.load, self.save = load_file, save_file
        else:
            print("safetensors are not installed: the test writes and reads their form itself")
            self.load, self.save = read_tensors, write_tensors


def gpt2_weights(layers, width, context, vocab):
    """Under Hugging Face's names; linear weights are [inputs, outputs] there."""
    import torch
    torch.manual_seed(3)
    w = {"wte.weight": torch.randn(vocab, width) * 0.1, "wpe.weight": torch.randn(context, width) * 0.1}
    norms = ["ln_f"] + [f"h.{i}.{n}" for i in range(layers) for n in ("ln_1", "ln_2")]
    for n in norms:
        w[n + ".weight"], w[n + ".bias"] = 1 + torch.randn(width) * 0.1, torch.randn(width) * 0.1
    for i in range(layers):
        for n, a, b in (("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width),
                        ("mlp.c_fc", width, 4 * width), ("mlp.c_proj", 4 * width, width)):
            w[f"h.{i}.{n}.weight"], w[f"h.{i}.{n}.bias"] = torch.randn(a, b) * 0.1, torch.randn(b) * 0.1
    return w


def gpt2_logits(w, ids, layers, heads):
    import torch
    import torch.nn.functional as F
    batch, length = ids.shape
    x = w["wte.weight"][ids] + w["wpe.weight"][:length]
    width = x.shape[-1]

    def norm(y, name):
        return F.layer_norm(y, (width,), w[name + ".weight"], w[name + ".bias"], 1e-5)

    def linear(y, name):
        return y @ w[name + ".weight"] + w[name + ".bias"]

    for i in range(layers):
        q, k, v = (part.view(batch, length, heads, -1).transpose(1, 2)
                   for part in linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(width, -1))
        scores = q @ k.transpose(-1, -2) / (width // heads) ** 0.5
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), float("-inf"))
        seen = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + linear(seen, f"h.{i}.attn.c_proj")
        x = x + linear(F.gelu(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh"),
                       f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


class Rille:
    def __init__(self, program):
        self.program, self.home = os.path.abspath(program), tempfile.mkdtemp(prefix="rille-agree-")
        self.env = dict(os.environ, RILLE_HOME=self.home + "/state", XDG_CONFIG_HOME=self.home)

    def __call__(self, case, **more):
        words = [w for name, value in more.items() for w in ("--" + name, value)]
        r = subprocess.run([self.program, "--json", "run", HERE + "/agree.lua", "--case", case, "--dir", self.home,
                            *words], env=self.env, capture_output=True, text=True, timeout=300)
        assert r.returncode == 0, r.stdout + r.stderr
        return json.loads(r.stdout)["result"]

    def path(self, name):
        return f"{self.home}/{name}"


def check_gpt2(rille, files):
    import torch
    w = gpt2_weights(3, 64, 32, 199)
    ids = torch.arange(2 * 32).view(2, 32) * 37 % 199
    files.save(w, rille.path("theirs.safetensors"))
    files.save({"ids": ids}, rille.path("ids.safetensors"))
    rille("gpt2")
    want = gpt2_logits({n: t.double() for n, t in w.items()}, ids, 3, 4)
    torchs = (gpt2_logits(w, ids, 3, 4) - want).abs().max().item()
    ours = (files.load(rille.path("logits.safetensors"))["logits"] - want).abs().max().item()
    print(f"logits (largest {want.abs().max():.1f}) beside f64: Rille {ours:.1e}, torch in f32 {torchs:.1e}")
    assert ours < 1e-4, ours
    # What Rille wrote is the same weights under its own names.
    written = files.load(rille.path("ours.safetensors"))
    assert torch.equal(written["tokens.weight"], w["wte.weight"])
    assert torch.equal(written["blocks.2.attention.qkv.weight"], w["h.1.attn.c_attn.weight"].T)
    assert len(written) == len(w), sorted(written)
    print(f"{len(written)} tensors read and written")


def check_models(rille, files):
    """Models of others by their published names: logits beside models.py in f64."""
    import torch
    cases, wanted = models.cases(), {}
    for name, (weights, inputs, logits) in cases.items():
        models.save(files.save, rille.home, name, weights)
        files.save(inputs, rille.path(name + ".inputs.safetensors"))
        exact = {n: t.double() if t.is_floating_point() else t for n, t in (weights | inputs).items()}
        wanted[name] = logits(exact)
    rille("models")
    got = files.load(rille.path("models.safetensors"))
    assert set(got) == set(wanted), set(got) ^ set(wanted)
    for name, want in wanted.items():
        off = (got[name] - want).abs().max().item()
        print(f"{name}: logits (largest {want.abs().max():.1f}) beside f64: {off:.1e}")
        assert want.isfinite().all() and want.std() > 0.05 and off < 1e-4, (name, off)


def check_published(rille, files, path):
    import torch
    w = {name.removeprefix("transformer."): t.float() for name, t in files.load(path).items()}
    ids = torch.tensor([[464, 8824, 318, 257, 1310, 2330, 2613]])
    files.save({"ids": ids}, rille.path("ids.safetensors"))
    rille("published", weights=os.path.abspath(path))
    want = gpt2_logits(w, ids, 12, 12)
    ours = (files.load(rille.path("logits.safetensors"))["logits"] - want).abs().max().item()
    print(f"published weights: logits differ by {ours:.1e}")
    assert ours < 1e-3, ours   # logits are near -100


def attentions():
    """name -> torch's module with its arguments, what it is called with, and Rille's weights by their names."""
    import torch
    from torch.nn import MultiheadAttention
    torch.manual_seed(7)
    torch.set_default_dtype(torch.float64)
    x, memory = torch.randn(2, 5, 16), torch.randn(2, 7, 12)
    padding = torch.arange(5) >= torch.tensor([[3], [5]])
    cases = {
        "causal": (MultiheadAttention(16, 4, batch_first=True), (x, x, x),
                   {"attn_mask": torch.ones(5, 5).triu(1).bool(), "is_causal": True}),
        "padded": (MultiheadAttention(16, 4, batch_first=True, bias=False), (x, x, x), {"key_padding_mask": padding}),
        "biased": (MultiheadAttention(16, 4, batch_first=True), (x, x, x), {"attn_mask": torch.randn(5, 5)}),
        "memory": (MultiheadAttention(16, 4, batch_first=True, kdim=12, vdim=12), (x, memory, memory), {}),
    }
    torch.set_default_dtype(torch.float32)
    for name, (module, inputs, how) in cases.items():
        ours = {"out_proj.weight": "out.weight", "out_proj.bias": "out.bias", "in_proj_weight": "qkv.weight",
                "in_proj_bias": "qkv.bias", "q_proj_weight": "q.weight", "k_proj_weight": "k.weight",
                "v_proj_weight": "v.weight"}
        for n, p in module.named_parameters():
            if n.endswith("bias"):
                torch.nn.init.normal_(p)
        yield name, module, inputs, how, {ours[n]: p for n, p in module.named_parameters()}


def check_attention(rille, files):
    import torch
    import torch.nn.functional as F
    given, wanted = {}, {}

    def want(case, y, inputs):
        (y * y).sum().backward()
        wanted[case + ".y"] = y
        for n, t in inputs.items():
            wanted[f"{case}.{n}.grad"] = t.grad

    for case, module, inputs, how, weights in attentions():
        x, memory = inputs[0].clone().requires_grad_(), inputs[1]
        given[case + ".x"] = inputs[0]
        if case == "memory":
            given[case + ".memory"] = memory
            bias = weights.pop("qkv.bias")
            for i, n in enumerate("qkv"):
                given[f"{case}.{n}.bias"] = bias.detach()[16 * i:16 * i + 16].clone()
        if case == "biased":
            given[case + ".mask"] = how["attn_mask"]
        given.update({f"{case}.{n}": p.detach() for n, p in weights.items()})
        keys = x if case != "memory" else memory
        want(case, module(x, keys, keys, need_weights=False, **how)[0], {"x": x, **weights})
    # Groups of queries, which torch's module does not have.
    torch.manual_seed(8)
    x, w = torch.randn(2, 5, 16).double(), {n: torch.randn(s, 16).double() * 0.3 for n, s in
                                            (("q", 16), ("k", 8), ("v", 8), ("out", 16))}
    given.update({"groups.x": x, **{f"groups.{n}.weight": t for n, t in w.items()}})
    x, w = x.clone().requires_grad_(), {n: t.clone().requires_grad_() for n, t in w.items()}
    q, k, v = (F.linear(x, w[n]).view(2, 5, -1, 4).transpose(1, 2) for n in "qkv")
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    want("groups", F.linear(y.transpose(1, 2).reshape(2, 5, 16), w["out"]),
         {"x": x, **{n + ".weight": t for n, t in w.items()}})
    files.save({n: t.detach().clone() for n, t in given.items()}, rille.path("attention.safetensors"))
    rille("attention")
    got = files.load(rille.path("attended.safetensors"))
    worst = max((got[n] - t).abs().max().item() for n, t in wanted.items())
    print(f"attention: {len(wanted)} tensors differ by {worst:.0e}")
    assert worst < 1e-10, {n: (got[n] - t).abs().max().item() for n, t in wanted.items()}


class Lion:
    """Chen et al. 2023, algorithm 2."""

    def __init__(self, parameters, lr, weight_decay):
        self.parameters, self.lr, self.decay = parameters, lr, weight_decay
        self.m = [0 * p.detach() for p in parameters]

    def step(self):
        for i, p in enumerate(self.parameters):
            update = (0.9 * self.m[i] + 0.1 * p.grad).sign()
            p.data.mul_(1 - self.lr * self.decay).sub_(self.lr * update)
            self.m[i] = 0.99 * self.m[i] + 0.01 * p.grad


def optimizers(w, b):
    import torch.optim as o
    def both(adjust):
        return [o.Muon([w], lr=0.01, weight_decay=0.1, momentum=0.95, nesterov=True, adjust_lr_fn=adjust),
                o.AdamW([b], lr=0.01, weight_decay=0)]
    return {
        "adam": lambda: [o.Adam([w, b], lr=0.01, betas=(0.8, 0.95), weight_decay=0.1)],
        "adamw": lambda: [o.AdamW([w, b], lr=0.01, weight_decay=0.1)],
        "sgd": lambda: [o.SGD([w, b], lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.1)],
        "lion": lambda: [Lion([w, b], 0.01, 0.1)],
        "muon": lambda: both("original"), "muon_rms": lambda: both("match_rms_adamw"),
    }


def check_optimizers(rille, files):
    import torch
    torch.manual_seed(5)
    start = {"x": torch.randn(16, 12).double(), "y": torch.rand(16, 5).double(), "w": torch.randn(12, 5).double(),
             "b": torch.randn(5).double()}
    worst = {}
    ended = None
    for kind in (torch.float64, torch.float32):
        files.save({n: t.to(kind) for n, t in start.items()}, rille.path("start.safetensors"))
        rates = rille("optimizers")["rates"]
        ended = files.load(rille.path("ended.safetensors"))
        for name in optimizers(None, None):
            if name.startswith("muon") != (kind == torch.float32):
                continue
            w, b = (start[n].to(kind).clone().requires_grad_() for n in "wb")
            made, average = optimizers(w, b)[name](), start["w"].to(kind)
            for step in range(1, 13):
                loss = (((start["x"].to(kind) @ w + b).tanh() - start["y"].to(kind)) ** 2).sum()
                w.grad, b.grad = torch.autograd.grad(loss, [w, b])
                if step > 6:
                    torch.nn.utils.clip_grad_norm_([w, b], 0.5)
                for opt in made:
                    opt.step()
                average = 0.9 * average + 0.1 * w.detach()
            for what, want in (("w", w), ("b", b), ("average", average)):
                off = (ended[f"{name}.{what}"] - want).abs().max().item()
                worst[name] = max(worst.get(name, 0), off)
    print("optimizers differ by", {n: f"{off:.0e}" for n, off in worst.items()})
    for name, off in worst.items():
        # Muon's twelve steps of 0.01 in bf16: torch rounds the matrix before it is normed, Rille after.
        assert off < (6e-3 if name.startswith("muon") else 1e-9), (name, off)
    p = torch.zeros(1, requires_grad=True)
    for name, make in {
            "one_cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.5, total_steps=50, cycle_momentum=False),
            "step_decay": lambda o: torch.optim.lr_scheduler.StepLR(o, 7, 0.5)}.items():
        o = torch.optim.SGD([p], lr=0.5)
        schedule = make(o)
        for step in range(50):
            assert abs(o.param_groups[0]["lr"] - rates[name][step]) < 1e-12, (name, step)
            o.step()
            if step < 49:
                schedule.step()
    print("schedules agree")


def main():
    rille, files = Rille(sys.argv[1]), Files()
    check_gpt2(rille, files)
    check_models(rille, files)
    check_attention(rille, files)
    check_optimizers(rille, files)
    if len(sys.argv) > 3:
        check_published(rille, files, sys.argv[3])


main()
