#!/usr/bin/env python3
"""`rille data build`: token shards of texts, columns of CSV, shards of images; the mistakes of a new user; a kill in
the middle, and any number of threads, change no byte. usage: data_test.py RILLE"""
import array, hashlib, json, os, random, shutil, signal, subprocess, sys, tarfile, tempfile
from pathlib import Path

from tap import check, finish

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))
from pictures import png_bytes

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-data-")
env = dict(os.environ, RILLE_HOME=root + "/home", NO_COLOR="1", RILLE_THREADS="2")


def path(name):
    return f"{root}/{name}"


def write(name, text):
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    open(path(name), "wb").write(text if isinstance(text, bytes) else text.encode())
    return name


def build(*words, threads="2", code=0):
    r = subprocess.run([rille, "data", "build", *words], env=dict(env, RILLE_THREADS=threads), capture_output=True,
                       text=True, timeout=120, cwd=root)
    check("build " + " ".join(words) + f" ends with {code}", r.returncode == code, r.stdout + r.stderr)
    return r.stdout + r.stderr


def refused(*words, has):
    said = build(*words, code=1)
    check(f".. and says: {has}", all(one in said for one in has), said)


def dataset(name):
    return json.load(open(path(name) + "/dataset.json"))


def ids(folder, part):
    """All ids of a part, and what the headers say of them."""
    out = []
    for shard in dataset(folder)["shards"]:
        if shard["part"] != part:
            continue
        data = open(f"{path(folder)}/{shard['path']}", "rb").read()
        head = array.array("i", data[:12])
        found = array.array("H", data[1024:])
        check(f"{folder}/{shard['path']}: its header and its description are right",
              list(head) == [20240520, 1, len(found)] and shard["size_bytes"] == len(data)
              and shard["sha256"] == hashlib.sha256(data).hexdigest() and shard["count"] == len(found), list(head))
        out += found
    return out


def contents(folder):
    return {os.path.relpath(f"{at}/{name}", path(folder)): open(f"{at}/{name}", "rb").read()
            for at, _, names in os.walk(path(folder)) for name in names}


def tokenizer():
    """256 bytes in GPT-2's letters, a merge, and an end of text: a text's ids are easy to tell."""
    vocab, n = {}, 0
    for b in range(256):
        plain = 33 <= b <= 126 or 161 <= b <= 172 or b >= 174
        vocab[chr(b if plain else 256 + n)] = b
        n += not plain
    vocab["ab"] = 256
    return {"model": {"type": "BPE", "vocab": vocab, "merges": ["a b"]}, "decoder": {"type": "ByteLevel"},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
            "added_tokens": [{"id": 257, "content": "<|endoftext|>", "special": True}]}


def encoded(text):
    out, data, at = [257], text.encode(), 0
    while at < len(data):
        pair = data[at:at + 2] == b"ab"
        out.append(256 if pair else data[at])
        at += 1 + pair
    return out


