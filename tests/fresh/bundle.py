#!/usr/bin/env python3
"""The bundle, unpacked and run where it has never been.

usage: bundle.py ARCHIVE here|bare|signed|old|new

here   this machine with an empty environment: relative, through a link, read-only, with a hostile LD_LIBRARY_PATH
bare   a root with nothing in it but the bundle, /proc and a few device nodes: no C library, no shell, no network
signed the bundle with a signature: what doctor says of it, and the manual's commands
old    Debian 11, whose C library is older than the bundle's, by mmdebstrap and a mirror, or its root in $RILLE_OLD_ROOT
new    Debian 13, whose C library is newer; $RILLE_NEW_ROOT
"""
import hashlib, json, os, pty, re, select, shutil, signal, subprocess, sys, tarfile, tempfile, time
from pathlib import Path

top = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(top / "tests/cli"), str(top / "tests/support")]
import need
import signed_bundle
from tap import check, finish

# In a namespace of its own, so that all that is mounted and started is gone in the end. ROOT is the bundle's root.
ENTER = """
mount --make-rprivate / && mount --bind "$ROOT" "$ROOT" && mount -t proc proc "$ROOT/proc" || exit 77
for node in null zero full random urandom tty; do
  touch "$ROOT/dev/$node" && mount --bind /dev/$node "$ROOT/dev/$node" || exit 77
done
mount -t tmpfs tmpfs "$ROOT/tmp" && mkdir "$ROOT/tmp/home"
mount --bind "$ROOT/opt" "$ROOT/opt" && mount -o remount,bind,ro "$ROOT/opt" || exit 77
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$ROOT/dev/pts" 2>/dev/null
[ -z "$BEFORE" ] || eval "$BEFORE"
exec chroot "$ROOT" "$@"
"""
# A server for https on this namespace's own loopback; it has a text, and a certificate that its arguments name.
SERVER = """
import http.server, ssl, sys
server = http.server.HTTPServer(("127.0.0.1", 8443), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[1:3])
server.socket = context.wrap_socket(server.socket, server_side=True)
print("listening", flush=True)
server.serve_forever()
"""
SMALL = ["--steps", "20", "--layers", "1", "--width", "32", "--heads", "2", "--context", "16", "--batch", "8"]

# glibc 2.39 has an exp10 of a newer version, which a kernel linked with the host's would ask for.
KERNEL = """local dev = require("rille").device "cpu"
local tens = dev:kernel [[
__global__ void tens(const double* x, double* y) { y[threadIdx.x] = __builtin_exp10(x[threadIdx.x]); }
]]
local x, y = dev:full { 2, value = 2, dtype = "f64" }, dev:zeros { 2, dtype = "f64" }
tens:launch({ grid = 1, block = 2 }, x, y)
print(y:sum():item())
"""
# A driver as a host has it: it names a part of glibc that has become empty, and seeks it in the host's folders first.
DRIVER = "int cuDriverGetVersion(int *version) { *version = 13000; return 0; }"


def make_driver(folder):
    """A libcuda.so.1 in that folder, or False where there is no compiler."""
    os.makedirs(folder)
    words = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", folder + "/libcuda.so.1", "-Wl,--no-as-needed",
             "-l:libpthread.so.0", "-l:libdl.so.2", "-Wl,-rpath,/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64"]
    return bool(shutil.which("cc")) and subprocess.run(words, input=DRIVER, text=True).returncode == 0


def unpack(archive, folder):
    with tarfile.open(archive) as tar:
        names = {name.split("/")[0] for name in tar.getnames()}
        assert len(names) == 1, names
        tar.extractall(folder)
    return os.path.join(folder, names.pop())


class Place:
    """Where commands run: this machine, or behind a changed root."""

    def __init__(self, bundle, home, root=None):
        self.bundle, self.home, self.root = bundle, home, root

    def words(self, argv):
        if not self.root:
            return argv
        return ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", *argv]

    def env(self, extra):
        env = {"HOME": self.home, "NO_COLOR": "1", "RILLE_THREADS": "1", **extra}
        return {"PATH": os.environ["PATH"], "ROOT": self.root, **env} if self.root else env

    def run(self, *argv, expect=0, cwd=None, **extra):
        done = subprocess.run(self.words(list(argv)), env=self.env(extra), cwd=cwd, capture_output=True, text=True,
                              timeout=200, stdin=subprocess.DEVNULL)
        if done.returncode == 77 and self.root:
            sys.exit("missing: no rights to make namespaces and mounts: sudo ./bootstrap test")
        ok = done.returncode == expect
        return ok, done.stdout + done.stderr

    def rille(self, *words, **extra):
        return self.run(self.bundle + "/bin/rille", *words, **extra)

    def prompt(self, line, until, **extra):
        """What the prompt on a terminal of its own shows for a line, up to a text."""
        pid, terminal = pty.fork()
        if pid == 0:
            words = self.words([self.bundle + "/bin/rille"])
            os.execvpe(words[0], words, self.env({"TERM": "xterm", **extra}))
        shown, sent, deadline = b"", False, time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if select.select([terminal], [], [], 0.5)[0]:
                    shown += os.read(terminal, 65536)
                elif until in shown:
                    os.write(terminal, b"\x04")  # again until it is read: while the line runs it would be lost
            except OSError:
                break
            if b"rille> " in shown and not sent:
                os.write(terminal, line + b"\n")
                sent = True
        else:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return shown.decode(errors="replace")


