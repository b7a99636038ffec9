#!/usr/bin/env python3
"""Tokenizer files of several shapes give the ids and the texts that Hugging Face's tokenizers gave, without that
library: tests/peer/tokenizers/peer.py --golden has made the files. usage: tokenizers_test.py RILLE"""
import glob, os, sys

from golden import Home, here

failures, n = 0, 0
home = Home(sys.argv[1])
for path in sorted(glob.glob(here + "/tokenizers/*.tokenizer")):
    rows = [line.split("\t") for line in open(path[:-len("tokenizer")] + "cases").read().split("\n")[:-1]]
    cases, out = home.root + "/cases", home.root + "/answers"
    open(cases, "w").write("".join(case + "\n" for case, _ in rows))
    home.result("run", here + "/tokenizers.lua", "--tokenizer", path, "--cases", cases, "--out", out)
    got = open(out).read().split("\n")[:-1]
    bad = [i for i in range(len(rows)) if i >= len(got) or got[i] != rows[i][1]]
    n += 1
    failures += bool(bad) or not rows
    print(f"{'not ok' if bad or not rows else 'ok'} {n} - {os.path.basename(path)}: {len(rows)} cases")
    for i in bad[:3]:
        print(f"# {rows[i][0]}\n#   got      {got[i:i + 1]}\n#   expected {rows[i][1]}")
home.remove()
print(f"1..{n}")
sys.exit(failures != 0 or n == 0)
