"""What tests/gpu/run runs, in this order, and the goals that its figures are held to.

A check is a Lua script beside this file (or a workflow of the bundle) that takes --device and returns
{ figures = { { name =, value =, unit = }, .. } }, or { not_run = "why" }; it fails by raising an error. Its CPU twin is
the same script on the CPU, small. A new check is one line here and one script.
"""
from __future__ import annotations

import dataclasses

TOTAL_S = 480  # all of it, on one GPU
SMALL_GPT = ["--layers", "2", "--heads", "4", "--width", "128", "--vocab", "512"]
QUICK = ["--steps", "20", "--layers", "1", "--heads", "2", "--width", "32", "--context", "16", "--batch", "8",
         "--log_every", "1"]
PEAK_BF16_TFLOPS = {"H100": 989, "H200": 989, "A100": 312, "B200": 2250}  # dense, NVIDIA's data sheets


@dataclasses.dataclass(frozen=True)
class Check:
    name: str
    what: str
    # below tests/gpu, or workflows/.. of the bundle. Peers: a .py is run by PyTorch's Python, a .cpp has been built
    # (the build's target of its name), and runs by the bundle's loader
    script: str
    gpu: list  # arguments on a GPU; {device}, {peak} and {bundle} are filled in
    gpu_limit_s: int
    cpu: list | None = None  # arguments of the twin on the CPU; None: it has none
    cpu_limit_s: int = 60
    # A workflow rents; its call names no device, and its result's `device` has to be {device} on a GPU, else "cpu".
    says_device: bool = False
    # It runs once more with RILLE_DEVICE=cpu, and the losses of its first steps may differ from those by this.
    beside_cpu: float = 0
    must: tuple = ()  # (figure, bound): it fails where one is not kept; a bound: see harness.kept
    home: str = "home"  # RILLE_HOME, a folder that begins empty; checks of one name share it
    # Its time is not kept for it: it is begun where gpu_limit_s are left, and not run else.
    spare: bool = False
    picture: tuple = ()  # (PNG that it writes, PPM beside this file, the mean difference that it may have, of 255)


B64 = ["--device", "{device}", "--dtype", "bf16"]  # GPT-2 124M in full, as gpt2.lua and its peer have it
B4 = ["--device", "{device}", "--dtype", "bf16", "--batch", "4", "--context", "256", "--steps", "50"]
SMALL_B4 = [*SMALL_GPT, "--batch", "4", "--context", "64"]
SMALL_B1 = [*SMALL_GPT, "--batch", "1", "--context", "16"]

EXACT, HALVES = ["--dtypes", "f32,f64,i64,i32,i8,u8"], ["--dtypes", "bf16,f16"]
START = ["--warmup", "3", "--steps", "1"]  # two plain calls, two replays
HEADS_64 = ["--dtype", "bf16", "--width", "128", "--heads", "2", "--context", "96", "--batch", "2"]
HEADS_128 = ["--dtype", "bf16", "--width", "256", "--heads", "2", "--context", "96", "--batch", "2"]
LAYERS_4 = [*HEADS_64, "--layers", "4"]
DROPPED = [*HEADS_64[:-2], "--dropout", "0.1", "--bound", "0.03"]

# The other workflows: name, what it is, arguments here and in the twin, seconds, what its figures have to be.
BYTES = ["--data", "{bundle}/docs", "--heads", "2", "--width", "128", "--context", "64", "--batch", "16"]
FEW = ["--data", "{bundle}/LICENSE", "--layers", "1", "--heads", "2", "--width", "32", "--context", "16", "--batch",
       "4", "--steps", "60", "--dtype", "f32", "--lr", "0.01"]
PICTURE = ["--width", "64", "--height", "40", "--samples", "1", "--out", "{scratch}/picture.png"]
HEAT, DIGITS = ["--size", "64", "--waves", "2", "--time", "0.05"], ["--steps", "150", "--noise", "0.2"]
BODIES = ["--bodies", "300", "--steps", "40"]
STRIPES = ["--depth", "18", "--width", "4", "--classes", "4", "--crop", "20", "--batch", "16", "--every", "30", "--lr",
           "1", "--ema", "0.9", "--steps", "60", "--dtype", "f32", "--out", "{scratch}/resnet50.safetensors"]
