#!/usr/bin/env python3
"""A GPT-2 and a Llama whose weights Python's safetensors wrote give the logits that transformers computed of them, to
1e-4; and what Rille writes of the same tensors reads as they are. Needs neither torch nor any package: make_weights.py
has made the files. usage: weights_test.py RILLE"""
import json, struct, sys

from golden import Home, here

folder = here + "/weights"
TOLERANCE = 1e-4


def tensors(path):
    """Name -> (type, shape, bytes): the format in ten lines, github.com/huggingface/safetensors#format."""
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    metadata = header.pop("__metadata__", None)
    ends = sorted(t["data_offsets"] for t in header.values())
    assert ends[0][0] == 0 and ends[-1][1] == len(data) - 8 - n, "the data fill the file"
    assert all(a[1] == b[0] for a, b in zip(ends, ends[1:])), "without gaps"
    return metadata, {name: (t["dtype"], t["shape"], data[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]])
                      for name, t in header.items()}


def main():
    facts = json.load(open(folder + "/logits.json"))
    home = Home(sys.argv[1])
    failures, n = 0, 0

    def check(good, what):
        nonlocal failures, n
        n += 1
        failures += not good
        print(f"{'ok' if good else 'not ok'} {n} - {what}")

    ids = ";".join(",".join(map(str, row)) for row in facts["ids"])
    shape = [len(facts["ids"]), len(facts["ids"][0])]
    for name in ("gpt2", "llama"):
        given, written = f"{folder}/{name}.safetensors", f"{home.root}/{name}.safetensors"
        result = home.result("run", here + "/weights.lua", "--model", name, "--weights", given, "--ids", ids, "--out",
                             written)
        expected = facts[name]
        check(result["shape"][:2] == shape and len(result["logits"]) == len(expected), f"{name}: logits of every place")
        apart = max(abs(a - b) for a, b in zip(result["logits"], expected))
        check(apart <= TOLERANCE < max(map(abs, expected)), f"{name}: logits {apart:.1e} from those of torch")
        check(tensors(written) == tensors(given), f"{name}: written again it reads the same")
    home.remove()
    print(f"1..{n}")
    sys.exit(failures != 0)


main()
