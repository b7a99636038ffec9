"""A stand-in for Docker: a `docker` (or `podman`) to put into the PATH, and behind it an engine, which runs programs as
containers beneath itself, so that they outlive the command that started them. It knows run, rm -f and container
inspect, as Rille says them, and tells every command and the most containers there were at once."""
import json, os, shutil, signal, socket, subprocess, sys, tempfile, threading
from pathlib import Path

CLIENT = r'''#!PYTHON -B
import json, os, signal, socket, sys, threading
def ask(**what):
    s = socket.socket(socket.AF_UNIX)
    s.connect("FOLDER/engine")
    s.sendall(json.dumps(what).encode() + b"\n")
    return s
words = sys.argv[1:]
values = {words[i + 1]: os.environ[words[i + 1]] for i, w in enumerate(words) if w == "-e"}
name = words[words.index("--name") + 1] if "--name" in words else words[-1]
if words[0] == "run":  # a signal goes to the program, as docker's --sig-proxy has it
    signal.signal(signal.SIGTERM, lambda *_: ask(words=["kill"], name=name))
reply = ask(words=words, name=name, values=values)
def forward():
    while piece := os.read(0, 65536):
        reply.sendall(piece)
    reply.shutdown(socket.SHUT_WR)
if "-i" in words:
    threading.Thread(target=forward, daemon=True).start()
stream = reply.makefile("rb")
while head := stream.read(5):  # which stream, and how much: as Docker's own attach
    size = int.from_bytes(head[1:], "big")
    if head[0] == 3:
        os._exit(size)
    os.write(head[0], stream.read(size))
os._exit(255)
'''
# With a value after them; the others stand alone.
VALUED = ("--name", "--network", "--ipc", "--gpus", "--device", "--user", "-v", "-w", "-e")


class Docker:
    def __init__(self, name="docker"):
        self.folder, self.name = tempfile.mkdtemp(prefix="rille-docker-"), name
        self.commands, self.containers, self.most, self.lock = [], {}, 0, threading.Lock()

    def __enter__(self):
        Path(self.folder, "bin").mkdir()
        client = Path(self.folder, "bin", self.name)
        client.write_text(CLIENT.replace("PYTHON", sys.executable).replace("FOLDER", self.folder))
        client.chmod(0o755)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.folder + "/engine")
        self.socket.listen(100)
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client, ), daemon=True).start()

    def serve(self, client):
        line = b""
        while not line.endswith(b"\n"):
            line += client.recv(1)
        asked = json.loads(line)
        words, name = asked["words"], asked["name"]
        if words[0] == "kill":
            if name in self.containers:
                self.containers[name].send_signal(signal.SIGTERM)
            return client.close()
        self.commands.append(words)
        code = {"run": self.run, "rm": self.remove}.get(words[0], self.inspect)(client, words, name, asked["values"])
        self.tell(client, 3, size=code)
        client.close()

    def tell(self, client, stream, data=b"", size=None):
        try:
            with self.lock:
                client.sendall(bytes([stream]) + (len(data) if size is None else size).to_bytes(4, "big") + data)
        except OSError:
            pass  # the client was killed

    def copy(self, client, stream, pipe):
        while piece := os.read(pipe.fileno(), 65536):
            self.tell(client, stream, piece)

    def feed(self, client, pipe):
        try:
            while piece := client.recv(65536):
                os.write(pipe.fileno(), piece)
        except OSError:
            pass
        pipe.close()

    def run(self, client, words, name, values):
        at = 1
        while words[at].startswith("-"):
            at += 2 if words[at] in VALUED else 1
        if words[at] == "no/such:image":
            self.tell(client, 2, b"Unable to find image 'no/such:image' locally\n")
            return 125
        program = subprocess.Popen(
            words[at + 1:], cwd=words[words.index("-w") + 1], env=dict(values, PATH="/usr/bin:/bin", IMAGE=words[at]),
            stdin=subprocess.PIPE if "-i" in words else subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
        self.containers[name] = program
        self.most = max(self.most, len(self.containers))
        other = threading.Thread(target=self.copy, args=(client, 2, program.stderr))
        other.start()
        if program.stdin:
            threading.Thread(target=self.feed, args=(client, program.stdin), daemon=True).start()
        self.copy(client, 1, program.stdout)
        other.join()
        code = program.wait()
        self.containers.pop(name, None)  # --rm
        return 128 - code if code < 0 else code

    def remove(self, client, words, name, _):
        program = self.containers.get(name)
        if not program:
            return 1  # as before docker 27
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        self.containers.pop(name, None)
        return 0

    def inspect(self, client, words, name, _):
        return 0 if name in self.containers else 1

    def __exit__(self, *_):
        self.socket.close()
        for program in list(self.containers.values()):
            program.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