GPT2 = ["--out", "{scratch}/gpt2.safetensors", "--accumulate", "2"]
BERT = ["--out", "{scratch}/bert.safetensors", "--dropout", "0"]
WORKFLOWS = [
    ("nbody", "gravity: a kernel with shared memory", BODIES, BODIES, 6, (("drift", "<= 1e-4"), ("before", "<= -0.1"))),
    ("raytrace", "a kernel draws a picture", PICTURE, PICTURE, 6, (("brightness", ">= 145"), ("brightness", "<= 150"))),
    ("heat_fft", "heat by Fourier transforms; the formula: exp(-0.4)", HEAT, HEAT, 6,
     (("fading", ">= 0.67031"), ("fading", "<= 0.67033"))),
    ("mlp", "digits", DIGITS, DIGITS, 6, (("accuracy", ">= 0.8"),)),
    ("resnet50", "stripes", STRIPES, STRIPES, 10, (("accuracy", ">= 0.8"),)),
    ("bert", "masked bytes in bf16", [*BERT, *BYTES, "--layers", "2", "--steps", "100", "--lr", "1e-3"],
     [*BERT, *FEW], 8, (("loss", "<= 4"),)),
    ("gpt2", "bytes in bf16", [*GPT2, *BYTES, "--layers", "2", "--steps", "60", "--lr", "3e-3"], [*GPT2, *FEW], 8,
     (("validation", "<= 4"),)),
]


def workflow(name, what, gpu, cpu, limit_s, must, title="workflow", **more):
    return Check(f"{title} {name}", what, f"workflows/{name}.lua", gpu, limit_s, cpu, 100, says_device=True, must=must,
                 **more)


# The same in full size, a few steps each, for time, memory and rate; what is right shows, too. A loss falls by a tenth
# at least. Their twins run what the small ones above do not.
IDS, VALIDATED = ["--data", "{ids}", "--ids"], ["--validation", "{ids}"]
TINY = ["--layers", "1", "--heads", "2", "--width", "32", "--context", "16", "--dtype", "f32", "--lr", "0.01"]
FALLS, FASTER = ("loss", "<= 0.9 * first_loss"), ("rate", ">= 1")
SCENE = ["--out", "{scratch}/large.png"]
FULL = [
    ("gpt2", "GPT-2 124M, B=64 T=1024, bf16",
     [*GPT2[:2], *IDS, *VALIDATED, "--vocab", "50304", "--accumulate", "1", "--steps", "30"],
     [*GPT2[:2], *IDS, *VALIDATED, *TINY, "--vocab", "32000", "--accumulate", "2", "--batch", "4", "--steps", "30"], 40,
     (FALLS, FASTER, ("validation", "<= 0.9 * first_loss")), {}),
    ("resnet50", "ResNet-50, B=256, 224 x 224, bf16", [*STRIPES[-2:], "--steps", "30"],
     [*STRIPES[:-6], "--steps", "30", *STRIPES[-4:]], 40, (FALLS, FASTER), {}),
    ("bert", "BERT-base, B=64 T=128, bf16, dropout",
     [*BERT[:2], *IDS, "--context", "128", "--batch", "64", "--steps", "60", "--lr", "3e-4"],
     [*BERT[:2], *IDS, *TINY, "--batch", "8", "--steps", "80"], 30, (FALLS, FASTER), {}),
    # Of a Gaussian cloud of mass 1 at rest: -1 / (2 sqrt(pi)) = -0.2821, a little less for the softening.
    ("nbody", "131,072 bodies: energy of the cloud, and how it is kept", ["--bodies", "131072", "--steps", "50"],
     ["--bodies", "1500", "--steps", "20"], 12,
     (("drift", "<= 1e-4"), ("before", "<= -0.26"), ("before", ">= -0.30"), FASTER), {}),
    ("heat_fft", "8192 x 8192 cells; the formula: exp(-0.18)", ["--size", "8192"], ["--size", "128"], 12,
     (("fading", ">= 0.83526"), ("fading", "<= 0.83528"), ("lost", "<= 1e-5"), FASTER), {}),
    ("raytrace", "1920 x 1080, 64 rays a pixel, beside the CPU's small picture",
     [*SCENE, "--width", "1920", "--height", "1080", "--samples", "8"],
     [*SCENE, "--width", "128", "--height", "72", "--samples", "16"], 15, (FASTER,),
     {"picture": ("{scratch}/large.png", "raytrace.ppm", 1)}),
    ("mlp", "784-128-10, B=64, 400 steps", [], ["--steps", "120", "--noise", "0.2"], 10,
     (("accuracy", ">= 0.75"), FASTER), {}),
]