def check_manifest(bundle):
    manifest = json.load(open(bundle + "/MANIFEST.json"))
    rows = {row["path"]: row for row in manifest["files"]}
    there = {os.path.relpath(os.path.join(folder, name), bundle) for folder, _, names in os.walk(bundle)
             for name in names}
    check("the manifest names every file but itself", there - set(rows) == {"MANIFEST.json"} and set(rows) <= there,
          sorted(there ^ set(rows)))
    check("the bill of materials is in it", "sbom.cdx.json" in rows)
    wrong = [path for path, row in rows.items()
             if hashlib.sha256(open(os.path.join(bundle, path), "rb").read()).hexdigest() != row["sha256"]]
    check("each file has the manifest's SHA-256", not wrong, wrong)
    check("build id, glibc and version are known", all(manifest[key] for key in ("build_id", "glibc", "version")))
    cuda = [path for path in rows if re.search(r"lib(cu|nv|nccl)(?!rl)", path)]
    check("no CUDA library is in it", not cuda, cuda)
    return manifest


def check_use(place, manifest, scratch):
    """What must work in every place."""
    ok, text = place.rille("--version")
    check("it says its version", ok and text == f"rille {manifest['version']}\n", text)
    ok, text = place.rille("doctor", "--json")
    rows = {row["what"]: row for row in json.loads(text)} if ok else {}
    check("doctor finds nothing broken", ok, text)
    found = rows.get("C library", {}).get("found", "")
    check("the C library is the bundle's", found == f"glibc {manifest['glibc']}, of the bundle {place.bundle}", found)
    check("libcurl and oneDNN load", rows and all(rows[k]["state"] == "ok" for k in ("libcurl", "oneDNN")), text)
    ok, text = place.rille("-e", "print(1+1)")
    check("it runs a line of Lua", ok and "2\n" in text, text)
    ok, text = place.rille("run", place.bundle + "/workflows/quickstart.lua", "--data", place.bundle + "/LICENSE",
                           "--out", scratch + "/out", *SMALL)
    check("the quickstart trains in a worker of an agent", ok and "final loss" in text and "released" in text, text)
    shown = place.prompt(b"print(6 * 7)", b"42")
    check("the prompt answers", "42" in shown, shown)
    check("the prompt knows the terminal", "terminal" not in shown.lower(), shown)


def test_here(archive, scratch):
    bundle = unpack(archive, scratch + "/a folder")
    manifest = check_manifest(bundle)
    place = Place(bundle, scratch)
    os.mkdir(scratch + "/bin")
    os.symlink(bundle + "/bin/rille", scratch + "/bin/rille")
    for folder, _, names in os.walk(bundle):
        os.chmod(folder, 0o555)
    check_use(place, manifest, scratch)

    ok, text = place.run("../bin/rille", "--version", cwd=bundle + "/lib")
    check("it runs by a relative path", ok, text)
    ok, text = place.run("bin/rille", "doctor", cwd=scratch)
    check("it runs through a link", ok and bundle in text, text)
    hostile = scratch + "/hostile"
    os.mkdir(hostile)
    for row in manifest["files"]:
        if row["path"].startswith("lib/"):
            open(os.path.join(hostile, os.path.basename(row["path"])), "w").close()
    ok, text = place.rille("doctor", LD_LIBRARY_PATH=hostile)
    check("LD_LIBRARY_PATH does not replace its libraries", ok and re.search(r"libcurl +ok", text), text)

    if make_driver(scratch + "/driver"):
        ok, text = place.rille("doctor", LD_LIBRARY_PATH=scratch + "/driver", LD_DEBUG="libs")
        foreign = re.findall(r"calling init: (\S+/lib(?:c|pthread|dl)\.so\S*)", text.replace(bundle, ""))
        check("the host's CUDA driver loads", ok and "CUDA 13.0" in text, text[-2000:])
        check("it brings no part of the host's glibc along", text.count("calling init") > 10 and not [
            file for file in foreign if not file.startswith("/bin/../lib/")], foreign)

    script = scratch + "/children.lua"
    with open(script, "w") as file:
        file.write("""local box = require("rille").rent("box", { gpu = "cpu" })
          box:exec("env", { argv = { "env" } })
          box:exec("maps", { argv = { "cat", "/proc/self/maps" } })
          box:exec("again", { argv = { arg_rille, "--version" } })
        """.replace("arg_rille", json.dumps(bundle + "/bin/rille")))
    ok, text = place.rille("run", script, PATH=os.environ["PATH"])
    check("programs that it starts run", ok and "libc.so" in text and f"rille {manifest['version']}" in text, text)
    inherited = [line for line in text.splitlines() if bundle in line and not line.startswith("error")]
    check("they inherit no path of the bundle", not inherited, inherited)

    shutil.copy(bundle + "/bin/rille", scratch + "/alone")
    ok, text = place.run(scratch + "/alone", expect=127)
    check("outside of its folder it says what it misses", ok and "lib/ld-linux-x86-64.so.2" in text, text)


