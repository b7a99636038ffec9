"""The places where one unchanged script rents: each with the settings of its provider, the environment of its runner,
and what is alive there. `with PLACES["ssh"](root) as place:`; place.missing() says why it cannot be here."""
import json, os, subprocess, sys, threading, urllib.request
from pathlib import Path

CONTRACT = Path(__file__).resolve().parent.parent / "contract"
sys.path[:0] = [str(CONTRACT)]
import first_boot, kubelet, moto_cloud, slurm, sshd


def marked(folder):
    """Processes of the instances below a folder."""
    found, mark = [], f"RILLE_INSTANCE={folder}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


class Local:
    """This machine, without any settings."""
    provider, words, missing = "local", (), staticmethod(lambda: "")

    def __init__(self, root):
        self.root, self.env = root, dict(os.environ)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def settings(self):
        return None

    def alive(self):
        folder = Path(self.root, "home/instances")
        return [p.name for p in folder.glob("i-*")] + marked(folder) if folder.exists() else []


class Ssh(Local):
    """A real sshd on the loopback, on a host without GPUs."""
    provider, words = "ssh", ("--gpu", "cpu")

    @staticmethod
    def missing():
        return "" if os.path.exists(first_boot.sshd()) else "sshd not found: apt-get install openssh-server"

    def __enter__(self):
        self.host = sshd.Sshd().__enter__()
        return self

    def __exit__(self, *_):
        self.host.__exit__()

    def settings(self):
        return {"hosts": [self.host.settings(price=1.25)], "options": self.host.options()}

    def alive(self):
        rented = Path(self.host.folder, "rented")
        return [p.name for p in rented.glob("i-*")] + marked(rented)


class Slurm(Local):
    """A real Slurm of four nodes."""
    provider, missing = "slurm", staticmethod(slurm.missing)
    words = ("--gpu", "H100:2", "--ttl", "30m", "--unchecked")  # it has no such cards

    def __enter__(self):
        self.cluster = slurm.Slurm().__enter__()
        self.env, self.folder = dict(self.cluster.env), Path(self.root, "nodes")
        self.folder.mkdir()
        return self

    def __exit__(self, *_):
        self.cluster.__exit__()

    def settings(self):
        return {"directory": str(self.folder), "price": 1.25}

    def alive(self):
        return self.cluster.jobs() + [p.name for p in self.folder.glob("rille-*")] + marked(self.folder)


class Aws(Local):
    """The scripted fake of EC2, whose machines start here by their own user data."""
    provider, missing = "aws", staticmethod(first_boot.missing)
    words = ("--gpu", "T4", "--ttl", "2h", "--unchecked")

    def __enter__(self):
        first_boot.prepare(self.root)
        self.fake = subprocess.Popen([sys.executable, "-B", str(CONTRACT / "fakes/aws.py")], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        self.told = json.loads(self.fake.stdout.readline())
        self.env.update(self.told["env"], HOME=self.root)
        self.boots, self.stop = {}, threading.Event()
        self.thread = threading.Thread(target=self.keep)
        self.thread.start()
        return self

    def seen(self):
        """[(id, whether it has ended, its user data)]"""
        state = self.state()
        data = [found for c in state["calls"] if c["status"] == 200 and
                (found := first_boot.user_data(c["parameters"]))]
        return [(m["id"], m["state"] in ("gone", "ending", "failed"), data[n])
                for n, m in enumerate(state["machines"])]

    def state(self):
        url = f"http://127.0.0.1:{self.told['port']}/_fake/state"
        return json.loads(urllib.request.urlopen(url, timeout=20).read())

    def keep(self):
        """Starts what is created, and pulls the plug of what has ended: one machine at a time has port 22."""
        while not self.stop.wait(0.05):
            for machine, over, data in self.seen():
                if machine not in self.boots and not over:
                    self.boots[machine] = first_boot.begin(self.root, data)
                elif over and self.boots.get(machine):
                    self.end(machine)

    def end(self, machine):
        self.boots[machine].kill()
        self.boots[machine].wait(20)
        self.boots[machine] = None

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(30)
        for machine in [m for m, boot in self.boots.items() if boot]:
            self.end(machine)
        self.fake.stdin.close()
        self.fake.wait(10)

    def settings(self):
        settings, zone = dict(self.told["settings"], traits=dict(visibility_lag_ms=300)), self.told["settings"]["zone"]
        return dict(settings, regions=[r for r in settings["regions"] if zone.startswith(r)])

    def alive(self):
        return ["machine"] * self.state()["alive"] + [m for m, boot in self.boots.items() if boot]


class Moto(Aws):
    """EC2 as moto plays it; the prices are the fake's, since moto has none."""

    def __enter__(self):
        self.moto, self.known = moto_cloud.Moto(), set()
        return super().__enter__()

    def __exit__(self, *_):
        super().__exit__()
        self.moto.close()

    def seen(self):
        out = []
        for machine, state, address in self.moto.machines():
            over = state in ("shutting-down", "terminated")
            if not over and address not in self.known:
                self.known.add(address)
                self.moto.is_ours(address)
            out.append((machine, over, "" if over else self.moto.user_data(machine)))
        return out

    def settings(self):
        told = self.told["settings"]
        return {"regions": ["us-east-1"], "image": self.moto.image, "traits": {"visibility_lag_ms": 300},
                "endpoints": dict(told["endpoints"], ec2=self.moto.url)}

    def alive(self):
        return [m for m, state, _ in self.moto.machines() if state != "terminated"] + self.moto.disks() + [
            m for m, boot in self.boots.items() if boot]


class Kubernetes(Local):
    """The fake API server, with pods that run here and a kubectl that enters them."""
    provider, missing = "kubernetes", staticmethod(kubelet.missing)
    words = ("--gpu", "T4", "--ttl", "2h", "--unchecked")

    def __enter__(self):
        self.cluster = kubelet.Kubelet().__enter__()
        self.env = dict(self.cluster.env)
        return self

    def __exit__(self, *_):
        self.cluster.__exit__()

    def settings(self):
        return dict(self.cluster.settings, price=0.5, priority_class="batch", image="registry.example/cuda:12",
                    traits=dict(visibility_lag_ms=300), node_selector={"node.kubernetes.io/instance-type": "g4"})

    def alive(self):
        return [p["metadata"]["name"] for p in self.cluster.pods()] + list(self.cluster.running)

    def ordered(self):
        """The Jobs that were created."""
        return [c["parameters"] for c in self.cluster.ask("state")["calls"] if c["operation"] == "createJob"]


PLACES = dict(local=Local, ssh=Ssh, slurm=Slurm, aws=Aws, moto=Moto, kubernetes=Kubernetes)
