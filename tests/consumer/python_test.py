"""The Python package: its wheel in a fresh environment, runs, functions, coroutines, arrays without a copy, interrupts,
ends in any order.
usage: python_test.py LIBRARY        (the Python that runs this has setuptools and NumPy)"""
import os, subprocess, sys, sysconfig, tempfile

here = os.path.dirname(os.path.abspath(__file__))
source = os.path.join(here, "..", "..", "bindings", "python")


def fresh(work, library):
    """The Python of a new environment with the wheel; NumPy comes from this one."""
    env = dict(os.environ, RILLE_LIBRARY=os.path.abspath(library), PIP_DISABLE_PIP_VERSION_CHECK="1")
    quiet = dict(check=True, stdout=subprocess.DEVNULL, env=env)
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index", "-w",
                    work, copied(work)], **quiet)
    wheel, = (f for f in os.listdir(work) if f.endswith(".whl"))
    subprocess.run([sys.executable, "-m", "venv", work + "/venv"], **quiet)
    subprocess.run([work + "/venv/bin/pip", "install", "-q", "--no-index", "--no-deps", f"{work}/{wheel}"], **quiet)
    return work + "/venv/bin/python"


def copied(work):
    """The package's source, so that building leaves nothing in the checkout."""
    import shutil
    left = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    return shutil.copytree(source, work + "/source", ignore=left)


def main():
    with tempfile.TemporaryDirectory(prefix="rille-python-") as work:
        python = fresh(work, sys.argv[1])
        env = {k: v for k, v in os.environ.items() if k != "RILLE_LIBRARY"}
        env.update(PYTHONPATH=sysconfig.get_path("purelib"), RILLE_HOME=work + "/home")
        for program in (os.path.join(here, "python_host.py"), os.path.join(here, "python_ends.py"),
                        os.path.join(source, "examples", "asyncio_host.py")):
            done = subprocess.run([python, "-B", program], env=env, cwd=work)
            if done.returncode:
                sys.exit(f"{program} ended with {done.returncode}")


if __name__ == "__main__":
    main()
