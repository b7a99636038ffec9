"""Llama, BERT and ResNet by hand in torch, with weights under the names that Hugging Face and torchvision give them.
Each case is (weights, inputs, a function of both that gives the logits); agree.lua makes the same models.
"""
import json, math


def normal(*shape, by=1.0):
    import torch
    return torch.randn(*shape) * by


def ids_of(batch, length, vocab):
    import torch
    return torch.arange(batch * length).view(batch, length) * 37 % vocab


# Llama: transformers' LlamaForCausalLM --------------------------------------------------------------------------------

LLAMA = {"layers": 2, "heads": 4, "kv_heads": 2, "width": 32, "hidden": 48, "vocab": 61, "eps": 1e-3, "base": 10000.0,
         "tied": False, "scaling": None, "head": 8}
SCALING = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}


def llama_weights(c):
    width, kv, head = c["width"], c["kv_heads"] * c["head"], c["heads"] * c["head"]
    w = {"model.embed_tokens.weight": normal(c["vocab"], width, by=0.3), "model.norm.weight": 1 + normal(width, by=0.1)}
    for i in range(c["layers"]):
        for name, rows, columns in (("self_attn.q_proj", head, width), ("self_attn.k_proj", kv, width),
                                    ("self_attn.v_proj", kv, width), ("self_attn.o_proj", width, head),
                                    ("mlp.gate_proj", c["hidden"], width), ("mlp.up_proj", c["hidden"], width),
                                    ("mlp.down_proj", width, c["hidden"])):
            w[f"model.layers.{i}.{name}.weight"] = normal(rows, columns, by=columns ** -0.5)
        for name in ("input_layernorm", "post_attention_layernorm"):
            w[f"model.layers.{i}.{name}.weight"] = 1 + normal(width, by=0.1)
    if not c["tied"]:
        w["lm_head.weight"] = normal(c["vocab"], width, by=width ** -0.5)
    return w


def speeds(c):
    """Of the pairs of a head; with scaling by the three ranges of wavelengths, as Llama 3.1 has them."""
    import torch
    out = []
    for j in range(c["head"] // 2):
        speed = c["base"] ** (-2 * j / c["head"])
        if c["scaling"]:
            s, length = c["scaling"], 2 * math.pi / speed
            places = s["original_max_position_embeddings"]
            if length > places / s["low_freq_factor"]:
                speed /= s["factor"]
            elif length >= places / s["high_freq_factor"]:
                share = (places / length - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])
                speed = (1 - share) * speed / s["factor"] + share * speed
        out.append(speed)
    return torch.tensor(out, dtype=torch.float64)


def llama_logits(c):
    import torch
    import torch.nn.functional as F

    def logits(w):
        x = w["model.embed_tokens.weight"][w["ids"]]
        batch, length, _ = x.shape
        angle = torch.outer(torch.arange(length).double(), speeds(c)).repeat(1, 2)

        def norm(y, name):
            return y * (y.square().mean(-1, keepdim=True) + c["eps"]).rsqrt() * w[name + ".weight"]

        def turned(y):                                             # halves, not neighbours
            a, b = y.chunk(2, -1)
            return y * angle.cos() + torch.cat((-b, a), -1) * angle.sin()

        for i in range(c["layers"]):
            def linear(y, name):
                return y @ w[f"model.layers.{i}.{name}.weight"].T
            y = norm(x, f"model.layers.{i}.input_layernorm")
            q, k, v = (linear(y, f"self_attn.{n}_proj").view(batch, length, -1, c["head"]).transpose(1, 2)
                       for n in "qkv")
            k, v = (t.repeat_interleave(c["heads"] // c["kv_heads"], 1) for t in (turned(k), v))
            scores = turned(q) @ k.transpose(-1, -2) / c["head"] ** 0.5
            scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), float("-inf"))
            x = x + linear((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1), "self_attn.o_proj")
            y = norm(x, f"model.layers.{i}.post_attention_layernorm")
            x = x + linear(F.silu(linear(y, "mlp.gate_proj")) * linear(y, "mlp.up_proj"), "mlp.down_proj")
        head = w["model.embed_tokens.weight" if c["tied"] else "lm_head.weight"]
        return norm(x, "model.norm") @ head.T

    return logits


