"""What PyTorch needs for the same trainings: the same models, weights and batches as train.lua, with torch's own parts.
usage: peer.py MODEL MODE WEIGHTS STEPS WARMUP [DTYPE [RATE]]   MODE: eager | compile; prints one line of JSON"""
import json, math, resource, sys, time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, causal=True):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(x).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.fc, self.proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.proj(F.gelu(self.fc(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """Rille's nn.gpt { tied = true }, by its names."""

    def __init__(self, layers, heads, width, context, vocab):
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.positions = nn.Parameter(torch.zeros(context, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions, std=0.01)
        for name, p in self.named_parameters():
            if name.endswith("weight") and p.dim() == 2 and "tokens" not in name:
                deep = name.endswith(("out.weight", "proj.weight"))
                nn.init.normal_(p, std=0.02 / (math.sqrt(2 * layers) if deep else 1))
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(784, 128), nn.Linear(128, 10)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


class ResidualBlock(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = None
        if stride != 1 or inputs != 4 * width:
            self.downsample = nn.ModuleList([nn.Conv2d(inputs, 4 * width, 1, stride, bias=False),
                                             nn.BatchNorm2d(4 * width)])

    def forward(self, x):
        y = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        y = self.bn3(self.conv3(y))
        if self.downsample is not None:
            x = self.downsample[1](self.downsample[0](x))
        return F.relu(y + x)


class Resnet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.layers, inputs = nn.ModuleList(), 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            width = 64 << stage
            self.layers.append(nn.ModuleList(
                ResidualBlock(inputs if i == 0 else 4 * width, width, 2 if i == 0 and stage else 1)
                for i in range(blocks)))
            inputs = 4 * width
        self.fc = nn.Linear(inputs, 1000)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, ResidualBlock):
                nn.init.zeros_(m.bn3.weight)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for stage in self.layers:
            for block in stage:
                x = block(x)
        return self.fc(x.mean((2, 3)))


class BertAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (f(x).view(b, t, self.heads, c // self.heads).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c))


class BertBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = BertAttention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.fc, self.proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.proj(F.gelu(self.fc(x))))


class BertHead(nn.Module):
    def __init__(self, width, vocab):
        super().__init__()
        self.fc, self.norm = nn.Linear(width, width), nn.LayerNorm(width, 1e-12)
        self.bias = nn.Parameter(torch.zeros(vocab))


class Bert(nn.Module):
    """Rille's nn.bert, by its names."""

    def __init__(self, layers=12, heads=12, width=768, context=512, vocab=30522):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.segments, self.norm = nn.Embedding(2, width), nn.LayerNorm(width, 1e-12)
        self.blocks = nn.ModuleList(BertBlock(width, heads) for _ in range(layers))
        self.head = BertHead(width, vocab)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]] + self.segments.weight[0]
        x = self.norm(x)
        for block in self.blocks:
            x = block(x)
        x = self.head.norm(F.gelu(self.head.fc(x)))
        return F.linear(x, self.tokens.weight, self.head.bias)


def case(name):
    """The model, and a batch; batches are counted numbers, so that both sides have the same without a file."""
    if name == "gpt2":
        x = (torch.arange(4 * 64).view(4, 64) * 7919) % 50257
        return Gpt(12, 12, 768, 1024, 50304), x, (x * 31 + 7) % 50257
    if name == "gpt-small":  # for a look that takes no time
        x = (torch.arange(4 * 64).view(4, 64) * 7919) % 512
        return Gpt(2, 4, 128, 64, 512), x, (x * 31 + 7) % 512
    if name in ("bert", "bert-small"):
        sizes, b, t = ((), 4, 128) if name == "bert" else ((2, 4, 64, 32, 512), 2, 16)
        x = (torch.arange(b * t).view(b, t) * 7919) % (30522 if name == "bert" else 512)
        return Bert(*sizes), x, (x * 31 + 7) % (30522 if name == "bert" else 512)
    if name == "resnet50":
        i = torch.arange(8 * 3 * 224 * 224)  # noise
        x = ((i * i * 40503 + i * 2654435) % 65521 / 32760.5 - 1).view(8, 3, 224, 224)
        return Resnet50(), x, (torch.arange(8) * 37) % 1000
    x = (torch.arange(64 * 784).view(64, 784) % 251) / 251.0
    return Mlp(), x, torch.arange(64) % 10


def save(model, path):
    import struct
    header, at, parts = {}, 0, []
    for name, p in sorted(model.state_dict().items()):
        if p.dtype != torch.float32:  # how many batches a norm has seen
            continue
        data = p.detach().contiguous().numpy().tobytes()
        # Rille's lists count from 1.
        words = [str(int(w) + 1) if w.isdigit() else w for w in name.split(".")]
        header[".".join(words)] = {"dtype": "F32", "shape": list(p.shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def main():
    name, mode, weights, steps, warmup = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    dtype = sys.argv[6] if len(sys.argv) > 6 else "f32"
    rate = float(sys.argv[7]) if len(sys.argv) > 7 else 3e-4
    torch.manual_seed(1)
    model, x, y = case(name)
    if mode == "weights":
        return save(model, weights)
    if dtype == "f64":  # the arbiter between two trainings in f32
        model, x = model.double(), x.double() if x.is_floating_point() else x
    fused = mode == "compile"
    if name == "resnet50":
        optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4, fused=fused)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01,
                                      fused=fused)

    def loss_of(a, b):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bf16"):
            logits = model(a)
        logits = logits if dtype == "f64" else logits.float()
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), b.reshape(-1))

    if mode == "compile":
        loss_of = torch.compile(loss_of)
    losses, times = [], []
    for step in range(warmup + steps):
        began = time.perf_counter()
        if name == "resnet50":
            optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / 20)
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        times.append(time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"losses": losses, "seconds": times[warmup:], "peak_rss_bytes": peak, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
