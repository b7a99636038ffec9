#!/usr/bin/env python3
"""The quickstart on a small text and model: it ends well, learns, repeats itself bit for bit, leaves nothing behind.

usage: quickstart_test.py RILLE SCRIPT
"""
import os, re, subprocess, sys, tempfile


def main():
    rille, script = map(os.path.abspath, sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="rille-quickstart-") as home:
        env = dict(os.environ, RILLE_HOME=home + "/state", XDG_CONFIG_HOME=home + "/config", NO_COLOR="1")
        text = home + "/text.txt"
        with open(text, "w") as file:
            value = 1
            for _ in range(12_000):  # the next byte follows from the last two, which a bigram model cannot see
                value = value * 48271 % 2147483647
                file.write("abcx " if value % 2 else "cbay ")

        def run(*words, expect=0):
            done = subprocess.run([rille, *words], env=env, cwd=home, capture_output=True, text=True, timeout=280)
            output = done.stdout + done.stderr
            assert done.returncode == expect, f"{words}: exit code {done.returncode}\n{output}"
            return output

        small = ["--layers", "1", "--heads", "2", "--width", "32", "--context", "16", "--batch", "8", "--lr", "0.005"]
        command = ["run", script, "--data", text, "--steps", "120", "--seed", "7", *small]
        first, second = run(*command), run(*command)
        losses = re.findall(r"^step +\d+  loss (\S+)$", first, re.M)
        assert len(losses) == 13, first
        assert float(losses[-1]) < float(losses[0]) / 3, f"the loss does not fall: {losses}"
        assert re.search(r"^device: (cpu|cuda:\d+), .+", first, re.M), first
        for pattern in (r"^step .*", r"^final loss .*", r"^validation loss .*", r"^sample: .*"):
            assert re.findall(pattern, first, re.M) == re.findall(pattern, second,
                                                                  re.M) != [], f"{pattern} differs between runs"
        assert "beaten" in first and "not beaten" not in first, first
        assert sorted(os.listdir(home + "/out")) == ["manifest.json", "model.safetensors",
                                                     "optimizer.safetensors"], os.listdir(home + "/out")
        other = run(*[w if w != "7" else "8" for w in command])
        assert re.findall(r"^step .*", other, re.M) != re.findall(r"^step .*", first,
                                                                  re.M), "another seed, the same losses"

        assert "did you mean --steps" in run("run", script, "--stesp", "3", expect=2)
        assert "nowhere.txt" in run("run", script, "--data", home + "/nowhere.txt", expect=1)
        assert "nothing is rented" in run("leases")
    print("ok - quickstart")


main()
