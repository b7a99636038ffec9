"""Rille and Hugging Face's tokenizers make the same ids of the same texts, and the same texts of the same ids, by
tokenizer files of the shapes that models come with.

Usage: peer.py RILLE [--few] [--golden FOLDER], with a Python that has tokenizers (tests/requirements.txt). --few: a
fifth of the texts. --golden: writes a few small files and answers for tests/golden/tokenizers_test.py instead.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = ["llama2", "mistral", "metaspace", "gemma", "unknown", "bytes, splits"]


ALPHABET = list("aeinorst bcd THE 0123 .,!'\n\r\t$$<|>_\"\\") + ["\u00e9", "\u00df", "\u4e2d", "\u6587", "\u0301",
    "\U0001f600", "\u00a0", "\u2028", "\u3000", "\u2581", "\ufffd", "\x00", "\x7f", "\u0130", "\U0010ffff"]
PIECES = ["<s>", "</s>", "<unk>", "<tool>", "<tool>x", "<mask>", "<end>", " of ", "of", "a b", "the", "ing", "  ",
          "<0x0A>", "<0x41>", "\u2581\u2581", "12345", "..", "hello world", " <mask> ", " <end> "]


def odd_texts(rng, count):
    def piece():
        kind = rng.random()
        if kind < 0.15:
            return rng.choice(PIECES)
        if kind < 0.25:
            # What newer Unicode has assigned counts as a letter in one library and not yet in the other.
            c = chr(rng.randrange(0x20000))
            return c if unicodedata.category(c) not in ("Cn", "Cs") else "?"
        return rng.choice(ALPHABET)
    texts = ["".join(piece() for _ in range(rng.randrange(40))) for _ in range(count)]
    return texts + ["", " ", "\n\n", "$", "$$", "$$$", "a" * 3000, " " * 300, "x y " * 500]


def answers_of_peer(text, cases):
    """What Rille's script writes for the same cases, by the library."""
    from tokenizers import Tokenizer
    t, out = Tokenizer.from_str(text), []
    for kind, case in cases:
        if kind == "text":
            t.encode_special_tokens = True
            plain = t.encode(case, add_special_tokens=False).ids
            t.encode_special_tokens = False
            ids = t.encode(case, add_special_tokens=False).ids
            whole = t.encode(case, add_special_tokens=True).ids
            lists = [",".join(map(str, one)) for one in (ids, whole, plain)]
            decoded = t.decode(ids, skip_special_tokens=False)
            out.append(";".join([*lists, decoded.encode().hex()]))
        else:
            out.append(t.decode(case, skip_special_tokens=False).encode().hex())
    return out


def cases_for(text, texts, rng, count):
    """The texts, and lists of ids; no bytes among these: Rille gives those of no character as they are."""
    from tokenizers import Tokenizer
    t = Tokenizer.from_str(text)
    of_bytes = "ByteLevel" in text
    ids = [i for i in range(t.get_vocab_size()) if not (t.id_to_token(i) or "").startswith("<0x")]
    lists = [] if of_bytes else [rng.choices(ids, k=rng.randrange(12)) for _ in range(count)]
    return [("text", one) for one in texts] + [("ids", one) for one in lists]


def lines_of(cases):
    return "".join("text " + case.encode().hex() + "\n" if kind == "text" else
                   "ids " + ",".join(map(str, case)) + "\n" for kind, case in cases)


def answers_of_rille(rille, folder, text, cases):
    (folder / "tokenizer.json").write_text(text)
    (folder / "cases").write_text(lines_of(cases))
    env = dict(os.environ, RILLE_HOME=str(folder / "home"), XDG_CONFIG_HOME=str(folder / "config"), NO_COLOR="1")
    script = HERE.parent.parent / "golden" / "tokenizers.lua"
    ran = subprocess.run([rille, "--json", "run", script, "--tokenizer", folder / "tokenizer.json", "--cases",
                          folder / "cases", "--out", folder / "answers"], env=env, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(ran.stdout + ran.stderr)
    return (folder / "answers").read_text().split("\n")[:-1]


def golden(folder, texts, rng):
    from kinds import kinds
    made, odd = kinds(texts, 400), odd_texts(rng, 24)[:-3]
    for name in GOLDEN:
        cases = cases_for(made[name], odd, rng, 8)
        file = name.replace(", ", "_")
        (folder / f"{file}.tokenizer").write_text(made[name] + "\n")
        wanted = answers_of_peer(made[name], cases)
        (folder / f"{file}.cases").write_text("".join(
            f"{case}\t{answer}\n" for case, answer in zip(lines_of(cases).split("\n"), wanted)))


def main(rille, folder):
    from kinds import kinds
    rng = random.Random(7)
    manual = HERE.parent.parent.parent / "docs" / "manual"
    texts = [p.read_text() for p in sorted(manual.glob("*.md"))]
    if "--golden" in sys.argv:
        return golden(pathlib.Path(sys.argv[-1]), texts[:1], rng)
    few = "--few" in sys.argv
    texts = texts[:6] if few else texts
    odd = odd_texts(rng, 300 if few else 1500) + [t[:20000] for t in texts]
    bad = 0
    for name, text in kinds(texts, 400 if few else 1500).items():
        cases = cases_for(text, odd, rng, 60 if few else 300)
        wanted, got = answers_of_peer(text, cases), answers_of_rille(rille, folder, text, cases)
        differ = [i for i in range(len(cases)) if i >= len(got) or got[i] != wanted[i]]
        bad += len(differ)
        print(f"{'not ok' if differ else 'ok'} - {name}: {len(cases)} cases, {len(differ)} differ")
        for i in differ[:3]:
            print(f"# {cases[i][0]} {cases[i][1][:100]!r}\n#   rille      {got[i][:300]}\n"
                  f"#   tokenizers {wanted[i][:300]}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(os.path.abspath(sys.argv[1]), pathlib.Path(temporary)))
