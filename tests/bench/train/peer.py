"""What PyTorch needs for the same trainings: the same models, weights and batches as train.lua, with torch's own parts.
usage: peer.py MODEL MODE WEIGHTS STEPS WARMUP [DTYPE]   MODE: eager | compile; prints one line of JSON"""
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


def case(name):
    """The model, and a batch; batches are counted numbers, so that both sides have the same without a file."""
    if name == "gpt2":
        x = (torch.arange(4 * 64).view(4, 64) * 7919) % 50257
        return Gpt(12, 12, 768, 1024, 50304), x, (x * 31 + 7) % 50257
    if name == "gpt-small":  # for a look that takes no time
        x = (torch.arange(4 * 64).view(4, 64) * 7919) % 512
        return Gpt(2, 4, 128, 64, 512), x, (x * 31 + 7) % 512
    x = (torch.arange(64 * 784).view(64, 784) % 251) / 251.0
    return Mlp(), x, torch.arange(64) % 10


def save(model, path):
    import struct
    header, at, parts = {}, 0, []
    for name, p in sorted(model.state_dict().items()):
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
    torch.manual_seed(1)
    model, x, y = case(name)
    if mode == "weights":
        return save(model, weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01,
                                  fused=mode == "compile")

    def loss_of(a, b):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bf16"):
            logits = model(a)
        return F.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), b.reshape(-1))

    if mode == "compile":
        loss_of = torch.compile(loss_of)
    losses, times = [], []
    for step in range(warmup + steps):
        began = time.perf_counter()
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
