#!/usr/bin/env python3
"""Rille's tokenizer beside Hugging Face's tokenizers and OpenAI's tiktoken (from PyPI): the same ids for the same
texts, and how fast. Vocabularies are trained here, so that no model has to be fetched.
usage: tokenizer_peer.py RILLE TEXT_FILE.. (needs `tokenizers` and `tiktoken`; run it with a Python that has them)"""
import base64, json, os, random, subprocess, sys, tempfile, time

from tokenizers import Tokenizer, Regex, decoders, models, pre_tokenizers, trainers
import tiktoken

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
SCRIPT = """local rille = require "rille"
local args = rille.args { tokenizer = "", texts = "", pattern = "", out = "" }
return rille.step("encode", { args = args }, function()
  local native = require "rille.native"
  local t = rille.data.tokenizer(args.tokenizer, { pattern = args.pattern ~= "" and args.pattern or nil })
  local f = assert(io.open(args.texts, "rb"))
  local all = f:read("*a")
  f:close()
  local out, at, n, took = assert(io.open(args.out, "w")), 1, 0, 0
  while at <= #all do  -- each text: its length in a line, then its bytes
    local stop = all:find("\\n", at, true)
    local size = tonumber(all:sub(at, stop - 1))
    local text = all:sub(stop + 1, stop + size)
    local began = native.clock()
    local ids = t:encode(text, { special = true })
    took, n, at = took + native.clock() - began, n + #ids, stop + size + 1
    if t:decode(ids) ~= text then error("decode") end
    out:write(table.concat(ids, " "), "\\n")
  end
  out:close()
  return { seconds = took, ids = n, size = t.size }
end)
"""


def main():
    rille, files = os.path.abspath(sys.argv[1]), sys.argv[2:]
    home = tempfile.mkdtemp(prefix="rille-tokens-")
    texts = [open(f, encoding="utf-8", errors="replace").read() for f in files]
    rng = random.Random(1)
    alphabet = "ab eE 01 ,.!'\n\r\t \u00e9\u4e2d\u0301\U0001f600\u00a0\u2028<|>_" + "s't're've'll'd "
    odd = ["".join(rng.choice(alphabet) for _ in range(rng.randrange(0, 60))) for _ in range(2000)]
    odd += ["", " ", "\n\n\n", "a" * 5000, "hello<|endoftext|>there <|endoftext|>", "  lead", "trail  "]
    cases = texts + odd
    path = home + "/texts"
    with open(path, "wb") as f:
        for text in cases:
            data = text.encode()
            f.write(str(len(data)).encode() + b"\n" + data)
    open(home + "/t.lua", "w").write(SCRIPT)
    env = dict(os.environ, RILLE_HOME=home + "/home")

    def ours(tokenizer, pattern=""):
        out = subprocess.run([rille, "--json", "run", home + "/t.lua", "--tokenizer", tokenizer, "--texts", path,
                              "--out", home + "/ids", "--pattern", pattern], env=env, capture_output=True, text=True)
        if out.returncode:
            sys.exit(out.stdout + out.stderr)
        ids = [[int(n) for n in line.split()] for line in open(home + "/ids").read().split("\n")[:-1]]
        return ids, json.loads(out.stdout)["result"]

    def compare(name, got, wanted, mine_s, peer_s):
        bad = [i for i in range(len(cases)) if got[i] != wanted[i]]
        for i in bad[:3]:
            print(f"not ok - {name}: {cases[i][:80]!r}\n#   rille {got[i][:40]}\n#   peer  {wanted[i][:40]}")
        print(f"{'not ok' if bad else 'ok'} - {name}: {len(cases)} texts, {len(bad)} differ; "
              f"{mine_s * 1e3:.0f} ms, peer {peer_s * 1e3:.0f} ms, ratio {mine_s / peer_s:.2f}")
        return not bad

    good = True
    for name, pre in {"gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False),
                      "llama3": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                                         pre_tokenizers.ByteLevel(add_prefix_space=False,
                                                                                  use_regex=False)])}.items():
        peer = Tokenizer(models.BPE())
        peer.pre_tokenizer, peer.decoder = pre, decoders.ByteLevel()
        peer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=4000, special_tokens=["<|endoftext|>"],
                                                            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        folder = f"{home}/{name}"
        os.makedirs(folder)
        peer.save(folder + "/tokenizer.json")
        began = time.perf_counter()
        wanted = [peer.encode(text).ids for text in cases]
        peer_s = time.perf_counter() - began
        got, result = ours(folder)
        good &= compare(f"tokenizers, {name}", got, wanted, result["seconds"], peer_s)
        if name != "llama3":
            peer.model.save(folder)
            os.remove(folder + "/tokenizer.json")
            good &= compare("vocab.json and merges.txt", ours(folder)[0], wanted, result["seconds"], peer_s)
    # tiktoken's own educational trainer is slow; its ranks are made of the vocabulary above.
    letters = {}
    n = 0
    for b in range(256):
        shown = 33 <= b <= 126 or 161 <= b <= 172 or b >= 174
        letters[chr(b if shown else 256 + n)] = b
        n += 0 if shown else 1
    vocab = {t: i for t, i in peer.get_vocab().items() if t != "<|endoftext|>"}
    ranks = {bytes(letters[c] for c in t): i for i, (t, _) in enumerate(sorted(vocab.items(), key=lambda kv: kv[1]))}
    open(home + "/v.tiktoken", "w").write("".join(f"{base64.b64encode(t).decode()} {i}\n" for t, i in ranks.items()))
    other = tiktoken.Encoding("x", pat_str=LLAMA3, mergeable_ranks=ranks, special_tokens={})
    began = time.perf_counter()
    wanted = [other.encode_ordinary(text) for text in cases]
    peer_s = time.perf_counter() - began
    got, result = ours(home + "/v.tiktoken", "llama3")
    good &= compare("tiktoken, cl100k's pattern", got, wanted, result["seconds"], peer_s)
    sys.exit(0 if good else 1)


main()