def test_signed(archive, scratch):
    key, another = (signed_bundle.make_key(f"{scratch}/{name}.pem") for name in ("key", "another"))
    signed = signed_bundle.sign(archive, key, scratch + "/signed.tar.gz")
    bundle = unpack(signed, scratch + "/signed")
    place = Place(bundle, scratch)
    config = Path(scratch, "config/rille")
    config.mkdir(parents=True)

    def doctor(name, *keys):
        Path(config, "release_keys").write_text("# ours\n" + "".join(one.public for one in keys))
        ok, text = place.rille("doctor", "--json", XDG_CONFIG_HOME=str(config.parent))
        row = {row["what"]: row for row in json.loads(text)}[name] if ok else {}
        return row.get("state"), row.get("found", text)

    state, found = doctor("bundle")
    check("without release keys doctor says that nobody checks the signature", state == "ok" and
          "no release key is trusted here" in found, found)
    state, found = doctor("bundle", another, key)
    check("with the key it says which one signed", state == "ok" and f"signed by the release key {key.id}" in found,
          found)
    state, found = doctor("release keys", another, key)
    check("and which keys are trusted", state == "ok" and f"{another.id}, {key.id}" in found, found)
    state, found = doctor("bundle", another)
    check("another key is not believed", state == "warning" and f"signed by another key, {key.id}" in found, found)
    Path(config, "release_keys").write_text("no key\n")
    ok, text = place.rille("doctor", XDG_CONFIG_HOME=str(config.parent))
    check("a line that is no key is named", "line 1 of" in text and "is not an Ed25519 public key" in text, text)

    # The manual's commands that check a bundle before it is started.
    page = (top / "docs/manual/bundle.md").read_text()
    commands = re.search(r"```sh\n(\$ openssl pkeyutl.*?)```", page, re.S)[1].replace("$ ", "")

    def by_hand(of):
        Path(scratch, "signed/release.pub").write_text(of.public)
        done = subprocess.run(["sh", "-ec", commands], cwd=bundle, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    code, text = by_hand(key)
    check("the manual's commands accept it", code == 0 and "Verified Successfully" in text and
          sorted(text.split()[-2:]) == ["./MANIFEST.json", "./MANIFEST.sig"] and text.count("./") == 2, text)
    code, text = by_hand(another)
    check("but not with another key", code == 1 and "Verification Failure" in text, text)
    foreign = Path(bundle, "lib/glibc-hwcaps/libc.so.6")
    foreign.parent.mkdir()
    foreign.write_text("another library")
    code, text = by_hand(key)
    check("a foreign file is shown", "./lib/glibc-hwcaps/libc.so.6\n" in text and text.count("./") == 3, text)
    state, found = doctor("bundle", key)
    check("and named by doctor", state == "warning" and "does not name lib/glibc-hwcaps/libc.so.6" in found, found)
    shutil.rmtree(foreign.parent)
    Path(bundle, "LICENSE").write_text("another licence\n")
    state, found = doctor("bundle", key)
    check("an altered file is named", state == "warning" and "its file LICENSE was altered" in found, found)
    code, text = by_hand(key)
    check("by the manual's commands too", code == 1 and "LICENSE: FAILED" in text, text)


def no_rights():
    """Why no other root can be entered here; "" if it can."""
    absent = [name for name in ("ip", "openssl") if not shutil.which(name)]
    if absent:
        return f"{' '.join(absent)} not found: apt-get install iproute2 openssl"
    tried = subprocess.run(["unshare", "--mount", "--pid", "--net", "--fork", "true"], capture_output=True)
    return "changing root needs root: sudo ./bootstrap test" if tried.returncode or os.getuid() else ""


def enter(archive, root):
    """The bundle below ROOT/opt, and the folders that ENTER mounts on."""
    for folder in ("proc", "dev/pts", "tmp", "opt"):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    bundle = unpack(archive, root + "/opt")
    return Place(bundle[len(root):], "/tmp/home", root), json.load(open(bundle + "/MANIFEST.json"))


def test_bare(archive, scratch):
    place, manifest = enter(archive, scratch + "/root")
    check("there is no other C library", not os.path.exists(scratch + "/root/lib64"))
    check_use(place, manifest, "/tmp")
    check_certificates(place, scratch)


def check_certificates(place, scratch):
    """Where the system has no certificates, those of the bundle count, and no others."""
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                           "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
                           "-keyout", scratch + "/key.pem", "-out", scratch + "/cert.pem"], capture_output=True)
    assert made.returncode == 0, made.stderr
    open(scratch + "/server.py", "w").write(SERVER)
    before = f"""ip link set lo up; cd {scratch}; mkfifo said; {sys.executable} server.py cert.pem key.pem >said &
      read word <{scratch}/said; rm {scratch}/said"""
    script = """local box = require("rille").rent("box", { gpu = "cpu" })
      box:stage("https://127.0.0.1:8443/server.py", "text")"""
    ok, text = place.rille("-e", script, BEFORE=before, expect=1)
    check("a server that the bundle's certificates do not know is refused", ok and "certificate" in text, text)
    shutil.copy(scratch + "/cert.pem", place.root + place.bundle + "/share/rille/ca-certificates.crt")
    ok, text = place.rille("-e", script, BEFORE=before)
    check("one that they know is spoken to", ok, text)