# BERT: transformers' BertForMaskedLM ----------------------------------------------------------------------------------

BERT = {"layers": 2, "heads": 4, "width": 32, "context": 16, "vocab": 61}


def bert_weights():
    c, width = BERT, BERT["width"]
    w = {"cls.predictions.bias": normal(c["vocab"], by=0.1)}
    for name, rows in (("word", c["vocab"]), ("position", c["context"]), ("token_type", 2)):
        w[f"bert.embeddings.{name}_embeddings.weight"] = normal(rows, width, by=0.3)
    norms, linears = ["bert.embeddings.LayerNorm", "cls.predictions.transform.LayerNorm"], []
    for at in (f"bert.encoder.layer.{i}." for i in range(c["layers"])):
        norms += [at + "attention.output.LayerNorm", at + "output.LayerNorm"]
        linears += [(at + "attention.self." + n, width, width) for n in ("query", "key", "value")]
        linears += [(at + "attention.output.dense", width, width), (at + "intermediate.dense", 4 * width, width),
                    (at + "output.dense", width, 4 * width)]
    linears.append(("cls.predictions.transform.dense", width, width))
    for name in norms:
        w[name + ".weight"], w[name + ".bias"] = 1 + normal(width, by=0.1), normal(width, by=0.1)
    for name, rows, columns in linears:
        w[name + ".weight"], w[name + ".bias"] = normal(rows, columns, by=columns ** -0.5), normal(rows, by=0.1)
    return w


def bert_logits(w):
    import torch
    import torch.nn.functional as F

    def norm(y, name):
        return F.layer_norm(y, y.shape[-1:], w[name + ".weight"], w[name + ".bias"], 1e-12)

    def linear(y, name):
        return y @ w[name + ".weight"].T + w[name + ".bias"]

    batch, length = w["ids"].shape
    embeddings = "bert.embeddings."
    words = w[embeddings + "word_embeddings.weight"]
    x = norm(words[w["ids"]] + w[embeddings + "position_embeddings.weight"][:length] +
             w[embeddings + "token_type_embeddings.weight"][w["segments"]], embeddings + "LayerNorm")
    hidden = (torch.arange(length) >= w["lengths"][:, None])[:, None, None]
    for i in range(BERT["layers"]):
        at = f"bert.encoder.layer.{i}."
        q, k, v = (linear(x, at + "attention.self." + n).view(batch, length, BERT["heads"], -1).transpose(1, 2)
                   for n in ("query", "key", "value"))
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(hidden, float("-inf"))
        seen = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1)
        x = norm(x + linear(seen, at + "attention.output.dense"), at + "attention.output.LayerNorm")
        x = norm(x + linear(F.gelu(linear(x, at + "intermediate.dense")), at + "output.dense"), at + "output.LayerNorm")
    x = norm(F.gelu(linear(x, "cls.predictions.transform.dense")), "cls.predictions.transform.LayerNorm")
    return x @ words.T + w["cls.predictions.bias"]


def old_names(w):
    """As bert-base-uncased is published."""
    return {n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t
            for n, t in w.items()}


# ResNet: torchvision's ------------------------------------------------------------------------------------------------

DEPTHS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}


def resnet_blocks(depth, width):
    """(name, inputs, width, outputs, stride) of each."""
    inputs = width
    for stage, blocks in enumerate(DEPTHS[depth]):
        for i in range(blocks):
            outputs = width * (1 if depth < 50 else 4)
            yield f"layer{stage + 1}.{i}.", inputs, width, outputs, 2 if i == 0 and stage > 0 else 1
            inputs = outputs
        width *= 2


