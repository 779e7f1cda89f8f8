"""Ranks that share a machine against one rank with all of it, and a pack made in parts on a local Ray cluster against one program."""

import contextlib
import filecmp
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import wave

import prepare
from contest import ROOT, plain_table
from contestant import tree
from prepare import say

PARTS, BATCH, SIZE, EPOCHS = 4, 64, 224, 2
RAY = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}

# Both epochs before the clock and those behind it are whole ones. Memory is what the process gained since its imports.
RANK = """
import json, sys, time, warnings
import numpy, stoker
warnings.simplefilter("ignore", stoker.Note)
job = json.loads(sys.argv[1])
def pss():
    return sum(int(line.split()[1]) * 1024 for line in open("/proc/self/smaps_rollup") if line.startswith("Pss:"))
transform = {"rrc": [stoker.RandomResizedCrop(224), stoker.HorizontalFlip()], "pad": [stoker.PadOrTrim(1000)]}[job["transform"]]
def wait(**told):
    print(json.dumps(told), flush=True)
    sys.stdin.readline()
wait()
before = pss()
loader = stoker.Loader(job["data"], shuffle=True, seed=1, output="numpy", transform=transform, **job["options"])
for _ in range(job["warmup"]):
    for _ in loader: pass
wait()
items, began = 0, time.perf_counter()
for _ in range(job["epochs"]):
    for batch in loader:
        items += len(batch.ids)
seconds = time.perf_counter() - began
wait(items=items, seconds=seconds)
wait(grown=pss() - before)
"""


def long_sounds(folder):
    """200 WAV files of 400 KB, of noise."""
    for number in range(200):
        with wave.open(os.path.join(folder, f"{number:03}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16_000)
            file.writeframes(os.urandom(400_000))


def run_ranks(count, data, transform, warmup, epochs, **options):
    """(items per second over all ranks, bytes that they gained) of so many ranks, which begin each stage together."""
    job = json.dumps({"data": str(data), "transform": transform, "warmup": warmup, "epochs": epochs, "options": options})
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, job], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count),
                                   "MASTER_PORT": f"bench {os.getpid()}"}) for rank in range(count)]
    told = []
    for _ in range(4):
        told.append([json.loads(rank.stdout.readline()) for rank in ranks])
        for rank in ranks:
            rank.stdin.write("\n")
            rank.stdin.flush()
    for rank in ranks:
        rank.communicate()
    return sum(one["items"] / one["seconds"] for one in told[2]), sum(one["grown"] for one in told[3])


