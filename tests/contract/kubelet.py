"""A Kubernetes cluster on this machine, as far as a rented pod needs one: the fake API server, a kubelet that runs
each pod's container for real (its command, as root of mount and process namespaces of its own, with an empty /tmp, and
with a folder for each claim that it mounts), and a `kubectl` that knows `exec -i` and `config view`, first in the PATH
of cluster.env. It needs root.

    with Kubelet() as cluster: ..        cluster.settings, cluster.env, cluster.ask("state"), cluster.pods()
"""
import json, os, shutil, signal, subprocess, sys, tempfile, threading, time, urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What kubectl does, by what it says when it cannot. A pod has no variables but its own.
KUBECTL = r'''#!PYTHON -B
import json, os, sys, time, urllib.error, urllib.request
words, options = sys.argv[1:], {}
fail = sys.exit  # to the standard error, with exit code 1
while words and words[0].startswith("--"):
    name, _, value = words.pop(0).partition("=")
    options[name] = value
open("FOLDER/kubectl.log", "a").write(json.dumps(sys.argv[1:]) + "\n")
if words[:2] == ["config", "view"]:
    named = words[words.index("--kubeconfig") + 1] if "--kubeconfig" in words else os.environ["KUBECONFIG"]
    merged = {}
    for file in [f for f in named.split(":") if os.path.exists(f)]:
        try:
            part = json.loads(open(file).read().removeprefix("# yaml\n"))
        except ValueError:
            fail("error: error loading config file: yaml: line 1: did not find expected node content")
        for key, value in part.items():  # the first that says something says it
            if isinstance(value, list):
                names = {one["name"] for one in merged.setdefault(key, [])}
                merged[key] += [one for one in value if one["name"] not in names]
            else:
                merged.setdefault(key, value)
    for word in words:
        if word.startswith("--context="):
            merged["current-context"] = word.partition("=")[2]
    if not [one for one in merged["contexts"] if one["name"] == merged["current-context"]]:
        fail("error: cannot locate context " + merged["current-context"])
    sys.exit(print(json.dumps(merged)))
config = json.load(open(options.get("--kubeconfig") or os.environ["KUBECONFIG"]))
if words[:2] != ["exec", "-i"] or words[3:4] != ["--"]:
    fail("error: unknown command " + " ".join(words[:4]))
server = options.get("--server") or config["clusters"][0]["cluster"]["server"]
space, pod, words = options.get("--namespace", "default"), words[2], words[4:]
request = urllib.request.Request(f"{server}/api/v1/namespaces/{space}/pods/{pod}",
                                 headers={"Authorization": "Bearer " + config["users"][0]["user"].get("token", "")})
try:
    phase = json.load(urllib.request.urlopen(request, timeout=20))["status"]["phase"]
except urllib.error.HTTPError as e:
    fail(f"Error from server ({json.load(e)['reason']}): pods \"{pod}\" not found")
if phase != "Running":
    fail('error: unable to upgrade connection: container not found ("rille")')
file, until = f"FOLDER/pods/{space}.{pod}", time.monotonic() + 20
while not os.path.exists(file):
    if time.monotonic() > until:
        fail('error: unable to upgrade connection: container not found ("rille")')
    time.sleep(0.02)
pid = open(file).read()
os.execve("/usr/bin/nsenter", ["nsenter", "-t", pid, "-m", "-p", "--", *words],
          {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "KUBERNETES_SERVICE_HOST": "10.0.0.1"})
'''
# A container sees this machine's files, but for a /tmp and a /mnt of its own.
CONTAINER = 'mount -t tmpfs none /mnt && {}mount -t tmpfs none /tmp && exec "$@"'


def missing():
    """Why it cannot run here; "" if it can."""
    tried = subprocess.run(["unshare", "-m", "-p", "-f", "--mount-proc", "mount", "-t", "tmpfs", "none", "/tmp"],
                           capture_output=True, text=True)
    return "" if tried.returncode == 0 else f"a pod needs root: sudo ./bootstrap test ({tried.stderr.strip()})"