try:
    write("t/tokenizer.json", json.dumps(tokenizer()))
    with_tokenizer = ["--tokenizer", "t/tokenizer.json"]

    # texts
    write("texts/a.txt", "abba ab\n")
    write("texts/b.jsonl", '{"text": "caba", "id": 1}\n\n{"text": "zwei é"}\n')
    said = build("texts", "--to", "tokens", *with_tokenizer)
    check("it says what it made", "19 tokens of 3 documents" in said, said)
    check("each document follows an end of text", ids("tokens", "train") ==
          encoded("abba ab\n") + encoded("caba") + encoded("zwei é"), ids("tokens", "train"))
    check("a finished data set is kept", "kept 1 shards" in build("texts", "--to", "tokens", *with_tokenizer))
    refused("texts", "--to", "tokens", *with_tokenizer, "--separator", "none", has=["other options", "separator"])
    build("texts", "--to", "bare", *with_tokenizer, "--separator", "none")
    check("without a separator", 257 not in ids("bare", "train"))

    # threads and kills
    rng = random.Random(1)
    lines = [" ".join(rng.choice(["ab", "abc", "cab", "été", "b" * 9]) for _ in range(rng.randrange(300)))
             for _ in range(6000)]
    write("many.jsonl", "".join(json.dumps({"text": one}) + "\n" for one in lines))
    options = ["--shard-tokens", "100000", "--validation", "0.1"]
    build("many.jsonl", "--to", "one", *with_tokenizer, *options, threads="1")
    whole = contents("one")
    check("there are many shards", len(whole) > 20, len(whole))
    documents = [dataset("one")[part + "_documents"] for part in ("train", "validation")]
    check("every document is in one part, about a tenth for validation",
          sum(documents) == sum(1 for one in lines if one) and 400 < documents[1] < 800, documents)
    build("many.jsonl", "--to", "four", *with_tokenizer, *options, threads="4")
    check("the number of threads changes no byte", contents("four") == whole)
    for stop in (signal.SIGKILL, signal.SIGINT):
        words = ["many.jsonl", "--to", f"stopped{stop}", *with_tokenizer, *options]
        run = subprocess.Popen([rille, "data", "build", *words], env=env, cwd=root, stderr=subprocess.PIPE, text=True)
        while run.poll() is None and not os.path.exists(path(f"stopped{stop}/train/000003.bin")):
            pass
        run.send_signal(stop)
        said = run.communicate(timeout=60)[1]
        check(f"{stop.name} ends it before the end", run.returncode != 0
              and not os.path.exists(path(f"stopped{stop}/dataset.json")), said)
        if stop == signal.SIGINT:
            check("Ctrl-C says what is kept", run.returncode == 130 and "finished shards are kept" in said, said)
        said = build(*words)
        check("it goes on after the finished shards", "kept " in said, said)
        check("the bytes are those of an undisturbed build", contents(f"stopped{stop}") == whole)

    # mistakes
    refused("texts", "--to", "new", has=["need a tokenizer"])
    refused("texts", "--to", "new", "--tokenizer", "nowhere.json", has=["nowhere.json", "tokenizer.json"])
    refused("nothing", "--to", "new", *with_tokenizer, has=["no source 'nothing'"])
    refused(write("empty.txt", ""), "--to", "new", *with_tokenizer, has=["'empty.txt' is empty"])
    refused(write("blank.jsonl", '\n{"text": ""}\n'), "--to", "new", *with_tokenizer, has=["no text"])
    refused(write("other.jsonl", '{"text": "a"}\n{"content": "x", "id": 1}\n'), "--to", "new", *with_tokenizer,
            has=["'other.jsonl' line 2", "no field 'text'", "content, id"])
    refused(write("broken.jsonl", '{"text": "a"}\n{"text": "b"}\n{"text": \n'), "--to", "new", *with_tokenizer,
            has=["'broken.jsonl' line 3"])
    refused(write("list.jsonl", "[1]\n"), "--to", "new", *with_tokenizer, has=["line 1", "no JSON object"])
    refused(write("latin.txt", b"eins\nzw\xe9i\n"), "--to", "new", *with_tokenizer,
            has=["'latin.txt' line 2", "not UTF-8", "0xE9"])
    refused(write("odd.xyz", "a"), "--to", "new", *with_tokenizer, has=["'odd.xyz'", "text, csv"])
    build("odd.xyz", "--kind", "text", "--to", "odd", *with_tokenizer)
    refused("texts", "--to", "t", *with_tokenizer, has=["not empty", "tokenizer.json"])
    refused("texts", "--to", "new", *with_tokenizer, "--separator", "<s>", has=["no token '<s>'", "<|endoftext|>"])
    refused("texts", "--to", "new", *with_tokenizer, "--validation", "1.5", has=["validation = 1.5"])
    refused("texts", "--to", "new", *with_tokenizer, "--missing", "1", has=["no option 'missing'"])
    build("texts", "--to", "new", *with_tokenizer)  # what failed has left nothing in the way
    write("line.txt", "ab" * 5_000_000)
    build("line.txt", "--to", "line", *with_tokenizer)
    check("a text without line ends is cut, and nothing is lost", dataset("line")["train_tokens"] == 5_000_001)



    # tables
    write("table.csv", 'id,size,"the, kind"\r\n1,0.5,small\r\n2,7,"a ""big""\none"\r\n3,-1e3,small\r\n')
    build("table.csv", "--to", "columns")
    made = dataset("columns")
    check("columns have the types of their values", made["rows"] == 3 and made["columns"] == [
        {"name": "id", "type": "integer"}, {"name": "size", "type": "float"},
        {"name": "the, kind", "type": "category", "categories": ["small", 'a "big"\none']}], made["columns"])
    data = open(path("columns/columns.safetensors"), "rb").read()
    header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    begin = 8 + int.from_bytes(data[:8], "little")

    def column(name, kind):
        first, end = header[name]["data_offsets"]
        return list(array.array(kind, data[begin + first:begin + end]))

    check("and their values", (column("id", "q"), column("size", "f"), column("the, kind", "i")) ==
          ([1, 2, 3], [0.5, 7, -1000], [0, 1, 0]), header)
    refused(write("holes.csv", "a,b\n1,x\n,y\nNA,z\n"), "--to", "new2", has=["'holes.csv' line 3", "'a'", "missing"])
    build("holes.csv", "--to", "new2", "--missing", "-1")
    check("a whole number for missing values keeps integers", dataset("new2")["columns"][0]["type"] == "integer")
    refused(write("ragged.csv", "a,b\n1,2\n1,2,3\n"), "--to", "new3", has=["'ragged.csv' line 3", "3 fields"])
    refused(write("open.csv", 'a\n"1\n2\n'), "--to", "new3", has=["line 2", "does not end"])
    refused(write("twice.csv", "a,a\n1,2\n"), "--to", "new3", has=["two columns 'a'"])
    refused(write("rows.csv", "a,b\n"), "--to", "new3", has=["no rows"])
    write("tables/1.csv", "a\n1\n")
    write("tables/2.csv", "b\n1\n")
    refused("tables", "--to", "new3", has=["column 1", "'b'", "'a'"])
    refused("table.csv", "texts/a.txt", "--to", "new3", has=["kinds 'csv' and 'text'"])

    # images
    for i in range(30):
        rows = [[(8 * i, x, y) for x in range(40 + i)] for y in range(50)]
        write(f"pets/{('cat', 'dog', 'été')[i % 3]}/{i}.png", png_bytes(rows))
    said = build("pets", "--to", "shards", "--shard-bytes", "5000")
    made = dataset("shards")
    check("it says what it made", f"30 images of 3 classes, {len(made['shards'])} shards" in said, said)
    check("there are several shards, and the classes' names", len(made["shards"]) > 3
          and made["class_names"] == ["cat", "dog", "été"], made)

    def samples(folder):
        out = []
        for shard in dataset(folder)["shards"]:
            data = open(f"{path(folder)}/{shard['path']}", "rb").read()
            with tarfile.open(f"{path(folder)}/{shard['path']}") as tar:
                files = [(m.name.split("."), tar.extractfile(m).read()) for m in tar.getmembers()]
            check(f"{folder}/{shard['path']}: its description is right, and each image stands before its label",
                  shard["sha256"] == hashlib.sha256(data).hexdigest() and shard["count"] * 2 == len(files)
                  and all(a[0][0] == b[0][0] and b[0][1] == "cls" for a, b in zip(files[::2], files[1::2])), files)
            out += [(a[0][1], a[1], int(b[1])) for a, b in zip(files[::2], files[1::2])]
        return out

    wanted = [("png", open(path(f"pets/{('cat', 'dog', 'été')[i % 3]}/{i}.png"), "rb").read(), i % 3)
              for i in range(30)]
    check("all images are there with their labels", sorted(samples("shards")) == sorted(wanted))
    build("pets", "--to", "four_shards", "--shard-bytes", "5000", threads="4")
    check("the number of threads changes no byte of the shards", contents("four_shards") == contents("shards"))
    check("a finished data set is kept", "kept " in build("pets", "--to", "shards", "--shard-bytes", "5000"))
    build("pets", "--to", "small", "--size", "16")
    check("made smaller, all are JPEG", all(kind == "jpg" and data[:3] == b"\xff\xd8\xff"
                                           for kind, data, _ in samples("small")))
    write("read.lua", """
        local rille = require "rille"
        local made = rille.data.build { sources = "pets", to = "by_lua", size = 20 }
        local data = rille.data.images("by_lua", { batch = 10, size = 16, split = 0.2, seed = 1 })
        local x, y = data:next()
        return { kept = made.kept, images = made.images, shape = x:shape(), labels = y:shape(),
          info = { data:info().training_rows, data:info().validation_rows,
            table.concat(data:info().class_names, " ") } }
    """)
    r = subprocess.run([rille, "--json", "run", "read.lua"], env=env, capture_output=True, text=True, timeout=120,
                       cwd=root)
    check("a script builds and reads shards", r.returncode == 0 and json.loads(r.stdout)["result"] ==
          {"kept": 0, "images": 30, "shape": [10, 3, 16, 16], "labels": [10], "info": [24, 6, "cat dog été"]},
          r.stdout + r.stderr)
    refused("pets", "texts", "--to", "new4", has=["2 sources"])
    refused("pets", "--to", "new4", "--field", "x", has=["no option 'field'"])
    write("bad/a/1.jpg", "<html>")
    refused("bad", "--to", "new4", has=["bad/a/1.jpg", "neither JPEG nor PNG"])
    refused("bad/a", "--to", "new4", has=["class folders"])
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
