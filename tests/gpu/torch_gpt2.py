#!/usr/bin/env python3
"""The peer of gpt2.lua: the same model in PyTorch, with its flash attention and fused AdamW, on the same device.

usage: torch_gpt2.py [--mode eager|compile|reduce-overhead] [--device cuda] and gpt2.lua's sizes
Prints one line of JSON with the figures that gpt2.lua gives, and in `peer` what ran: torch's version, the mode of
torch.compile, and the backend of attention: on CUDA in bf16 flash, forced, where torch has it.
"""
import argparse
import contextlib
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


COMPILED = {"compile": "default", "reduce-overhead": "reduce-overhead"}  # torch.compile's modes; eager: none


def attention_of(device, dtype, width):
    """(which backend attention uses, what forces it). Flash takes half types on CUDA; otherwise torch chooses."""
    if device != "cuda" or dtype != "bf16":
        return "torch's choice", contextlib.nullcontext()
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        x = torch.ones(1, 1, 16, width, device=device, dtype=torch.bfloat16)
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # with no other allowed, it is an error where flash cannot serve
            F.scaled_dot_product_attention(x, x, x, is_causal=True)
        return "flash, forced", sdpa_kernel(SDPBackend.FLASH_ATTENTION)
    except (ImportError, RuntimeError) as error:
        return f"torch's choice, for flash could not be forced: {error}"[:200], contextlib.nullcontext()


def main():
    parser = argparse.ArgumentParser()
    for name, value in {"layers": 12, "heads": 12, "width": 768, "context": 1024, "vocab": 50304, "batch": 64,
                        "warmup": 3, "steps": 10}.items():
        parser.add_argument("--" + name, type=int, default=value)
    for name, value in {"device": "cpu", "dtype": "f32"}.items():
        parser.add_argument("--" + name, default=value)
    parser.add_argument("--mode", default="eager", choices=["eager", *COMPILED])
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
        loss_of = torch.compile(loss_of, mode=COMPILED[o.mode])
    attention, forced = attention_of(device, o.dtype, o.width // o.heads)
    times = []
    with forced:
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
    ], "peer": {"torch": torch.__version__, "torch.compile": COMPILED.get(o.mode, "not used"), "attention": attention,
                "matmul precision": "high"}}}))


main()
