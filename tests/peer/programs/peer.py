"""A Python that has torch: this one, RILLE_TORCH_PYTHON, or the virtual environment of the test peer.torch. Nothing is
installed here; without torch the test is skipped (exit code 77)."""
import importlib.util, os, pathlib, subprocess, sys


def enter(folder):
    if importlib.util.find_spec("torch"):
        return
    python = os.environ.get("RILLE_TORCH_PYTHON") or str(pathlib.Path(folder) / "bin" / "python")
    if os.environ.get("RILLE_PEER_INSIDE") or not os.access(python, os.X_OK):
        print("skipped: no torch (RILLE_TORCH_PYTHON names a Python that has it)")
        sys.exit(77)
    sys.exit(subprocess.run([python, *sys.argv], env=dict(os.environ, RILLE_PEER_INSIDE="1")).returncode)


if len(sys.argv) > 2:
    enter(sys.argv[2])