# The most valuable first, for the time may end before the last: what is right, then what the goals are about.
CHECKS = [
    # Shows why a check misses a limit below: a library that takes long to load, or fails.
    Check("libraries", "the first call of each library of NVIDIA's, and the second", "libraries.lua",
          ["--device", "{device}"], 20, []),
    # Work that is not done in time is reported, and misses a goal.
    Check("operations", "values and gradients of each operation beside the CPU's", "operations.lua",
          ["--device", "{device}", *EXACT, "--seconds", "17"], 22, EXACT),
    Check("operations in half types", "the same in bf16 and f16", "operations.lua",
          ["--device", "{device}", *HALVES, "--seconds", "12"], 17, HALVES),
    Check("gradients bf16, heads of 64", "of a transformer by the flash kernels, beside an oracle that rounds",
          "gradients.lua", ["--device", "{device}", *HEADS_64], 8, HEADS_64),
    Check("training", "losses as on the CPU, bits as before", "training.lua", ["--device", "{device}"], 15, []),
    Check("gpt2", "GPT-2 124M, B=64 T=1024", "gpt2.lua", [*B64, "--peak", "{peak}"], 28, SMALL_B4),
    Check("torch compile", "the same by torch.compile", "torch_gpt2.py", [*B64, "--mode", "compile"], 56, SMALL_B4),
    Check("gpt2 small batch", "GPT-2 124M, B=4 T=256", "gpt2.lua", [*B4, "--peak", "{peak}"], 15, SMALL_B1),
    Check("torch eager", "the same by torch", "torch_gpt2.py", B4, 20, SMALL_B1),
    Check("torch reduce-overhead", "the same by torch.compile with CUDA graphs", "torch_gpt2.py",
          [*B4, "--mode", "reduce-overhead"], 36, SMALL_B1),
    # Lua's call notes the launch and returns; a thread of the device launches it. The driver's call is on the caller's.
    # So goals are for bursts with the wait for the device; the calling thread's time is shown beside it.
    Check("launch", "bursts of Lua's launches and of replays, the calling thread's time and the device's", "launch.lua",
          ["--device", "{device}", "--image", "{scratch}/launch.cubin"], 12, ["--rounds", "5", "--replays", "20"]),
    Check("launch floor", "the same of cuLaunchKernel and of cuGraphLaunch", "launch_floor.cpp",
          ["{scratch}/launch.cubin", "nothing"], 7),
    Check("streams", "launches on streams: order where they share, side by side where not", "streams.lua",
          ["--device", "{device}"], 5, ["--turns", "20000", "--rounds", "3"]),
    Check("gradients", "of a transformer beside float64 on the CPU", "gradients.lua", ["--device", "{device}"], 12, []),
    Check("gradients bf16", "the same under autocast, beside an oracle that rounds", "gradients.lua",
          ["--device", "{device}", "--dtype", "bf16"], 8, ["--dtype", "bf16"]),
    Check("gradients bf16, heads of 128", "the same", "gradients.lua", ["--device", "{device}", *HEADS_128], 8,
          HEADS_128),
    Check("gradients bf16, 4 layers", "the same through four blocks", "gradients.lua",
          ["--device", "{device}", *LAYERS_4], 10, LAYERS_4),
    Check("kernels", "user kernels: barriers, shared memory, atomics, shuffles", "kernels.lua",
          ["--device", "{device}"], 10, []),
    Check("training bf16", "the same in bf16 with dropout, heads of 64", "training.lua",
          ["--device", "{device}", *DROPPED], 12, DROPPED),
    # What a new process waits for: loading the libraries, and the kernels that NVRTC makes for a plan's groups, which
    # are kept in RILLE_HOME/cache/kernels; plans are made anew. Calls 1 and 2 are plain, the third is the first replay.
    Check("start, cold", "GPT-2 124M from the process's start to a replay, RILLE_HOME empty", "gpt2.lua",
          [*B64, *START], 15, [*SMALL_B4, *START], home="start"),
    Check("start, warm", "the same once more, with the kernels that the first kept there", "gpt2.lua",
          [*B64, *START], 10, [*SMALL_B4, *START], home="start"),
    Check("quickstart", "the workflow through agent and worker, who says his device; losses as on the CPU",
          "workflows/quickstart.lua",
          ["--data", "{bundle}/docs", "--steps", "100", "--log_every", "1", "--out", "{scratch}/out"], 22,
          ["--data", "{bundle}/LICENSE", "--out", "{scratch}/out", *QUICK], says_device=True, beside_cpu=1e-3),
    *(workflow(*row) for row in WORKFLOWS),
    # 360 rows: what is not done in time is counted, and is no failure
    Check("speed", "each operation on its large shape: time, rate, multiple of its floor", "speed.lua",
          ["--device", "{device}", "--seconds", "14"], 22, ["--size", "tiny", "--rounds", "1"]),
    *(workflow(*row[:-1], title="full size:", spare=True, **row[-1]) for row in FULL),
]


