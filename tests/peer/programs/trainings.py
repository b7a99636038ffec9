"""Random small models of rille.nn, trained in Rille and in torch from the same weights: mixed layers, tied and frozen
parameters, groups, schedules, clipping, averages, accumulation, loss scaling, bf16. Parameters are compared.

usage: trainings.py RILLE [--seed N] [--count N], with a Python that has torch (tests/requirements-torch.txt).
"""
import argparse, json, math, os, pathlib, random, shutil, subprocess, sys, tempfile

import torch
import torch.nn.functional as F

from programs import HERE, read_tensors, write_tensors

ACTIVATIONS = {"relu": F.relu, "gelu": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "tanh": torch.tanh,
               "sigmoid": torch.sigmoid, "elu": F.elu, "softplus": F.softplus, "leaky_relu": F.leaky_relu}


class Layer:
    def __init__(self, lua, fn):
        self.lua, self.fn = lua, fn      # fn(weights by name under the layer, x, training)


def linear(i, o, bias):
    return Layer(f"nn.linear({i}, {o}, {{ bias = {str(bias).lower()} }})",
                 lambda w, x, s: F.linear(x, w("weight"), w("bias") if bias else None))


def activation(name):
    return Layer(f"function(x) return x:{name}() end", lambda w, x, s: ACTIVATIONS[name](x))


