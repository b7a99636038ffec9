#!/usr/bin/env python3
"""The workflows that need no data, on small sizes: what each says about itself must be so. usage: small_test.py RILLE
FOLDER NAME"""
import json, os, shutil, struct, subprocess, sys, tempfile, zlib

rille, folder, name = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
root = tempfile.mkdtemp(prefix="rille-small-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(*words):
    r = subprocess.run([rille, "--json", "run", f"{folder}/{name}.lua", *words], env=env, capture_output=True,
                       text=True, timeout=250, cwd=root)
    assert r.returncode == 0, r.stdout + r.stderr
    return json.loads(r.stdout)["result"]


def png(path):
    """Size and pixels of a picture without interlacing and filters; every checksum is checked."""
    data = open(path, "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
        parts[kind] = body
        at += 12 + size
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    return width, height, zlib.decompress(parts[b"IDAT"])


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
elif name == "mlp":
    result = run("--steps", "150", "--noise", "0.2")
    assert result["accuracy"] > 0.8, result
    assert result == run("--steps", "150", "--noise", "0.2")     # the same seed, the same bits
shutil.rmtree(root)
print("ok")
