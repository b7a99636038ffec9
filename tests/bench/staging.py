#!/usr/bin/env python3
"""box:stage from S3 beside `curl --parallel` and `rclone copy`, in one run and from one server: `rclone serve s3` at an
address of a private network, in a network namespace. Two loads: one large object, in the same parts at the same time
for all three, and many small ones. Every copy is compared with its source. All write to one disk, by turns.
usage: staging.py RILLE [--megabytes 1024] [--files 2000] [--rounds 3]    (run it with a Python that has rclone:
tests/requirements-stores.txt)"""
import argparse, filecmp, os, random, shutil, subprocess, sys, tempfile, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / folder) for folder in ("cli", "contract/stores", "contract/fakes")]
import foreign  # noqa: E402
import need  # noqa: E402

ADDRESS, PART, AT_ONCE, FILES_AT_ONCE = "10.77.0.1", 16 << 20, 8, 64


class Server(foreign.Rclone):
    address = ADDRESS

    def arguments(self):
        (Path(self.folder) / self.bucket).mkdir()
        return ["serve", "s3", self.folder, "--addr", f"{ADDRESS}:{self.port}", "--auth-key",
                f"{foreign.ID},{foreign.SECRET}", "--vfs-cache-mode", "off"]


def fill(folder, megabytes, files):
    noise = random.Random(1)
    with open(folder / "large", "wb") as out:
        for _ in range(megabytes):
            out.write(noise.randbytes(1 << 20))
    (folder / "small").mkdir()
    for number in range(files):
        (folder / "small" / f"{number:05}").write_bytes(noise.randbytes(64 << 10))


def rclone_settings(server):
    names = dict(TYPE="s3", PROVIDER="Other", ACCESS_KEY_ID=foreign.ID, SECRET_ACCESS_KEY=foreign.SECRET,
                 ENDPOINT=server.endpoint, REGION=server.region)
    return {f"RCLONE_CONFIG_STORE_{name}": value for name, value in names.items()}


class Bench:
    def __init__(self, rille, root, server):
        self.rille, self.root, self.server = rille, root, server
        self.env = dict(os.environ, XDG_CONFIG_HOME=str(root / "config"), NO_COLOR="1", **server.environment(),
                        AWS_ENDPOINT_URL_S3=server.endpoint, AWS_REGION=server.region, **rclone_settings(server))

    def timed(self, words, **more):
        began = time.perf_counter()
        subprocess.run(words, check=True, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
        return time.perf_counter() - began

    def by_rclone(self, what, to):
        return self.timed([self.server.path(), "copy", f"store:{self.server.bucket}/{what}", str(to),
                           "--multi-thread-streams", str(AT_ONCE), "--multi-thread-cutoff", "17M",
                           "--multi-thread-chunk-size", "16M", "--transfers", str(FILES_AT_ONCE)])

    def by_curl(self, what, to):
        """Signed by curl itself (--aws-sigv4). A large object in parts: curl writes each to a file of its own, and
        they are put together, as anyone who uses it so must do."""
        source, signed = Path(self.server.folder) / self.server.bucket / what, []
        url = f"{self.server.endpoint}/{self.server.bucket}/{what}"
        lines = []
        if source.is_dir():
            for name in sorted(os.listdir(source)):
                lines.append(f'url = "{url}/{name}"\noutput = "{to}/{name}"\n')
        else:
            size = source.stat().st_size
            for number, first in enumerate(range(0, size, PART)):
                last = min(first + PART, size) - 1
                signed.append(f"{to}/{number:05}")
                lines.append(f'url = "{url}"\nrange = "{first}-{last}"\noutput = "{signed[-1]}"\n')
        common = f'aws-sigv4 = "aws:amz:{self.server.region}:s3"\nuser = "{foreign.ID}:{foreign.SECRET}"\nfail\n'
        (self.root / "curl").write_text("next\n".join(line + common for line in lines))
        began = time.perf_counter()
        at_once = AT_ONCE if signed else FILES_AT_ONCE
        self.timed(["curl", "--parallel", "--parallel-max", str(at_once), "--create-dirs", "--config",
                    str(self.root / "curl")])
        if signed:
            with open(f"{to}/{Path(what).name}", "wb") as out:
                for part in signed:
                    with open(part, "rb") as one:
                        shutil.copyfileobj(one, out, 1 << 20)
                    os.unlink(part)
        return time.perf_counter() - began

    def by_rille(self, what, to):
        """The time of box:stage: the machine is rented before. It verifies what it writes."""
        home, folder = self.root / "home", Path(self.server.folder) / self.server.bucket / what
        address = f"s3://{self.server.bucket}/{what}" + ("/" if folder.is_dir() else "")
        text = f"""
local rille = require "rille"
local box = rille.rent("b", {{ gpu = "cpu", provider = "local", ttl = "1h" }})
local began = rille.now()
box:stage("{address}", "copy/")
local seconds = rille.now() - began
rille.step("told", function() local f = assert(io.open("{self.root}/seconds", "w")) f:write(seconds) f:close() end)
box:get("copy/", "{to}/")
"""
        (self.root / "stage.lua").write_text(text)
        shutil.rmtree(home, ignore_errors=True)  # the cache of an earlier round
        subprocess.run([self.rille, "run", str(self.root / "stage.lua")], check=True,
                       env=dict(self.env, RILLE_HOME=str(home)), stdout=subprocess.DEVNULL)
        return float((self.root / "seconds").read_text())


def same(source, copy):
    if source.is_file():
        return filecmp.cmp(source, copy / source.name, shallow=False)
    names = sorted(os.listdir(source))
    return names == sorted(os.listdir(copy)) and all(
        filecmp.cmp(source / name, copy / name, shallow=False) for name in names)


def main():
    words = argparse.ArgumentParser()
    words.add_argument("rille")
    words.add_argument("--megabytes", type=int, default=1024)
    words.add_argument("--files", type=int, default=2000)
    words.add_argument("--rounds", type=int, default=3)
    o = words.parse_args()
    need.own_network()
    subprocess.run(["ip", "address", "add", ADDRESS + "/24", "dev", "lo"], check=True)
    root, server, wrong = Path(tempfile.mkdtemp(prefix="rille-staging-")), Server(), 0
    try:
        served = Path(server.folder) / server.bucket
        fill(served, o.megabytes, o.files)
        bench = Bench(os.path.abspath(o.rille), root, server)
        for what, size in (("large", o.megabytes << 20), ("small", o.files * (64 << 10))):
            best = {}
            for _ in range(o.rounds):
                for name in ("curl", "rclone", "rille"):
                    to = root / "to"
                    shutil.rmtree(to, ignore_errors=True)
                    to.mkdir()
                    seconds = getattr(bench, "by_" + name)(what, to)
                    best[name] = min(best.get(name, 1e9), seconds)
                    if not same(served / what, to):
                        wrong += 1
                        print(f"not ok - {name}'s copy of {what} differs")
            rate = {name: size / seconds / 1e6 for name, seconds in best.items()}
            print(f"{what}: rille {rate['rille']:.0f} MB/s, curl {rate['curl']:.0f}, rclone {rate['rclone']:.0f}; "
                  f"ratio to curl {rate['rille'] / rate['curl']:.2f} (goal 0.95), to rclone "
                  f"{rate['rille'] / rate['rclone']:.2f} (goal 0.9)")
    finally:
        server.close()
        shutil.rmtree(root, ignore_errors=True)
    sys.exit(1 if wrong else 0)


main()
