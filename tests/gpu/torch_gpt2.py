#!/usr/bin/env python3
"""The peer of gpt2.lua: the same model in PyTorch, with its flash attention and fused AdamW, on the same device.

usage: torch_gpt2.py [--mode eager|compile|reduce-overhead] [--device cuda] and gpt2.lua's sizes
Prints one line of JSON with the figures that gpt2.lua gives.
"""
import argparse
import json
import os
import resource
import statistics
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "train"))
import peer


def main():
    parser = argparse.ArgumentParser()
    for name, value in {"layers": 12, "heads": 12, "width": 768, "context": 1024, "vocab": 50304, "batch": 64,
                        "warmup": 3, "steps": 10}.items():
        parser.add_argument("--" + name, type=int, default=value)
    for name, value in {"device": "cpu", "mode": "eager", "dtype": "f32"}.items():
        parser.add_argument("--" + name, default=value)
    o = parser.parse_args()
    device = o.device.split(":")[0]
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = peer.Gpt(o.layers, o.heads, o.width, o.context, o.vocab).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    x, y = (torch.randint(o.vocab, (o.batch, o.context), device=device) for _ in range(2))

    def loss_of(a, b):
        with torch.autocast(device, dtype=torch.bfloat16, enabled=o.dtype == "bf16"):
            logits = model(a)
        return F.cross_entropy(logits.float().reshape(-1, o.vocab), b.reshape(-1))

    if o.mode != "eager":
        loss_of = torch.compile(loss_of, mode=None if o.mode == "compile" else o.mode)
    times = []
    for _ in range(o.warmup + o.steps):
        began = time.perf_counter()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        times.append(time.perf_counter() - began)
    rate = o.batch * o.context / statistics.median(times[o.warmup:])
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    print(json.dumps({"result": {"figures": [
        {"name": "tokens per second", "value": rate, "unit": "tokens/s"},
        {"name": "peak memory", "value": peak / 1e6, "unit": "MB"},
    ], "torch": torch.__version__}}))


main()