def test_other(archive, scratch, where):
    """Another Debian: an older glibc, or a newer one."""
    suite = {"old": "bullseye", "new": "trixie"}[where]
    root = os.environ.get(f"RILLE_{where.upper()}_ROOT", scratch + "/root")
    if not os.path.exists(root + "/etc"):
        need.met(lambda: "" if shutil.which("mmdebstrap") else "mmdebstrap not found: apt-get install mmdebstrap")
        made = subprocess.run(["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--include=g++", suite,
                               root, "http://deb.debian.org/debian"], capture_output=True, text=True)
        if made.returncode:
            sys.exit(f"missing: mmdebstrap could not make {suite}: " + made.stderr[-500:])
    shutil.rmtree(root + "/opt", ignore_errors=True)
    place, manifest = enter(archive, root)
    ok, text = place.run("/usr/bin/ldd", "--version")
    version = re.search(r" (\d+\.\d+)$", text.splitlines()[0])[1] if ok else "0"
    theirs, ours = (tuple(map(int, v.split("."))) for v in (version, manifest["glibc"]))
    check(f"its C library ({version}) is {where}er than the bundle's ({manifest['glibc']})",
          theirs < ours if where == "old" else theirs > ours, text)
    check_use(place, manifest, "/tmp")
    shutil.rmtree(root + "/driver", ignore_errors=True)
    if make_driver(root + "/driver"):
        with open(root + "/etc/ld.so.conf.d/driver.conf", "w") as file:
            file.write("/driver\n")
        subprocess.run(["chroot", root, "/sbin/ldconfig"], check=True)
        ok, text = place.rille("doctor")
        check("the driver is found where that system's loader finds it", ok and "CUDA 13.0" in text, text)
    ok, text = place.rille("-e", """local box = require("rille").rent("box", { gpu = "cpu" })
      box:exec("theirs", { argv = { "/usr/bin/ldd", "--version" } })""")
    check("programs that it starts use that system's", ok and version in text, text)
    if os.path.exists(root + "/usr/bin/c++"):
        ok, text = place.rille("-e", KERNEL)
        check("a kernel by that system's compiler uses the bundle's C library", ok and "200\n" in text, text)


def main():
    archive, where = os.path.abspath(sys.argv[1]), sys.argv[2]
    if where not in ("here", "signed"):
        need.met(no_rights)
    scratch = tempfile.mkdtemp(prefix="rille-bundle-")
    try:
        if where in ("old", "new"):
            test_other(archive, scratch, where)
        else:
            {"here": test_here, "bare": test_bare, "signed": test_signed}[where](archive, scratch)
    finally:
        for folder, _, _ in os.walk(scratch):
            os.chmod(folder, 0o755)
        shutil.rmtree(scratch, ignore_errors=True)
    finish()


main()
