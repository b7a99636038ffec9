#!/usr/bin/env python3
"""`rille data build` beside Hugging Face's tokenizers on all cores (from PyPI), one run: the same ids from the same
JSONL file, and tokens/s of both. The vocabulary is trained here, so that no model has to be fetched.
usage: data_build.py RILLE TEXT_FILE.. [--megabytes 200] (needs `tokenizers`; run it with a Python that has it)"""
import argparse, array, json, os, random, shutil, subprocess, sys, tempfile, time

os.environ["TOKENIZERS_PARALLELISM"] = "true"
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers


def documents_of(files, bytes_wanted):
    """Documents of the files' lines, shuffled again and again, until there are so many bytes. Without special tokens:
    Rille takes them for text, the peer does not."""
    rng = random.Random(1)
    lines = [line.replace("<|endoftext|>", "") for name in files
             for line in open(name, encoding="utf-8", errors="replace")]
    out, size = [], 0
    while size < bytes_wanted:
        rng.shuffle(lines)
        for at in range(0, len(lines), 40):
            out.append("".join(lines[at:at + 40]))
            size += len(out[-1].encode())
    return out, size


def peer(path, tokenizer, batch=4096):
    """Reads the file, encodes it in batches on all cores and writes u16 ids, as scripts on the peer's basis do."""
    end, total = tokenizer.token_to_id("<|endoftext|>"), 0
    with open(path + ".peer", "wb") as out, open(path) as lines:
        texts = []

        def encode():
            ids = array.array("H")
            for one in tokenizer.encode_batch_fast(texts, add_special_tokens=False):
                ids.append(end)
                ids.extend(one.ids)
            out.write(ids.tobytes())
            texts.clear()
            return len(ids)

        for line in lines:
            texts.append(json.loads(line)["text"])
            if len(texts) == batch:
                total += encode()
        return total + encode()


def main():
    words = argparse.ArgumentParser()
    words.add_argument("rille")
    words.add_argument("files", nargs="+")
    words.add_argument("--megabytes", type=int, default=200)
    o = words.parse_args()
    root = tempfile.mkdtemp(prefix="rille-data-bench-")
    documents, size = documents_of(o.files, o.megabytes << 20)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(documents[:2000], trainers.BpeTrainer(
        vocab_size=30000, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.save(root + "/tokenizer.json")
    path = root + "/documents.jsonl"
    with open(path, "w") as f:
        f.writelines(json.dumps({"text": one}) + "\n" for one in documents)
    try:
        best = {}
        for _ in range(3):  # by turns, so that both have the same share of a busy machine
            began = time.perf_counter()
            total = peer(path, tokenizer)
            best["peer"] = min(best.get("peer", 1e9), time.perf_counter() - began)
            shutil.rmtree(root + "/tokens", ignore_errors=True)
            began = time.perf_counter()
            subprocess.run([os.path.abspath(o.rille), "data", "build", path, "--to", root + "/tokens", "--tokenizer",
                            root + "/tokenizer.json"], env=dict(os.environ, RILLE_HOME=root + "/home"), check=True,
                           stderr=subprocess.DEVNULL)
            best["rille"] = min(best.get("rille", 1e9), time.perf_counter() - began)
        shards = json.load(open(root + "/tokens/dataset.json"))["shards"]
        ours = b"".join(open(f"{root}/tokens/{s['path']}", "rb").read()[1024:] for s in shards)
        same = ours == open(path + ".peer", "rb").read()
    finally:
        shutil.rmtree(root)
    ratio = best["peer"] / best["rille"]
    print(f"{'ok' if same else 'not ok'} - the same {total} ids of {size >> 20} MiB")
    print(f"rille {total / best['rille'] / 1e6:.2f} Mtokens/s, tokenizers {total / best['peer'] / 1e6:.2f}, "
          f"ratio {ratio:.2f} (goal 0.9), {len(os.sched_getaffinity(0))} cores")
    sys.exit(0 if same else 1)


main()
