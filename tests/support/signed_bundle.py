"""A bundle with another signature than it was packed with, by cmake/bundle.py itself."""
import io, json, subprocess, sys, tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "cmake"))  # before tests/fresh/bundle.py
import bundle


class Key:
    def __init__(self, file):
        self.file = file
        self.public = bundle.output("openssl", "pkey", "-in", file, "-pubout")
        self.id = bundle.key_id(file)


def make_key(file):
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", file], check=True, capture_output=True)
    return Key(file)


def sign(archive, key, out, change=None):
    """The archive with the key's signature. `change` then alters the files {path: bytes}, for an unfaithful one."""
    with tarfile.open(archive) as tar:
        name = tar.getnames()[0].split("/")[0]
        files = {one.name.split("/", 1)[1]: (tar.extractfile(one).read(), one.mode) for one in tar.getmembers()}
    facts = json.loads(files.pop("MANIFEST.json")[0])
    owners = {row["path"]: row["package"] for row in facts.pop("files") if "package" in row}
    for made in ("MANIFEST.sig", bundle.sbom.NAME):
        files.pop(made, None)
    bundle.seal(files, owners, facts, key.file, Path(out + ".scratch"))
    for path, data in (change or {}).items():
        files[path] = (data, 0o644)
    with tarfile.open(out, "w:gz", compresslevel=0) as tar:  # bundle.pack() takes its time to pack tightly
        for path, (data, mode) in sorted(files.items()):
            info = tarfile.TarInfo(f"{name}/{path}")
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
    return out
