#!/usr/bin/env python3
"""Packs the bundle: the command, its loader, every library it needs, the certificates and texts that it may lack.

usage: bundle.py RILLE --source CHECKOUT --name rille-0.1.0-linux-x86_64 --version 0.1.0 --into FOLDER [--cuda FILE]
                 [--nvcc FILE]

RILLE is the program whose entry maps ../lib/ld-linux-x86-64.so.2 (bindings/cli/own_loader.c). The libraries are this
machine's. No CUDA library of NVIDIA's goes in: their licence and their gigabytes stay out, and the driver's belongs to
its kernel; --cuda names Rille's own part, --nvcc the compiler of its images. The same input gives the same archive,
byte for byte. RILLE_SIGNING_KEY names a file with an Ed25519 key in PEM, which signs the manifest.
docs/design/bundle.md says what is where and why.
"""
import argparse
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
from pathlib import Path

import sbom

LOADER = "ld-linux-x86-64.so.2"
# Loaded by name at run time, so that no list of needs names them.
OPENED = ["libcurl.so.4"]
# The rest of the C library: programs and drivers of older systems still name the parts that have become empty, and a
# part of another glibc must never be found in their place. libnss_*: what an old nsswitch.conf asks for.
GLIBC = ["libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libanl.so.1", "libresolv.so.2", "libm.so.6",
         "libmvec.so.1", "libnss_files.so.2", "libnss_dns.so.2"]
FORBIDDEN = re.compile(r"lib(cuda|cudart|cublas|cudnn|nccl|nvrtc|nvJitLink|cufft|cupti|nvidia)")
CERTIFICATES = "/usr/share/ca-certificates/mozilla"
CHARACTERS = "/usr/lib/locale/C.utf8/LC_CTYPE"
# What an Ed25519 public key begins with (RFC 8410), before its 32 bytes.
ED25519 = bytes.fromhex("302a300506032b6570032100")


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def libraries(program):
    """{soname: file} of all that the program and what it opens need, and the loader."""
    ldconfig = next(file for file in ("/sbin/ldconfig", "/usr/sbin/ldconfig") if os.path.exists(file))
    cache = dict(re.findall(r"^\s*(\S+) \(libc6,x86-64[^)]*\) => (\S+)$", output(ldconfig, "-p"), re.M))
    found = {}
    for root in [program, *(cache[name] for name in OPENED)]:
        text = output("ldd", root)
        missing = re.findall(r"(\S+) => not found", text)
        if missing:
            raise SystemExit(f"bundle: {root} needs {', '.join(missing)}, which is not here")
        found.update(re.findall(r"^\s*(\S+) => (/\S+)", text, re.M))
    found.update((name, cache[name]) for name in OPENED)
    home = os.path.dirname(os.path.realpath(found["libc.so.6"]))
    found.update((name, f"{home}/{name}") for name in [*GLIBC, LOADER])
    bad = [name for name in found if FORBIDDEN.match(name)]
    if bad:
        raise SystemExit(f"bundle: {', '.join(bad)} does not belong in it")
    return {name: os.path.realpath(file) for name, file in found.items()}


def owner(file):
    """The package whose file it is, or None."""
    for path in (str(file), str(file).removeprefix("/usr")):
        try:
            return output("dpkg-query", "-S", path).split(": ")[0].split(",")[0].split(":")[0]
        except (subprocess.CalledProcessError, FileNotFoundError):
            continue
    return None


def package_version(name):
    """None: it is not installed."""
    try:
        return output("dpkg-query", "-W", "-f=${Version}\n", name).split()[0]
    except (subprocess.CalledProcessError, FileNotFoundError):
        return None


def built_on():
    """As debian-12."""
    words = dict(re.findall(r'^(ID|VERSION_ID)="?([^"\n]+)"?$', Path("/etc/os-release").read_text(), re.M))
    return "-".join(words[key] for key in ("ID", "VERSION_ID") if key in words)


def texts(source):
    """(path in the bundle, file): what the command and its reader may look for."""
    for folder, pattern, place in (("stdlib/meta", "*.lua", "share/rille/meta"), ("workflows", "*.lua", "workflows"),
                                   ("docs", "*.md", "docs")):
        for file in sorted((source / folder).rglob(pattern)):
            yield f"{place}/{file.relative_to(source / folder)}", file
    yield "LICENSE", source / "LICENSE"
    if os.path.exists(CHARACTERS):
        yield "share/rille/locale/C.utf8/LC_CTYPE", Path(CHARACTERS)


def certificates():
    """Mozilla's list as Debian packs it. Not /etc/ssl: that also holds what this machine's owner trusts."""
    return b"".join(file.read_bytes() for file in sorted(Path(CERTIFICATES).glob("*.crt")))


def build_id(program):
    found = re.search(r"Build ID: ([0-9a-f]+)", output("readelf", "-n", program))
    return found.group(1) if found else None


def commit(source):
    try:
        return output("git", "-C", str(source), "describe", "--always", "--dirty", "--abbrev=40").strip()
    except (subprocess.CalledProcessError, FileNotFoundError):
        return None


def cuda_toolkit(nvcc):
    """The version of the toolkit whose nvcc made images, as 13.0.88, or None."""
    found = re.search(r"^Cuda compilation tools.* V([\d.]+)$", output(nvcc, "--version"), re.M) if nvcc else None
    return found.group(1) if found else None