def attention(rng, width):
    heads = rng.choice([h for h in (1, 2, 4) if width % h == 0])
    causal, fused, bias = rng.random() < 0.5, rng.random() < 0.6, rng.random() < 0.7
    kv = rng.choice([g for g in (1, 2, 4) if heads % g == 0])
    d = width // heads

    def fn(w, x, s):
        b, t, _ = x.shape
        get = lambda n: w(n) if bias or n.endswith("weight") else None
        if fused:
            q, k, v = F.linear(x, w("qkv.weight"), get("qkv.bias")).split([width, kv * d, kv * d], -1)
        else:
            q, k, v = (F.linear(x, w(n + ".weight"), get(n + ".bias")) for n in "qkv")
        q, k, v = (y.reshape(b, t, -1, d).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        return F.linear(y.transpose(1, 2).reshape(b, t, width), w("out.weight"), get("out.bias"))
    options = (f"causal = {str(causal).lower()}, fused = {str(fused).lower()}, bias = {str(bias).lower()}, "
               f"kv_heads = {kv}")
    return Layer(f"nn.attention({width}, {heads}, {{ {options} }})", fn)


def layers_of(rng, kind, width, out):
    """The layers, from inputs of a kind: rows [n, c], texts [b, t] of ids, images [n, c, h, w]."""
    made = []
    if kind == "texts":
        made.append(Layer(f"nn.embedding(11, {width}, {{ deviation = 0.5 }})", lambda w, x,
                          s: F.embedding(x, w("weight"))))
    for _ in range(rng.randint(1, 5)):
        which = rng.choice(["linear", "linear", "activation", "layer_norm", "rms_norm", "attention", "conv",
                            "batch_norm",
                            "group_norm", "pool", "dropout"])
        if kind == "images":
            if which in ("linear", "layer_norm", "rms_norm", "attention"):
                which = "conv"
        elif which in ("conv", "pool",
            "group_norm") or which == "attention" and kind == "rows" or which == "batch_norm" and kind == "texts":
            which = "linear"
        if which == "linear":
            new = rng.choice([4, 8, 12])
            made.append(linear(width, new, rng.random() < 0.7))
            width = new
        elif which == "activation":
            made.append(activation(rng.choice(list(ACTIVATIONS))))
        elif which == "layer_norm":
            made.append(Layer(f"nn.layer_norm({width})", lambda w, x, s,
                              c=width: F.layer_norm(x, (c,), w("weight"), w("bias"))))
        elif which == "rms_norm":
            made.append(Layer(f"nn.rms_norm({width})", lambda w, x, s, c=width: F.rms_norm(x, (c,), w("weight"), 1e-6)))
        elif which == "attention":
            made.append(attention(rng, width))
        elif which == "conv":
            groups = rng.choice([g for g in (1, 2, width) if width % g == 0])
            new, k = groups * rng.randint(1, 3), rng.choice([1, 3])
            bias = rng.random() < 0.6
            made.append(Layer(f"nn.conv2d({width}, {new}, {k}, {{ padding = {k // 2}, groups = {groups}, "
                              f"bias = {str(bias).lower()} }})",
                              lambda w, x, s, g=groups, k=k, b=bias: F.conv2d(x, w("weight"), w("bias") if b else None,
                                                                              padding=k // 2, groups=g)))
            width = new
        elif which == "batch_norm":
            made.append(Layer(f"nn.batch_norm({width})", lambda w, x, s: F.batch_norm(
                x, w("running_mean"), w("running_var"), w("weight"), w("bias"), True, 0.1, 1e-5)))
        elif which == "group_norm":
            groups = rng.choice([g for g in (1, 2, width) if width % g == 0])
            made.append(Layer(f"nn.group_norm({groups}, {width})", lambda w, x, s,
                              g=groups: F.group_norm(x, g, w("weight"), w("bias"))))
        elif which == "pool":
            made.append(Layer("function(x) return x:max_pool2d(2, { stride = 1 }) end", lambda w, x,
                              s: F.max_pool2d(x, 2, 1)))
            made.append(Layer("function(x) return x:pad { 1, 0, 1, 0 } end", lambda w, x, s: F.pad(x, (1, 0, 1, 0))))
        else:
            made.append(Layer("nn.dropout(0)", lambda w, x, s: x))
    if kind == "images":
        made.append(Layer("function(x) return x:mean({ 3, 4 }) end", lambda w, x, s: x.mean((2, 3))))
    made.append(linear(width, out, True))
    return made


class Training:
    def __init__(self, seed, at):
        rng = self.rng = random.Random(seed)
        self.seed, self.at = seed, at
        self.kind = rng.choice(["rows", "texts", "images"])
        self.dtype = rng.choice(["f64", "f64", "f32"])
        self.autocast = "bf16" if self.dtype == "f32" and rng.random() < 0.3 else None
        self.width, self.out = rng.choice([4, 8, 12]), rng.choice([1, 3, 7])
        self.layers = layers_of(rng, self.kind, self.width, self.out)
        self.tied = self.tie()
        self.loss = rng.choice(["mse", "cross_entropy"]) if self.out > 1 else "mse"
        self.steps, self.accumulate = 10, 1
        self.compiled = rng.random() < 0.6
        if self.compiled and rng.random() < 0.3 and not any("batch_norm" in l.lua for l in self.layers):
            self.accumulate = rng.randint(2, 3)
        self.clip = rng.choice([None, None, 0.05, 1.0, 100.0])
        self.scaled = rng.random() < 0.25
        self.ema = rng.choice([None, None, (0.9, True), (0.5, False)])
        self.schedule = rng.choice([None, None, "optim.cosine { lr = LR, steps = 10, warmup = 3 }",
                                    "optim.linear { lr = LR, steps = 10 }",
                                    "optim.step_decay { lr = LR, every = 3, factor = 0.5 }",
                                    "optim.one_cycle { lr = LR, steps = 10 }",
                                    "optim.wsd { lr = LR, steps = 10, warmup = 2 }"])
        self.rule = rng.choice(["sgd", "sgd", "adam", "adamw", "lion"])
        self.lr = {"sgd": 0.05, "adam": 0.01, "adamw": 0.01, "lion": 0.003}[self.rule]
        self.decay = rng.choice([0, 0.1])
        self.momentum = rng.choice([0, 0.9])
        self.nesterov = self.momentum > 0 and rng.random() < 0.5
        self.betas = rng.choice([(0.9, 0.999), (0.8, 0.9)])
        self.grouped = rng.random() < 0.4
        self.freeze = rng.random() < 0.3
        self.frozen = []

    def tie(self):
        """Two linear layers of one shape that share their weight, or None."""
        found = [(i, l.lua) for i, l in enumerate(self.layers) if l.lua.startswith("nn.linear")]
        pairs = [(i, j) for i, a in found for j, b in found if i < j and a == b]
        return self.rng.choice(pairs) if pairs and self.rng.random() < 0.7 else None

    def lua(self):
        more = {"sgd": f"momentum = {self.momentum}, nesterov = {str(self.nesterov).lower()}",
                "lion": "betas = { %g, %g }" % self.betas}.get(self.rule, "betas = { %g, %g }" % self.betas)
        scale = ", loss_scale = { initial = 1024, interval = 4 }" if self.scaled else ""
        what = "model"
        if self.grouped:
            what = f"optim.groups(model, {{ weight_decay = {self.decay} }})"
            groups = f"""local groups = {what}
      if #groups == 2 then groups[2].lr = {self.lr / 2} end"""
        options = f"lr = {self.lr}, weight_decay = {self.decay if not self.grouped else 0}, {more}{scale}"
        return f"""T[{self.at}] = {{ steps = {self.steps}, accumulate = {self.accumulate},
    compiled = {str(self.compiled).lower()},
    dtype = "{self.dtype}", clip = {self.clip or 'nil'},
    autocast = {json.dumps(self.autocast) if self.autocast else 'nil'},
    scaled = {str(self.scaled).lower()}, frozen = {{ {', '.join(json.dumps(f) for f in self.frozen)} }},
    ema = {'{ decay = %g, warmup = %s }' % (self.ema[0], str(self.ema[1]).lower()) if self.ema else 'nil'},
    schedule = {self.schedule.replace('LR', str(self.lr)) if self.schedule else 'nil'},
    model = function()
      local model = nn.sequential {{ {', '.join(l.lua for l in self.layers)} }}
      {f'model[{self.tied[1] + 1}].weight = model[{self.tied[0] + 1}].weight' if self.tied else ''}
      return model
    end,
    optimizer = function(model)
      {groups if self.grouped else ''}
      return optim.{self.rule}({'groups' if self.grouped else 'model'}, {{ {options} }})
    end,
    loss = function(y, target) return y:{'mse_loss' if self.loss == 'mse' else 'cross_entropy'}(target) end }}"""

    def batches(self):
        g = torch.Generator().manual_seed(self.seed)
        kind = torch.float64 if self.dtype == "f64" else torch.float32
        for i in range(1, self.steps * self.accumulate + 1):
            lead = {"rows": (5,), "texts": (2, 6), "images": (3,)}[self.kind]
            x = torch.randint(0, 11, lead, generator=g) if self.kind == "texts" else \
                torch.randn(*lead, self.width, *((6, 5) if self.kind == "images" else ()), generator=g,
                            dtype=torch.float64).to(kind)
            y = torch.randn(*lead, self.out, generator=g, dtype=torch.float64).to(kind) if self.loss == "mse" else \
                torch.randint(0, self.out, lead, generator=g)
            yield f"{self.at}.{i}.", x, y

    def forward(self, w, x):
        for i, layer in enumerate(self.layers):
            x = layer.fn(lambda n, i=i: w[f"{i + 1}.{n}"], x, None)
        return x

    # -- torch
    def run(self, start, rates):
        w = {n: t.clone() for n, t in start.items()}
        plain = ("running_mean", "running_var")
        trained = [n for n in sorted(w) if not n.endswith(plain) and n not in self.frozen]
        if self.tied:
            i, j = (f"{k + 1}.weight" for k in self.tied)
            w[j] = w[i]
            trained = [n for n in trained if n != j]
        for n in trained:
            w[n].requires_grad_()
        groups = [(trained, self.lr, self.decay)]
        if self.grouped:
            groups = [([n for n in trained if w[n].dim() >= 2], self.lr, self.decay),
                      ([n for n in trained if w[n].dim() < 2], self.lr / 2, 0)]
            groups = [g for g in groups if g[0]]
            if len(groups) == 1:
                groups[0] = (groups[0][0], self.lr, groups[0][2])
        opts, shares = [], []
        for names, lr, decay in groups:
            ps = [w[n] for n in names]
            make = {"sgd": lambda: torch.optim.SGD(ps, lr=lr, momentum=self.momentum, nesterov=self.nesterov,
                                                   weight_decay=decay),
                    "adam": lambda: torch.optim.Adam(ps, lr=lr, betas=self.betas, weight_decay=decay),
                    "adamw": lambda: torch.optim.AdamW(ps, lr=lr, betas=self.betas, weight_decay=decay),
                    "lion": lambda: Lion(ps, lr, self.betas, decay)}
            opts.append(make[self.rule]())
            shares.append(lr / self.lr)
        average = {n: w[n].detach().clone() for n in trained}
        losses, batches, self.steep = [], list(self.batches()), dict.fromkeys(w, 0.0)
        for step in range(self.steps):
            for p in trained:
                w[p].grad = None
            for part in range(self.accumulate):
                _, x, y = batches[step * self.accumulate + part]
                with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast is not None):
                    out = self.forward(w, x)
                if self.autocast:
                    out = out.float()
                loss = F.mse_loss(out, y) if self.loss == "mse" else F.cross_entropy(out.reshape(-1, self.out),
                                                                                     y.reshape(-1))
                losses.append(loss.item())
                (loss / self.accumulate).backward()
            if self.clip:
                torch.nn.utils.clip_grad_norm_([w[n] for n in trained], self.clip)
            for n in trained:
                self.steep[n] = max(self.steep[n], w[n].grad.abs().max().item())
            for opt, share in zip(opts, shares):
                if rates:
                    opt.param_groups[0]["lr"] = rates[step] * share
                opt.step()
            if self.ema:
                d, warm = self.ema
                if warm:
                    d = min(d, (2 + step) / (11 + step))
                for n in trained:
                    average[n] = d * average[n] + (1 - d) * w[n].detach()
        return w, average, losses


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, algorithm 2."""

    def __init__(self, parameters, lr, betas, decay):
        super().__init__(parameters, dict(lr=lr))
        self.betas, self.decay = betas, decay

    @torch.no_grad()
    def step(self):
        lr = self.param_groups[0]["lr"]
        for p in self.param_groups[0]["params"]:
            if p.grad is None:
                continue
            m = self.state[p].setdefault("m", torch.zeros_like(p))
            update = (self.betas[0] * m + (1 - self.betas[0]) * p.grad).sign()
            p.mul_(1 - lr * self.decay).sub_(lr * update)
            m.mul_(self.betas[1]).add_(p.grad, alpha=1 - self.betas[1])


def compare(t, started, ended, told):
    if told.get("error"):
        return told["error"]
    start = {n.split(".", 1)[1]: v for n, v in started.items() if n.startswith(f"{t.at}.")}
    w, average, losses = t.run(start, told["rates"] if t.schedule else None)
    bound = 1e-8 if t.dtype == "f64" else 0.15 if t.autocast else 2e-3
    if t.rule == "lion":                 # signs of what is nearly zero
        bound = max(bound, 2.2 * t.lr * t.steps if t.dtype == "f32" else bound)
    worst = []
    # Adam and Lion make whole steps of a gradient that is rounding alone: a bias of keys, or one before batch_norm.
    noise = {n for n, g in t.steep.items() if 0 < g < (1e-12 if t.dtype == "f64" else 1e-5) and t.rule != "sgd"}
    for n, v in w.items():
        if n in noise or noise and "running" in n:
            continue
        got = ended[f"{t.at}.model.{n}"]
        if got.shape != v.shape:
            return f"{n}: {list(got.shape)}"
        off = (got.double() - v.detach().double()).abs().max().item() if v.numel() else 0
        if not off <= bound * max(1, v.detach().abs().max().item()):
            worst.append(f"{n}: {off:.2g}")
    for n, v in average.items():
        if t.ema and n not in noise:
            off = (ended[f"{t.at}.ema.{n}"].double() - v.double()).abs().max().item()
            if not off <= bound:
                worst.append(f"average of {n}: {off:.2g}")
    off = max(abs(a - b) / max(1, abs(b)) for a, b in zip(ended[f"{t.at}.losses"].tolist(), losses))
    if not off <= bound:
        worst.append(f"losses: {off:.2g}")
    return "; ".join(worst)


def main():
    words = argparse.ArgumentParser()
    words.add_argument("rille")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--count", type=int, default=40)
    words.add_argument("--print", action="store_true")
    o = words.parse_args()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="rille-trainings-")
    made = [Training(o.seed + i, i + 1) for i in range(o.count)]
    for t in made:                       # names of parameters follow from the layers
        if t.freeze:
            names = [f"{i + 1}.weight" for i, l in enumerate(t.layers)
                     if l.lua.startswith(("nn.linear", "nn.conv", "nn.layer"))]
            t.frozen = [n for n in names[:-1] if t.rng.random() < 0.5
                        and not (t.tied and int(n.split(".")[0]) - 1 in t.tied)]
    text = "return function(T, rille, dev, nn, optim)\n" + "\n".join(t.lua() for t in made) + "\nend\n"
    if o.print:
        print(text)
    pathlib.Path(folder, "trainings_made.lua").write_text(text)
    shutil.copy(os.path.join(HERE, "trainings.lua"), folder)
    write_tensors({n + k: v for t in made for n, x, y in t.batches() for k, v in (("x", x), ("y", y))},
                  folder + "/data.safetensors")
    r = subprocess.run([os.path.abspath(o.rille), "--json", "run", folder + "/trainings.lua", "--dir", folder],
                       env=dict(os.environ, RILLE_HOME=folder + "/state", XDG_CONFIG_HOME=folder), capture_output=True,
                       text=True, timeout=900)
    assert r.returncode == 0, r.stdout[-3000:] + r.stderr[-3000:]
    told = json.loads(r.stdout)["result"]["told"]
    started, ended = read_tensors(folder + "/started.safetensors"), read_tensors(folder + "/ended.safetensors")
    bad = 0
    for t in made:
        wrong = compare(t, started, ended, told[t.at - 1])
        if wrong:
            bad += 1
            print(f"seed {t.seed} ({t.dtype}{' ' + t.autocast if t.autocast else ''}, {t.rule}, "
                  f"{'compiled' if t.compiled else 'plain'}): {wrong}")
    print(f"{o.count} trainings, {bad} differ")
    shutil.rmtree(folder)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