class Kubelet:
    def __init__(self, *words):
        self.words, self.running, self.stop = words, {}, threading.Event()
        self.ended, self.told = set(), set()

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="rille-kubelet-")
        Path(self.folder, "pods").mkdir()
        Path(self.folder, "bin").mkdir()
        kubectl = Path(self.folder, "bin/kubectl")
        kubectl.write_text(KUBECTL.replace("PYTHON", sys.executable).replace("FOLDER", self.folder))
        kubectl.chmod(0o755)
        self.fake = subprocess.Popen([sys.executable, "-B", str(HERE / "fakes/kubernetes.py"), *self.words],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        told = json.loads(self.fake.stdout.readline())
        self.url, self.settings, self.token = f"http://127.0.0.1:{told['port']}", told["settings"], told["secrets"][0]
        self.env = dict(os.environ, **told["env"], PATH=f"{self.folder}/bin:{os.environ['PATH']}")
        self.thread = threading.Thread(target=self.keep)
        self.thread.start()
        return self

    def ask(self, what, **more):
        body = None if what == "state" else json.dumps(more).encode()
        return json.loads(urllib.request.urlopen(urllib.request.Request(f"{self.url}/_fake/{what}", body),
                                                 timeout=20).read())

    def pods(self):
        request = urllib.request.Request(self.url + "/api/v1/pods", headers={"Authorization": "Bearer " + self.token})
        return json.loads(urllib.request.urlopen(request, timeout=20).read())["items"]

    def calls(self):
        """What kubectl was asked."""
        log = Path(self.folder, "kubectl.log")
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def keep(self):
        while not self.stop.wait(0.05):
            wanted = {}
            for pod in self.pods():
                meta = pod["metadata"]
                if pod["status"]["phase"] == "Running":
                    wanted[meta["namespace"] + "." + meta["name"]] = pod
            ending = {name for name, pod in wanted.items() if "deletionTimestamp" in pod["metadata"]}
            for name in set(wanted) - set(self.running) - self.ended - ending:
                self.begin(name, wanted[name])
            for name, process in list(self.running.items()):
                if name in ending - self.told:  # from now on its grace runs, at whose end its pod is gone
                    self.told.add(name)
                    self.tell(name)
                if process.poll() is not None and name in set(wanted) - ending:
                    self.ask("finish", id=wanted[name]["metadata"]["labels"]["job-name"],
                             exit_code=process.returncode)
                if process.poll() is not None or name not in wanted:
                    self.end(name)

    def begin(self, name, pod):
        container, mounts = pod["spec"]["containers"][0], ""
        claims = {
            v["name"]: v["persistentVolumeClaim"]["claimName"]
            for v in pod["spec"].get("volumes", []) if "persistentVolumeClaim" in v
        }
        for mount in container.get("volumeMounts", []):
            if mount["name"] in claims:
                folder = Path(self.folder, "claims", claims[mount["name"]])
                folder.mkdir(parents=True, exist_ok=True)
                mounts += f"mkdir -p {mount['mountPath']} && mount --bind {folder} {mount['mountPath']} && "
        process = subprocess.Popen(
            ["unshare", "-m", "--propagation", "private", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-c",
             CONTAINER.format(mounts), "sh", *container["command"]],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}, stdin=subprocess.DEVNULL)
        self.running[name] = process
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while process.poll() is None and not children.read_text().split():
            time.sleep(0.005)
        if process.poll() is None:
            Path(self.folder, "new").write_text(children.read_text().split()[0])
            os.rename(f"{self.folder}/new", f"{self.folder}/pods/{name}")

    def tell(self, name):
        """The container's first process is asked to end."""
        file = Path(self.folder, "pods", name)
        if file.exists() and self.running[name].poll() is None:
            os.kill(int(file.read_text()), signal.SIGTERM)

    def end(self, name):
        process = self.running.pop(name)
        self.ended.add(name)
        Path(self.folder, "pods", name).unlink(missing_ok=True)
        process.kill()  # and by --kill-child all that is in it
        process.wait(10)

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(30)
        for name in list(self.running):
            self.end(name)
        self.fake.stdin.close()
        self.fake.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)