def gather(options):
    """{path in the bundle: (bytes, mode)}, {path: its package}, and the facts of the manifest."""
    source = Path(options.source)
    libs = libraries(options.program)
    files = {"bin/rille": (Path(options.program).read_bytes(), 0o755),
             "share/rille/ca-certificates.crt": (certificates(), 0o644)}
    owners = {"share/rille/ca-certificates.crt": owner(CERTIFICATES)}
    for name, file in libs.items():
        files[f"lib/{name}"] = (Path(file).read_bytes(), 0o755 if name == LOADER else 0o644)
        owners[f"lib/{name}"] = owner(file)
    if options.cuda:
        files["lib/librille_cuda.so"] = (Path(options.cuda).read_bytes(), 0o644)
    for place, file in texts(source):
        files[place] = (file.read_bytes(), 0o644)
        if not file.is_relative_to(source):
            owners[place] = owner(file)
    names = {name for name in owners.values() if name} | set(sbom.compiled_in(libs))
    versions = {name: version for name in sorted(names) if (version := package_version(name))}
    for name in versions:
        file = Path(f"/usr/share/doc/{name}/copyright")
        if file.exists():
            files[f"share/licenses/{name}"] = (file.read_bytes(), 0o644)
            owners[f"share/licenses/{name}"] = name
    glibc = re.search(rb"stable release version ([\d.]+\d)", files["lib/libc.so.6"][0])
    facts = {
        "format": 1,
        "name": "rille",
        "version": options.version,
        "platform": "linux-x86_64",
        "build_id": build_id(options.program),
        "commit": commit(source),
        "glibc": glibc.group(1).decode() if glibc else None,
        "built_on": built_on(),
        "cuda_toolkit": cuda_toolkit(options.nvcc),
        "packages": versions,
    }
    return files, owners, facts


def manifest(files, owners, facts):
    """As a dict. Each row names what the file is, its package last: workflow/agent/install.cpp reads it by sed."""
    rows = []
    for path, (data, mode) in sorted(files.items()):
        if not re.fullmatch(r"[A-Za-z0-9._+/-]+", path):
            raise SystemExit(f"bundle: '{path}' is no name that every shell can read")
        rows.append({"path": path, "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(),
                     "mode": f"{mode:04o}", **({"package": owners[path]} if owners.get(path) else {})})
    return dict(facts, files=rows)


def key_id(signing_key):
    """The name of a key: the beginning of the SHA-256 of its public part, as in signed_bundle.cpp."""
    public = subprocess.run(["openssl", "pkey", "-in", signing_key, "-pubout", "-outform", "DER"], capture_output=True)
    if public.returncode or not public.stdout.startswith(ED25519):
        said = public.stderr.decode().strip().split("\n")[0]
        raise SystemExit(f"bundle: RILLE_SIGNING_KEY: {os.path.abspath(signing_key)} is no Ed25519 key; this makes "
                         f"one:\n  openssl genpkey -algorithm ed25519 -out KEY.pem\n{said}")
    return hashlib.sha256(public.stdout).hexdigest()[:16]


def signature(text, signing_key, scratch):
    """The key's signature of the text: 64 bytes. OpenSSL reads a text for Ed25519 from files only."""
    scratch.write_bytes(text)
    try:
        return subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", signing_key, "-in", str(scratch)],
                              check=True, capture_output=True).stdout
    finally:
        scratch.unlink()


def seal(files, owners, facts, signing_key, scratch):
    """Adds the bill of materials, the manifest, and with a key its signature."""
    facts = dict(facts, signed_by=key_id(signing_key) if signing_key else None)
    licence = {path: data for path, (data, _) in files.items() if path.startswith("share/licenses/")}
    bill = sbom.document(manifest(files, owners, facts),
                         lambda name: licence.get(f"share/licenses/{name}", b"").decode(errors="replace"))
    files[sbom.NAME] = (bill.encode(), 0o644)
    text = (json.dumps(manifest(files, owners, facts), indent=1) + "\n").encode()
    files["MANIFEST.json"] = (text, 0o644)
    if signing_key:
        files["MANIFEST.sig"] = (signature(text, signing_key, scratch), 0o644)
    return facts


def pack(name, files, archive):
    """A tar of root's files without times, so that the archive depends on its content only."""
    partial = archive.with_suffix(".partial")
    with open(partial, "wb") as out, gzip.GzipFile("", "wb", 7, out, mtime=0) as zipped:
        with tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for path, (data, mode) in sorted(files.items()):
                info = tarfile.TarInfo(f"{name}/{path}")
                info.size, info.mode, info.uname, info.gname = len(data), mode, "root", "root"
                tar.addfile(info, io.BytesIO(data))
    partial.rename(archive)


def main():
    parser = argparse.ArgumentParser(description="packs Rille's bundle")
    parser.add_argument("program")
    for name in ("source", "name", "version", "into"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--cuda", help="librille_cuda.so, Rille's CUDA part")
    parser.add_argument("--nvcc", help="what made its images, if it has any")
    options = parser.parse_args()
    archive = Path(options.into, options.name + ".tar.gz")
    files, owners, facts = gather(options)
    facts = seal(files, owners, facts, os.environ.get("RILLE_SIGNING_KEY"), archive.with_suffix(".scratch"))
    Path(options.into, f"{options.name}.cdx.json").write_bytes(files[sbom.NAME][0])
    pack(options.name, files, archive)
    size = sum(len(data) for data, _ in files.values())
    signed = f"signed by {facts['signed_by']}" if facts["signed_by"] else "not signed: RILLE_SIGNING_KEY names no key"
    print(f"bundle: {archive}: {archive.stat().st_size / 1e6:.1f} MB, unpacked {size / 1e6:.1f} MB, "
          f"{len(files)} files, glibc {facts['glibc']}, build id {facts['build_id']}, {signed}")


if __name__ == "__main__":
    main()