@dataclasses.dataclass(frozen=True)
class Goal:
    """A bound on a figure of a check on the GPU, or on its ratio or difference to a peer's."""
    what: str
    bound: str  # ">= 0.5" or "<= 1e-5"
    check: str
    figure: str
    of: str = ""  # the peer whose figure of that name it is divided by
    beyond: str = ""  # the peer whose figure of that name is taken from it


GOALS = [
    Goal("GPT-2 124M B=64 T=1024 bf16: tokens/s, of torch.compile's", ">= 1.10", "gpt2", "tokens per second",
         "torch compile"),
    Goal("GPT-2 124M B=64 T=1024: model FLOPs, of the bf16 peak", ">= 0.50", "gpt2", "model FLOPs of peak"),
    Goal("GPT-2 124M B=4 T=256: tokens/s, of torch eager's", ">= 3", "gpt2 small batch", "tokens per second",
         "torch eager"),
    Goal("GPT-2 124M B=4 T=256: tokens/s, of torch reduce-overhead's", ">= 1.3", "gpt2 small batch",
         "tokens per second", "torch reduce-overhead"),
    Goal("GPT-2 124M B=64 T=1024: peak memory, of torch.compile's", "<= 0.85", "gpt2", "peak memory", "torch compile"),
    Goal("a kernel's launch from Lua, of a burst of 500 and the wait for the device, microseconds beyond C++'s of the "
         "same", "<= 0.1", "launch", "launch, with the wait for the device", beyond="launch floor"),
    Goal("a replay of 400 nodes from Lua, of a burst of 500 and the wait for the device, microseconds beyond C++'s of "
         "the same", "<= 1", "launch", "replay of 400 nodes, with the wait for the device", beyond="launch floor"),
    Goal("two kernels of one block: one stream's time, of two streams'", ">= 1.8", "streams",
         "one stream's time, of two streams'"),
    Goal("Lua memory that a launch takes, bytes", "<= 0", "launch", "Lua memory of a launch"),
    Goal("Lua memory that a replay takes, bytes", "<= 0", "launch", "Lua memory of a replay"),
    Goal("GPT-2 124M B=64, a new process with groups' kernels on disk: seconds from its start to the end of the first "
         "replay, libraries loaded and two plain calls made", "<= 5", "start, warm",
         "from the process's start to the end of the first replay (call 3)"),
    *(Goal(f"{check}: {what}", bound, check, figure)
      for check in ("gradients bf16", "gradients bf16, heads of 64", "gradients bf16, heads of 128",
                    "gradients bf16, 4 layers")
      for what, bound, figure in (
          ("relative L2, of a rounding oracle's", "<= 1.3", "relative L2, of a rounding oracle's"),
          ("cosine with float64's", ">= 0.999", "cosine with float64's"))),
    *(Goal(f"{check}: cases not reached", "<= 0", check, "cases not reached, for time was over")
      for check in ("operations", "operations in half types")),
    Goal("gradients in f32: relative L2", "<= 1e-5", "gradients", "relative L2 of all gradients"),
    Goal("steps with the same bits when repeated", ">= 10", "training", "steps with the same bits when repeated"),
    Goal("steps with the same bits when repeated, bf16 with dropout", ">= 10", "training bf16",
         "steps with the same bits when repeated"),
]
