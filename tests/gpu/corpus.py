"""Token ids for trainings in full size, made of what a bundle has."""
import array
import collections
import os
import re
import struct
from pathlib import Path


def write_ids(bundle, file):
    """Words of the bundle's manual as token ids, numbered by how often they come, as llm.c writes them."""
    if os.path.exists(file):
        return
    text = "".join(path.read_text(errors="replace") for path in sorted(Path(bundle).glob("docs/**/*.md")))
    text = text or Path(bundle, "LICENSE").read_text()
    words = re.findall(r"\w+|\W", text)
    rank = {word: n for n, (word, _) in enumerate(collections.Counter(words).most_common(30000))}
    ids = array.array("H", (rank.get(word, 30000) for word in words))
    while len(ids) < 300_000:  # a batch of 64 x 1024, with some for the validation
        ids += ids
    with open(file, "wb") as out:
        out.write(struct.pack("<256i", 20240520, 1, len(ids), *[0] * 253) + ids.tobytes())
