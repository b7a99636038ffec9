#!/usr/bin/env python3
"""The workflows on small sizes, with data that is made here: what each says about itself must be so. usage:
small_test.py RILLE FOLDER NAME [DEVICE]   with DEVICE it has to say that it computed there"""
import json, os, shutil, struct, subprocess, sys, tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))
from pictures import png, png_bytes

rille, folder, name = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
device = sys.argv[4] if len(sys.argv) > 4 else None
root = tempfile.mkdtemp(prefix="rille-small-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(*words):
    global told
    r = subprocess.run([rille, "--json", "run", f"{folder}/{name}.lua", *words], env=env, capture_output=True,
                       text=True, timeout=250, cwd=root)
    assert r.returncode == 0, r.stdout + r.stderr
    result, told = json.loads(r.stdout)["result"], r.stdout + r.stderr
    assert device in (None, result.get("device")), f"it computed on {result.get('device')}, not on {device}"
    return result


def safetensors(path):
    """The header of a file of tensors."""
    data = open(path, "rb").read()
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])


if name == "nbody":
    result = run("--bodies", "300", "--steps", "40")
    assert result["drift"] < 1e-4 and result["before"] < -0.1, result
    assert run("--bodies", "300", "--steps", "40", "--dt", "0.05")["drift"] > 1e-4  # too coarse: it shows
elif name == "heat_fft":
    result = run("--size", "64", "--waves", "2", "--time", "0.05")
    assert abs(result["fading"] - result["expected"]) < 1e-5, result
    assert abs(result["mean_after"] / result["mean_before"] - 1) < 1e-5 and result["hottest"] < result["hottest_before"]
elif name == "raytrace":
    result = run("--width", "64", "--height", "40", "--samples", "1", "--out", "p.png")
    width, height, rows = png(root + "/p.png")
    assert (width, height, len(rows)) == (64, 40, 40 * (64 * 3 + 1)), (width, height, len(rows))
    pixel = lambda x, y: tuple(rows[y * 193 + 1 + 3 * x:][:3])
    assert pixel(2, 2)[2] > pixel(2, 2)[0], pixel(2, 2)          # the sky is blue
    assert pixel(18, 22)[0] > 2 * pixel(18, 22)[2], pixel(18, 22)  # the left sphere is red
    run("--width", "4000", "--height", "2", "--samples", "1", "--out", "wide.png")   # more bytes than Lua's stack has
    width, height, rows = png(root + "/wide.png")
    assert (width, height, len(rows)) == (4000, 2, 2 * (4000 * 3 + 1)), (width, height, len(rows))
elif name == "bench":
    small = ["--layers", "1", "--heads", "1", "--width", "16", "--context", "16", "--batch", "2", "--steps", "40"]
    result = run("--gpus", "cpu,B200", "--name", "tiny", *small)
    assert result["tried"] == ["cpu", "B200"] and list(result["failed"]) == ["B200"], result
    assert 'for gpu = "B200"' in result["failed"]["B200"], result
    measured = json.loads(subprocess.run([rille, "--json", "offers", "--measured"], env=env, capture_output=True,
                                         text=True, check=True).stdout)
    assert [(m["workload"], m["steps"], m["batch"], m["unit"]) for m in measured] == [("tiny", 35, 32, "tokens")]
    assert not json.loads(subprocess.run([rille, "--json", "leases"], env=env, capture_output=True, text=True).stdout)
elif name == "mlp":
    result = run("--steps", "150", "--noise", "0.2")
    assert result["accuracy"] > 0.8, result
    again = run("--steps", "150", "--noise", "0.2")
    assert [result[k] for k in ("loss", "accuracy")] == [again[k] for k in ("loss", "accuracy")]   # the same seed
elif name == "gpt2":
    # Ids that follow from the one before, as llm.c writes them; from scratch, and on from the weights of that.
    ids, value = [], 1
    for _ in range(20_000):
        value = (value * 5 + 1) % 61
        ids.append(value)
    with open(root + "/ids.bin", "wb") as file:
        file.write(struct.pack("<256i", 20240520, 1, len(ids), *[0] * 253) + struct.pack(f"<{len(ids)}H", *ids))
    small = ["--layers", "1", "--heads", "2", "--width", "32", "--context", "16", "--dtype", "f32", "--lr", "0.01"]
    result = run(*small, "--data", root + "/ids.bin", "--ids", "--vocab", "64", "--batch", "4", "--accumulate", "2",
                 "--every", "40", "--steps", "80")
    assert result["steps"] == 80 and result["validation"] < 1, result
    assert "batches of 4," in told, told        # in memory, in training and evaluation: not those of a whole step
    weights = safetensors(root + "/gpt2.safetensors")
    assert weights["tokens.weight"]["shape"] == [64, 32], weights
    # A text by a vocabulary of all bytes and one merge.
    plain = [b for b in range(256) if 32 < b < 127 or (b > 160 and b != 173)]
    rest = [b for b in range(256) if b not in plain]
    vocab = {chr(b if b in plain else 256 + rest.index(b)): b for b in range(256)}
    vocab["ab"] = 256
    json.dump({"model": {"type": "BPE", "vocab": vocab, "merges": ["a b"]}, "added_tokens": [],
               "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"}},
              open(root + "/vocabulary.json", "w"))
    open(root + "/text", "w").write("".join("abba " if i % 3 else "abacus " for i in ids))
    result = run(*small, "--data", root + "/text", "--tokenizer", root + "/vocabulary.json", "--batch", "8",
                 "--accumulate", "1", "--steps", "60")
    assert result["validation"] < 1 and len(result["sample"]) > 60, result
elif name == "resnet50":
    small = ["--depth", "18", "--width", "4", "--classes", "4", "--crop", "20", "--batch", "16", "--every", "30",
             "--dtype", "f32", "--lr", "1", "--ema", "0.9"]
    result = run(*small, "--steps", "60")
    assert result["accuracy"] > 0.8, result
    assert safetensors(root + "/resnet50.safetensors")["fc.weight"]["shape"] == [4, 32]
    # From a folder of PNG files: red ones with stripes, and blue ones. Then from shards of it.
    for i in range(128):
        kind = root + "/pictures/" + ("blue" if i % 2 else "red")
        os.makedirs(kind, exist_ok=True)
        rows = [[(40 + i, 60, 200) if i % 2 else (220, 90 if x % 5 < 2 else 10, i) for x in range(24)]
                for _ in range(24 + i % 3)]
        open(f"{kind}/{i}.png", "wb").write(png_bytes(rows))
    subprocess.run([rille, "data", "build", root + "/pictures", "--to", root + "/shards"], check=True, env=env)
    for kind in ("pictures", "shards"):
        result = run(*small, "--data", f"{root}/{kind}", "--split", "0.25", "--steps", "60")
        assert result["accuracy"] > 0.8, result
elif name == "bert":
    # Each letter fifty times in a row, so that what is hidden follows from what is seen.
    open(root + "/text", "w").write("".join(chr(97 + i * i % 97 % 13) * 50 for i in range(1000)))
    result = run("--data", root + "/text", "--layers", "1", "--heads", "2", "--width", "32", "--context", "24",
                 "--batch", "16", "--steps", "250", "--lr", "0.005", "--dropout", "0", "--dtype", "f32")
    assert result["accuracy"] > 0.6, result
shutil.rmtree(root)
print("ok")