def resnet_weights(depth, width=8, classes=10):
    import torch
    w = {}

    def conv(at, name, norm, inputs, outputs, size, scale=1.0):
        w[f"{at}{name}.weight"] = normal(outputs, inputs, size, size, by=(2 / (inputs * size * size)) ** 0.5)
        w[f"{at}{norm}.weight"] = scale * (1 + normal(outputs, by=0.1))
        w[f"{at}{norm}.bias"] = normal(outputs, by=0.1)
        w[f"{at}{norm}.running_mean"] = normal(outputs, by=0.1)
        w[f"{at}{norm}.running_var"] = torch.rand(outputs) + 0.5
        w[f"{at}{norm}.num_batches_tracked"] = torch.tensor(7)

    conv("", "conv1", "bn1", 3, width, 7)
    outputs = width
    for at, inputs, inner, outputs, stride in resnet_blocks(depth, width):
        sizes = [(inputs, inner, 3), (inner, inner, 3)] if depth < 50 else \
            [(inputs, inner, 1), (inner, inner, 3), (inner, outputs, 1)]
        for n, (a, b, size) in enumerate(sizes, 1):
            conv(at, f"conv{n}", f"bn{n}", a, b, size, 0.3 if n == len(sizes) else 1.0)
        if stride != 1 or inputs != outputs:
            conv(at, "downsample.0", "downsample.1", inputs, outputs, 1)
    w["fc.weight"], w["fc.bias"] = normal(classes, outputs, by=outputs ** -0.5), normal(classes, by=0.1)
    return w


def resnet_logits(depth, width=8):
    import torch.nn.functional as F

    def logits(w):
        def conv(x, at, name, norm, stride=1):
            weight = w[f"{at}{name}.weight"]
            y = F.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)
            return F.batch_norm(y, *(w[f"{at}{norm}.{n}"] for n in ("running_mean", "running_var", "weight", "bias")))

        x = F.max_pool2d(conv(w["images"], "", "conv1", "bn1", 2).relu(), 3, 2, 1)
        for at, _, _, _, stride in resnet_blocks(depth, width):
            y = conv(x, at, "conv1", "bn1", stride if depth < 50 else 1).relu()
            y = conv(y, at, "conv2", "bn2", 1 if depth < 50 else stride)
            if depth >= 50:
                y = conv(y.relu(), at, "conv3", "bn3")
            if at + "downsample.0.weight" in w:
                x = conv(x, at, "downsample.0", "downsample.1", stride)
            x = (y + x).relu()
        return F.linear(x.mean((2, 3)), w["fc.weight"], w["fc.bias"])

    return logits


# ----------------------------------------------------------------------------------------------------------------------

def cases():
    import torch
    torch.manual_seed(11)
    out = {}
    for name, more in {"untied": {"base": 500000.0}, "tied": {"tied": True},
                       "scaled": {"base": 100.0, "scaling": SCALING},
                       "wide heads": {"head": 16, "kv_heads": 1}}.items():
        c = LLAMA | more
        out["llama " + name] = llama_weights(c), {"ids": ids_of(2, 40, c["vocab"])}, llama_logits(c)
    asked = {"ids": ids_of(2, 12, BERT["vocab"]), "segments": ids_of(2, 12, 2), "lengths": torch.tensor([7, 12])}
    out["bert"] = bert_weights(), asked, bert_logits
    out["bert old names"] = bert_weights(), asked, bert_logits
    for depth in DEPTHS:
        out[f"resnet {depth}"] = resnet_weights(depth), {"images": torch.randn(2, 3, 64, 48)}, resnet_logits(depth)
    return out


def save(write, folder, name, weights):
    """One file; of "llama untied" two shards and their index, in a folder."""
    import pathlib
    if name == "bert old names":
        weights = old_names(weights)
    path = pathlib.Path(folder, name)
    if name != "llama untied":
        return write(weights, f"{path}.safetensors")
    path.mkdir()
    names = sorted(weights)
    index = {n: f"model-{1 + (i >= len(names) // 2):05}-of-00002.safetensors" for i, n in enumerate(names)}
    for file in set(index.values()):
        write({n: weights[n] for n in names if index[n] == file}, str(path / file))
    size = sum(t.numel() * t.element_size() for t in weights.values())
    whole = {"metadata": {"total_size": size}, "weight_map": index}
    (path / "model.safetensors.index.json").write_text(json.dumps(whole))
