"""MLPerf Storage's unet3d by its own driver, dlio_benchmark (--dlio: its sources): 70 files of different shapes, one emulated H100."""

import json
import os
import shutil
import subprocess

import prepare
import venvs
from contest import ROOT, plain_table

FILES, BATCH = 70, 7
SHRUNK = 4  # files and steps are this many times smaller than those of MLPerf: the rate that is asked for stays
RECORD, DEVIATION, STEP_S = 146_600_628, 68_341_808, 0.323
AU_BAR = 95


def run(args):
    """Yields one table. Each contestant in its turn, from the disk."""
    if not args.dlio:
        raise SystemExit("error: cannot run mlperf without the sources of dlio_benchmark\n\nhint: clone https://github.com/argonne-lcf/dlio_benchmark and give its folder: --dlio FOLDER")
    driver = Driver(args)
    driver.generate()
    plugin = "reader.data_loader_classname=stoker_dlio.StokerDataLoader"
    rows = [*((f"Stoker{how}, memory_limit={limit} GB / {SHRUNK}", [plugin, *direct], f"{limit * 1000 // SHRUNK}MB")
              for how, direct in (("", []), (", O_DIRECT", ["reader.odirect=True"])) for limit in (8, 5)),
            ("DLIO's own reader, 4 workers", [], ""), ("DLIO's own reader, O_DIRECT, 4 workers", ["reader.odirect=True"], "")]
    table = []
    for name, settings, limit in rows:
        if args.only and not name.startswith("Stoker") and not any(word in name for word in args.only.split(",")):
            continue
        runs = [driver.train(name, settings, limit) for _ in range(args.rounds)]
        table.append([name, *("-".join(f"{value:.3g}" for value in ([min(seen), max(seen)] if len(runs) > 1 else seen[:1])) for seen in zip(*runs, strict=True))])
    yield plain_table("mlperf, unet3d, cold", f"{FILES} .npz files of {RECORD // SHRUNK / 1e6:.0f} MB on average and of different shapes, batches of {BATCH}, {STEP_S / SHRUNK * 1e3:.0f} ms of emulated compute per "
                      f"batch: a quarter of MLPerf's sizes, and so its rate. The page cache is dropped before each run of one epoch. AU is the driver's figure, which leaves the first step out; "
                      f"the bar is {AU_BAR} %. Stoker hands over all arrays of the batch; DLIO's readers return one constant array.",
                      ["reader", "AU, %", "samples/s", "first batch, s"], table)


class Driver:
    def __init__(self, args):
        self.work, self.data = args.work, os.path.join(args.work, "mlperf")
        self.python = venvs.python_of("dlio_benchmark", args.work)
        package = os.path.join(args.work, "venv-dlio", "dlio_benchmark-of")
        sources = os.path.realpath(args.dlio)
        if not os.path.isdir(os.path.join(sources, "dlio_benchmark")):
            raise SystemExit(f"error: cannot find dlio_benchmark in `{args.dlio}`\n\nhint: --dlio names a clone of https://github.com/argonne-lcf/dlio_benchmark")
        if os.path.islink(package):
            os.remove(package)
        os.symlink(sources, package)
        # Stoker alone of this environment's packages.
        import stoker
        self.path = os.path.join(args.work, "venv-dlio", "stoker-only")
        os.makedirs(self.path, exist_ok=True)
        link = os.path.join(self.path, "stoker")
        if os.path.islink(link):
            os.remove(link)
        os.symlink(os.path.dirname(stoker.__file__), link)
        self.environment = {**os.environ, "PYTHONPATH": ":".join([package, self.path, os.path.join(ROOT, "examples", "mlperf_dlio")]), "DLIO_LOG_LEVEL": "error",
                            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def dlio(self, out, settings, environment=None):
        options = {"workflow.checkpoint": "False", "dataset.data_folder": self.data, "dataset.num_files_train": FILES, "dataset.record_length_bytes": RECORD // SHRUNK,
                   "dataset.record_length_bytes_stdev": DEVIATION // SHRUNK, "train.epochs": 1, "train.computation_time": STEP_S / SHRUNK, "reader.batch_size": BATCH}
        words = [f"++workload.{key}={value}" for key, value in options.items()] + [f"++workload.{one}" for one in settings]
        done = subprocess.run([self.python, "-m", "dlio_benchmark.main", "workload=unet3d_h100", f"++hydra.run.dir={out}", *words],
                              env={**self.environment, **(environment or {})}, cwd=self.work, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"error: the driver failed: {(done.stderr or done.stdout).strip().splitlines()[-1]}")

    def generate(self):
        def make(folder):
            prepare.say(f"making {FILES} .npz files")
            self.data, kept = folder, self.data
            self.dlio(os.path.join(self.work, "mlperf-out"), ["workflow.generate_data=True", "workflow.train=False"])
            self.data = kept
        prepare.whole(self.data, make)

    def train(self, name, settings, limit):
        """AU in percent, samples per second, seconds until the first batch."""
        prepare.say(f"mlperf: {name}")
        prepare.cool(self.data)
        out = os.path.join(self.work, "mlperf-out")
        shutil.rmtree(out, ignore_errors=True)
        self.dlio(out, settings, {"STOKER_DLIO_MEMORY_LIMIT": limit} if limit else None)
        with open(os.path.join(out, "summary.json")) as file:
            metric = json.load(file)["metric"]
        stats = {}
        for file in os.listdir(out):
            if file.endswith("_output.json"):
                with open(os.path.join(out, file)) as opened:
                    stats = json.load(opened)
        loads = stats["1"]["load"]["block1"] if stats else [0.0]
        return metric["train_au_mean_percentage"], metric["train_throughput_mean_samples_per_second"], loads[0]
