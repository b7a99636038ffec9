"""torch.distributed.checkpoint and safetensors' own functions read what `rille checkpoint convert` writes.

usage: peer.py RILLE PEER_CONVERT, with a Python that has torch and safetensors (tests/requirements-torch.txt).
"""
import json
import os
import subprocess
import sys
import tempfile

SCRIPT = """
local rille = require "rille"
local args = rille.args { dir = "" }
local dev = rille.device "cpu"
local model = rille.nn.gpt { layers = 2, heads = 2, width = 32, context = 16, vocab = 97, seed = 1 }
local half = rille.nn.linear(5, 3, { seed = 2 }):to("bf16")
local opt = rille.optim.adamw(model:parameters(), { lr = 1e-2 })
model(dev:zeros { 2, 16, dtype = "i64" }):cross_entropy(dev:ones { 2, 16, dtype = "i64" }):backward()
opt:step()
local state = { model = model, optimizer = opt, half = half }
rille.checkpoint.save(state, { directory = args.dir, step = 3 })
half = rille.nn.linear(5, 3, { seed = 3 }):to("bf16")
rille.checkpoint.save({ model = model, optimizer = opt, half = half }, { directory = args.dir, step = 4 })
"""


def read_by_torch(folder, expected):
    """Loads the folder into tensors of zeros, by torch's reader of the hub's layout."""
    import torch
    import torch.distributed.checkpoint as dcp
    state = {name: torch.zeros_like(tensor) for name, tensor in expected.items()}
    dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(path=folder))
    for name, tensor in expected.items():
        assert state[name].dtype == tensor.dtype and torch.equal(state[name], tensor), name


def main(rille, peer_convert, folder):
    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file

    env = dict(os.environ, RILLE_HOME=folder + "/home", XDG_CONFIG_HOME=folder + "/config", RILLE_THREADS="1")
    with open(folder + "/save.lua", "w") as file:
        file.write(SCRIPT)

    def run(*words):
        subprocess.run([rille, *words], env=env, check=True, capture_output=True, timeout=300)

    run("run", folder + "/save.lua", f"--dir={folder}/from")
    parts = {part: load_file(f"{folder}/from/latest/{part}.safetensors") for part in ("model", "optimizer", "half")}
    expected = {(name if part == "model" else f"{part}.{name}"): tensor for part, tensors in parts.items()
                for name, tensor in tensors.items()}
    assert len(expected) > 30 and expected["half.weight"].dtype == torch.bfloat16, sorted(expected)

    for step in (3, 4):
        for name in os.listdir(f"{folder}/from/step-{step:08}"):
            assert name == "manifest.json" or len(load_file(f"{folder}/from/step-{step:08}/{name}")) > 1, name
    run("checkpoint", "convert", folder + "/from", folder + "/hub")
    read_by_torch(folder + "/hub", expected)
    subprocess.run([peer_convert, f"{folder}/from/step-00000004", folder + "/shards", "20000"], check=True)
    names = sorted(n for n in os.listdir(folder + "/shards") if n.endswith(".safetensors"))
    count = len(names)
    assert count > 5 and names[2] == f"model-00003-of-{count:05}.safetensors", names
    read_by_torch(folder + "/shards", expected)
    with open(folder + "/shards/model.safetensors.index.json") as file:
        index = json.load(file)
    for name, shard in index["weight_map"].items():
        with safe_open(f"{folder}/shards/{shard}", framework="pt") as opened:
            assert torch.equal(opened.get_tensor(name), expected[name]), name
    assert sorted(index["weight_map"]) == sorted(expected)
    assert index["metadata"]["total_size"] == sum(t.numel() * t.element_size() for t in expected.values()), index

    run("checkpoint", "convert", folder + "/from", folder + "/all.safetensors")
    merged = load_file(folder + "/all.safetensors")
    assert sorted(merged) == sorted(expected) and all(torch.equal(merged[n], t) for n, t in expected.items())
    print(f"{len(expected)} tensors in {count} files, and in one, read by torch {torch.__version__}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), temporary)