def median(values):
    return sorted(values)[len(values) // 2]


def share(title, note, rows):
    return plain_table(title, note, ["what", "one", "shared", "ratio", "bar"], rows)


def one_node(args):
    """Pairs of runs, in turn."""
    photos = prepare.jpeg_folder(args.data, args.work)
    prepare.warm(photos)
    pairs = [(run_ranks(1, photos, "rrc", 1, EPOCHS, batch_size=BATCH), run_ranks(2, photos, "rrc", 1, EPOCHS, batch_size=BATCH // 2)) for _ in range(args.rounds)]
    rate = median([two[0] / one[0] for one, two in pairs])
    memory = median([two[1] / one[1] for one, two in pairs])
    one, two = ([median([pair[side][value] for pair in pairs]) for value in (0, 1)] for side in (0, 1))
    yield share("ranks, photos to RandomResizedCrop 224 on one node", f"One rank with every core against two that share them, batches of {BATCH} in all; epochs in memory, "
                f"after one of warm-up. The ratios are medians of {args.rounds} pairs of runs.",
                [["photos/s, sum", f"{one[0]:,.0f}", f"{two[0]:,.0f}", f"{100 * rate:.1f} %", "at least 95 %"],
                 ["memory after imports, PSS", f"{one[1] / 2**20:.0f} MiB", f"{two[1] / 2**20:.0f} MiB", f"{memory:.2f}x", "at most 1.25x"]])
    sounds = prepare.whole(os.path.join(args.work, "ranks-wavs"), long_sounds)
    data = sum(os.path.getsize(path) for path in prepare.files_of(sounds))
    options = {"batch_size": 16, "num_workers": 1, "storage": "ram", "memory_limit": "1GB"}
    alone, four = (run_ranks(count, sounds, "pad", 8, 1, **options)[1] for count in (1, 4))
    yield share("ranks, storage=ram of loose files on one node", f"PSS that the ranks gained, after 8 epochs over {data / 2**20:.0f} MiB of WAV files.",
                [["memory", f"{alone / 2**20:.0f} MiB", f"{four / 2**20:.0f} MiB", f"{four / alone:.2f}x, {four / data:.2f}x the data", "the data once"]])


@contextlib.contextmanager
def ray_cluster():
    """Two nodes of one CPU; the second one may be killed."""
    os.environ.update(RAY)
    import ray
    from ray.cluster_utils import Cluster

    node = dict(num_cpus=1, object_store_memory=100 * 2**20, node_ip_address="127.0.0.1")
    made = Cluster(initialize_head=True, head_node_args=dict(**node, include_dashboard=False))
    second = made.add_node(**node)
    ray.init(address=made.address, log_to_driver=False, _node_ip_address="127.0.0.1")
    try:
        yield made, second
    finally:
        ray.shutdown()
        made.shutdown()


def are_equal(one, other):
    names = sorted(path.name for path in one.iterdir())
    return names == sorted(path.name for path in other.iterdir()) and not filecmp.cmpfiles(one, other, names, shallow=False)[1]


def parts_that_run(dest):
    found = []
    for process in tree(os.getpid()):
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            found += [process] if os.fsencode(dest) in words and b"--part" in words and b"--json" in words else []
    return found


def packs(args):
    try:
        import ray  # noqa: F401
    except ImportError:
        say("note: Ray is not installed (pip install ray): its table is left out")
        return
    import stoker.ray

    photos = prepare.jpeg_folder(args.data, args.work)
    prepare.warm(photos)
    words = ["--kind", "raw", "--size", "256", "--shard-size", "16MB"]
    program = os.path.join(ROOT, "build", "release", "stoker")
    with tempfile.TemporaryDirectory(prefix="stoker-ranks-", dir=args.work) as folder, ray_cluster() as (cluster, second):
        work = pathlib.Path(folder)

        def one_program(dest):
            began = time.perf_counter()
            subprocess.run([program, "pack", photos, dest, *words, "--quiet"], check=True, stdout=subprocess.DEVNULL)
            return time.perf_counter() - began

        def on_ray(dest):
            began = time.perf_counter()
            stoker.ray.pack(photos, dest, parts=PARTS, arguments=words)
            return time.perf_counter() - began

        on_ray(work / "first.pack")  # Ray starts its workers
        pairs = []
        for number in range(args.rounds):
            pairs.append((one_program(work / f"one-{number}.pack"), on_ray(work / f"ray-{number}.pack")))
            equal = are_equal(work / f"one-{number}.pack", work / f"ray-{number}.pack")
            if number + 1 < args.rounds:
                shutil.rmtree(work / f"one-{number}.pack")
            shutil.rmtree(work / f"ray-{number}.pack")
        killed = work / "killed.pack"
        thread = threading.Thread(target=on_ray, args=(killed,))
        thread.start()
        while len(parts_that_run(killed)) < 2 and thread.is_alive():
            time.sleep(0.01)
        cluster.remove_node(second, allow_graceful=False)
        thread.join()
        same = killed.exists() and are_equal(work / f"one-{args.rounds - 1}.pack", killed)
    rate = median([one / ray_ for one, ray_ in pairs])
    yield share(f"ranks, a pack in {PARTS} parts on a Ray cluster of two nodes with one CPU each",
                f"{len(list(prepare.files_of(photos))):,} photos to raw images of 256 x 256, against one `stoker pack` with the same cores. The ratio is the median of {args.rounds} pairs of runs; "
                "the cluster runs before the clock does.",
                [["seconds", f"{median([one for one, _ in pairs]):.1f}", f"{median([two for _, two in pairs]):.1f}", f"{100 * rate:.0f} % of the rate", "at least 85 %"],
                 ["bytes", "", "equal" if equal else "DIFFERENT", "", "equal"],
                 ["bytes, one node killed meanwhile", "", "equal" if same else "DIFFERENT", "", "equal"]])


def run(args):
    """--table node, or --table ray."""
    for make, words in ((one_node, "one node"), (packs, "pack on ray")):
        if not args.table or args.table.lower() in words:
            yield from make(args)
