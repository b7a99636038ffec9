"""A real Slurm of four nodes on this machine, in a temporary folder, with a munge of its own: three nodes with four
GPUs (by name; their files are terminals), one without. Jobs of the partition `high` take the nodes of those of `low`,
after a grace of 30 s, and of `rude`, at once. It needs root. `with Slurm() as cluster:`; cluster.env has what Slurm's
commands need; more lines for slurm.conf are Slurm's words."""
import os, shutil, signal, socket, subprocess, tempfile, time
from pathlib import Path

SBIN = "/usr/sbin:/sbin:/usr/local/sbin"
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo", "scontrol")


def missing():
    """Why it cannot run here; "" if it can."""
    path = os.environ["PATH"] + ":" + SBIN
    absent = [name for name in NEEDED if not shutil.which(name, path=path)]
    if absent:
        return f"{' '.join(absent)} not found: apt-get install slurm-wlm munge"
    return "" if os.getuid() == 0 else "Slurm's daemons need root: sudo ./bootstrap test"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Slurm:
    def __init__(self, *lines):
        self.lines = "\n".join(lines)
        self.folder = tempfile.mkdtemp(prefix="rille-slurm-")
        self.env = dict(os.environ, SLURM_CONF=f"{self.folder}/slurm.conf",
                        PATH=os.environ["PATH"] + ":" + SBIN)
        for name in [n for n in self.env if n.startswith("SLURM_") and n != "SLURM_CONF"]:
            del self.env[name]
        self.processes = []

    def configure(self):
        ports, host = free_ports(5), socket.gethostname()
        f = self.folder
        Path(f, "key").write_bytes(os.urandom(1024))
        os.chmod(f"{f}/key", 0o600)
        nodes = "\n".join(f"NodeName=fake{n} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[n]} CPUs=4 "
                          f"RealMemory=2000{' Gres=gpu:h100:4' if n < 4 else ''}" for n in range(1, 5))
        Path(f, "slurm.conf").write_text(f"""ClusterName=rille
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={f}/munge.sock
StateSaveLocation={f}/state
SlurmdSpoolDir={f}/spool/%n
SlurmctldPidFile={f}/slurmctld.pid
SlurmdPidFile={f}/slurmd-%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
KillWait=10
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
{self.lines}
{nodes}
PartitionName=gpu Nodes=fake[1-3] Default=YES MaxTime=24:00:00 PreemptMode=OFF State=UP
PartitionName=short Nodes=fake[1-3] MaxTime=10 PreemptMode=OFF State=UP
PartitionName=cpu Nodes=fake4 MaxTime=INFINITE PreemptMode=OFF State=UP
PartitionName=low Nodes=fake[1-3] MaxTime=60 PreemptMode=REQUEUE GraceTime=30 State=UP
PartitionName=rude Nodes=fake[1-3] MaxTime=60 PreemptMode=REQUEUE State=UP
PartitionName=high Nodes=fake[1-3] MaxTime=60 PriorityTier=10 PreemptMode=OFF State=UP
""")
        Path(f, "gres.conf").write_text("AutoDetect=off\nNodeName=fake[1-3] Name=gpu Type=h100 Count=4 "
                                        "File=/dev/tty[0-3]\n")
        for part in ("state", *(f"spool/fake{n}" for n in range(1, 5))):
            os.makedirs(f"{f}/{part}")

    def start(self, name, *words):
        with open(f"{self.folder}/{name}.log", "ab") as log:
            self.processes.append(subprocess.Popen(words, env=self.env, stdout=log, stderr=log,
                                                   stdin=subprocess.DEVNULL, start_new_session=True))

    def run(self, *words, check=True):
        return subprocess.run(words, env=self.env, check=check, capture_output=True, text=True, timeout=60).stdout

    def until(self, what, holds, seconds=60):
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                raise RuntimeError(f"{what}: not after {seconds} s\n" + self.logs())
            time.sleep(0.1)

    def logs(self):
        return "\n".join(f"{p.name}: {p.read_text(errors='replace')[-800:]}" for p in Path(self.folder).glob("*.log"))

    def __enter__(self):
        try:
            self.configure()
            f = self.folder
            self.start("munged", "munged", "-F", "--force", f"--key-file={f}/key", f"--socket={f}/munge.sock",
                       f"--pid-file={f}/munged.pid", f"--seed-file={f}/seed", f"--log-file={f}/munged.log")
            self.until("munge", lambda: os.path.exists(f"{f}/munge.sock"))
            self.start("slurmctld", "slurmctld", "-D", "-c", "-f", f"{f}/slurm.conf")
            for n in range(1, 5):
                self.start(f"slurmd{n}", "slurmd", "-D", "-f", f"{f}/slurm.conf", "-N", f"fake{n}")
            self.until("four idle nodes", lambda: self.states().count("idle") == 4)
            return self
        except BaseException:
            self.__exit__()
            raise

    def states(self):
        return self.run("sinfo", "-h", "-N", "-p", "gpu,cpu", "-o", "%T", check=False).split()

    def jobs(self):
        """Those that have not ended: their states."""
        return self.run("squeue", "-h", "-o", "%T", check=False).split()

    def ours(self):
        """All jobs of Rille that are still known: (number, state, node, start, end), in seconds, by their start."""
        rows = [[cell.strip() for cell in line.split("|")] for line in self.run(
            "env", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "-t", "all", "-O",
            "Name:200|,JobID:20|,State:20|,NodeList:60|,StartTime:20|,EndTime:20|").splitlines()]
        jobs = [(int(r[1]), r[2], r[3], *(int(t) if t.isdigit() else 0 for t in r[4:6])) for r in rows
                if r[0].startswith("rille-")]
        return sorted(jobs, key=lambda job: job[3])

    def take(self, node):
        """A job that wants all of a node and may have it; its number."""
        return self.run("sbatch", "--parsable", "--exclusive", "-p", "high", "-w", node, "-t", "30", "-o", "/dev/null",
                        "--wrap", "sleep 900").strip()

    def down(self, node):
        self.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")

    def up(self, node):
        self.run("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)

    def __exit__(self, *_):
        if self.jobs():
            self.run("scancel", "-u", "root", check=False)
            end = time.monotonic() + 20
            while self.jobs() and time.monotonic() < end:
                time.sleep(0.1)
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
