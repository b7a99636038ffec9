"""Python's safetensors reads what we write, we read what it writes, and both refuse the same damaged files.

Usage: peer.py PEER_PROGRAM, with a Python that has safetensors and numpy (tests/requirements.txt).
"""
import pathlib
import subprocess
import sys
import tempfile


def main(program, folder):
    import numpy
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load_file, save_file

    # Ours, read by Python.
    ours = folder / "ours.safetensors"
    subprocess.run([program, "write", ours], check=True)
    tensors = load_file(ours)
    assert sorted(tensors) == ["empty", "f16", "mask", "matrix", 'na"me/é', "scalar"], sorted(tensors)
    assert tensors["matrix"].dtype == numpy.float32
    assert (tensors["matrix"] == numpy.arange(12, dtype=numpy.float32).reshape(3, 4)).all()
    assert tensors["scalar"].shape == () and tensors["scalar"] == -(2**62)
    assert tensors["empty"].shape == (0, 7)
    assert (tensors["f16"] == numpy.array([1.0, -2.0], dtype=numpy.float16)).all()
    assert (tensors["mask"] == numpy.array([True, False, True])).all()
    with safe_open(ours, framework="numpy") as f:
        assert f.metadata() == {"format": "rille", "quote": 'a"b'}, f.metadata()

    # Python's, read by us: prints "name dtype shape hex" per tensor.
    theirs = folder / "theirs.safetensors"
    rng = numpy.random.default_rng(1)
    saved = {f"t{i}.{d}": (rng.random(s) * 100).astype(d)
             for i, d in enumerate(["float64", "float32", "float16", "int64", "uint8", "bool", "uint16", "int8",
                                    "uint64"])
             for s in [(), (5,), (2, 3, 4), (0, 3)][i % 4:][:1]}
    save_file(saved, theirs, metadata={"who": "python"})
    names = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "uint8": "U8", "bool": "BOOL",
             "uint16": "U16", "int8": "I8", "uint64": "U64"}
    expected = sorted(f"{n} {names[str(a.dtype)]} {list(a.shape)} {a.tobytes().hex()}".replace(" ", "|") for n,
                      a in saved.items())
    shown = subprocess.run([program, "read", theirs], check=True, capture_output=True,
                           text=True).stdout.split("\n")[:-1]
    assert sorted(shown) == expected, (shown, expected)

    # Damage: each changed file is either read by both or refused by both.
    good = theirs.read_bytes()
    verdicts = {True: 0, False: 0}
    for i in range(400):
        bad = bytearray(good)
        kind = i % 4
        at = int(rng.integers(8 + int.from_bytes(good[:8], "little")))
        if kind == 0: bad[at] ^= 1 << int(rng.integers(8))
        elif kind == 1: bad = bad[:int(rng.integers(len(bad)))]
        elif kind == 2: bad[at] = int(rng.choice(list(b'0123456789"{}[],: ')))
        else: bad += bytes(int(rng.integers(0, 3)))
        (folder / "bad").write_bytes(bad)
        try:
            with safe_open(folder / "bad", framework="numpy") as f:
                f.keys()
            theirs_ok = True
        except (SafetensorError, ValueError, OSError):
            theirs_ok = False
        ours_ok = subprocess.run([program, "read", folder / "bad"], capture_output=True).returncode == 0
        verdicts[ours_ok] += 1
        # We are stricter in one thing: a name that is there twice, and unknown members of an entry.
        if ours_ok != theirs_ok:
            text = subprocess.run([program, "read", folder / "bad"], capture_output=True, text=True).stderr
            assert not ours_ok and ("twice" in text or "type" in text or "members" in text), (i, ours_ok, theirs_ok,
                                                                                              text, bytes(bad[:300]))
    assert verdicts[True] > 20 and verdicts[False] > 100, verdicts
    print("ok", verdicts)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(sys.argv[1], pathlib.Path(temporary))
