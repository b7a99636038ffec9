"""PyTorch's side of tests/bench/operations: reads a case as a line of JSON, answers {seconds, shape} or {error}.
usage: operations_peer.py THREADS ROUNDS"""
import json, sys, time

import torch
import torch.nn.functional as F

TYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "i64": torch.int64}


def operand(given, dtype):
    shape = [int(n) for n in given["shape"]]
    if given.get("chance"):
        return torch.rand(shape) < given["chance"]
    if given.get("distinct"):
        order = torch.rand(shape).argsort()
        return order if given["places"] else order.to(dtype)
    if given.get("ids"):
        ids = torch.randint(int(given.get("from", 0)), int(given["ids"]), shape)
        return ids if dtype.is_floating_point else ids.to(dtype)
    low, high = given.get("low", -2), given.get("high", 2)
    return (torch.rand(shape) * (high - low) + low).to(dtype)


def measure(case, rounds):
    dtype = TYPES[case["type"]]
    names = dict(zip("xyzw", (operand(one, dtype) for one in case["inputs"])), torch=torch, F=F, dt=dtype,
                 n=int(case.get("count") or 0))
    run = eval("lambda: " + case["torch"], names)
    run()
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - began)
    first = result if torch.is_tensor(result) else result[0]
    return {"seconds": best, "shape": "x".join(str(n) for n in first.shape) or "number"}


torch.set_num_threads(int(sys.argv[1]))
with torch.no_grad():
    for line in sys.stdin:
        try:
            answer = measure(json.loads(line), int(sys.argv[2]))
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        print(json.dumps(answer), flush=True)
