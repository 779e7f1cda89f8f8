"""Making packs and loading them: 51,000 WAV files as int16 rows and photos with a seek index, against dd and bare loops."""

import inspect
import os
import shutil
import subprocess
import time

import prepare
from contest import ROOT, bare, contest, ours, plain_table, run_once

FRAMES, BATCH = 8000, 1024
ROWS, ROW_BYTES = prepare.WAV_FILES, 2 * FRAMES
LARGE_ROWS = 125_000  # 2 GB
EXPECT = {"shape": [BATCH, FRAMES], "dtype": "int16", "contiguous": True}


def command(*words, **options):
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, "STOKER_NO_PROGRESS": "1"}, **options)


def seconds(*words):
    started = time.perf_counter()
    command(*words)
    return time.perf_counter() - started


def stoker_pack(*words):
    return (os.path.join(ROOT, "build", "release", "stoker"), "pack", *words)


def packed(path, *words):
    """A pack that stays in the work folder; up to date."""
    prepare.say(f"packing {os.path.basename(path)}")
    command(*stoker_pack(words[0], path, *words[1:]))
    return path


def rows_pack(args):
    return packed(os.path.join(args.work, f"wav-{ROWS}-{FRAMES}.pack"), prepare.wav_folder(args.data, args.work), "--kind", "raw", "--samples", str(FRAMES))


def large_pack(args):
    """2 GB of random rows."""
    import numpy

    import stoker

    path = os.path.join(args.work, f"rows-{LARGE_ROWS}.pack")
    if not os.path.exists(path):
        prepare.say(f"writing {LARGE_ROWS:,} rows of {ROW_BYTES:,} bytes")
        generator = numpy.random.default_rng(prepare.SEED)
        with stoker.PackWriter(path) as writer:
            for first in range(0, LARGE_ROWS, 5000):
                writer.append(generator.integers(-2**15, 2**15, (5000, FRAMES), numpy.int16), numpy.arange(first, first + 5000))
    return path


def wanted(args, title):
    return not getattr(args, "table", None) or args.table in title


def in_turn(title, contestants, rounds):
    """{name: [result, ...]} of functions called in turn."""
    results = {name: [] for name in contestants}
    for i in range(rounds):
        for name, measure in contestants.items():
            prepare.say(f"{title}: round {i + 1} of {rounds}, {name}")
            results[name].append(measure())
    return results


def run_or_fail(contestant, args, before=None):
    result = run_once(contestant, args.work, before)
    if "error" in result:
        raise SystemExit(f"error: {contestant.name} failed: {result['error']}")
    return result


def loading(name, data, items, warmup=0, **loader):
    return ours(name, "stoker_loader", {"data": data, "warmup": warmup, "items": items, "check": True,
                                        "loader": {"batch_size": BATCH, "seed": 42, "memory_limit": "2GB", **loader}})


def best_share(table, mine, other):
    """The best run of one as a share of the best run of the other, and the cores that the first one used."""
    rows = {row["name"]: row for row in table["rows"] if "rate" in row}
    if mine not in rows or other not in rows:
        return "failed"
    cores = min(run["cpu_seconds"] / run["seconds"] for run in rows[mine]["runs"])
    return f"{rows[mine]['high']:,.0f}/s, {rows[mine]['high'] / rows[other]['high']:.2f} times {other}, {cores:.2f} cores"


def making(args):
    data, title = prepare.wav_folder(args.data, args.work), f"pack, making it, {prepare.cool(args.work)}"
    if not wanted(args, title):
        return
    pack, plain = os.path.join(args.work, "bench.pack"), os.path.join(args.work, "bench.dd")
    megabytes = ROWS * ROW_BYTES // 2**20

    def make():
        shutil.rmtree(pack, ignore_errors=True)
        prepare.cool(data)
        return seconds(*stoker_pack(data, pack, "--kind", "raw", "--samples", str(FRAMES)))
    runs = in_turn(title, {
        "reading all files (io_uring, 2 threads)": lambda: run_or_fail(
            bare("read", "bare_wav_loop", data, FRAMES, BATCH, 1, 2, "in-order", 512), args, lambda: prepare.cool(data))["seconds"],
        f"dd of {megabytes} MiB, oflag=direct bs=1M conv=fsync": lambda: seconds(
            "dd", "if=/dev/zero", f"of={plain}", "bs=1M", f"count={megabytes}", "oflag=direct", "conv=fsync"),
        "stoker pack --kind raw": make}, max(args.rounds, 3))
    os.remove(plain)
    shutil.rmtree(pack)
    best = {name: min(times) for name, times in runs.items()}
    larger = max(list(best.values())[:2])
    yield plain_table(title, f"{ROWS:,} WAV files to int16 [{FRAMES}]; stoker pack is the whole process: listing, reading, decoding, checksums, writing, fsync; the bare loop "
                      "knows its files beforehand.",
                      ["what", "best", "spread (runs)", "times the larger of the first two"],
                      [[name, f"{best[name]:.2f} s", f"{min(times):.2f}-{max(times):.2f} s ({len(times)})", f"{best[name] / larger:.2f}"] for name, times in runs.items()])


def photos(args):
    title = "pack, photos, RandomResizedCrop 224, uint8, first epoch, warm"
    if not wanted(args, title):
        return
    data = prepare.jpeg_folder(args.data, args.work)
    count, files = len(prepare.files_of(data)), sum(os.path.getsize(path) for path in prepare.files_of(data))
    pack = packed(data + ".pack", data)
    bare_pack = packed(data + "-no-seek.pack", data, "--seek-index", "off")
    size = sum(os.path.getsize(path) for path in prepare.files_of(pack))
    for path in (data, pack, bare_pack):
        prepare.warm(path)

    def first_epoch(name, address):
        return ours(name, "stoker_loader", {"data": address, "items": count, "check": True, "empty_cache": True, "transform": [["random_resized_crop", 224], ["flip"]],
                                            "loader": {"batch_size": 64, "shuffle": True, "seed": 42}})
    table = contest(title, [first_epoch("Stoker, the pack", pack), first_epoch("Stoker, a pack without seek index", bare_pack), first_epoch("Stoker, the files", data)], args,
                    expect={"shape": [64, 3, 224, 224], "dtype": "uint8", "contiguous": True})
    table["note"] = (f"{count:,} JPEG files, {files / 1e6:.1f} MB; the pack is {size / files:.3f} times as large. A new process with an empty cache folder each time, start-up "
                     f"inside the time. Best runs: the pack {best_share(table, 'Stoker, the pack', 'Stoker, the files')}.")
    yield table


def from_memory(args):
    title = "pack, int16 rows, shuffled, from memory"
    if not wanted(args, title):
        return
    pack = rows_pack(args)
    loops = [bare(f"memcpy in C++, {threads} thread{'s' * (threads > 1)}", "bare_pack_rows", os.path.join(pack, "data-00000.npy"), 4096, ROW_BYTES, ROWS, BATCH, 5, threads,
                  "memory", 0) for threads in (1, 2)]
    mine = [loading("Stoker, ram", pack, 5 * ROWS, ROWS, shuffle=True, storage="ram"),
            loading("Stoker, ram, num_workers=1", pack, 5 * ROWS, ROWS, shuffle=True, storage="ram", num_workers=1)]
    table = contest(title, [*mine, *loops], args, expect=EXPECT)
    table["note"] = f"{ROWS:,} rows of {ROW_BYTES:,} bytes, batches of {BATCH}, 5 epochs after the first. Best runs: " + "; ".join(
        f"{one.name}: {best_share(table, one.name, loop.name)}" for one in mine for loop in loops) + "."
    yield table


def from_disk(args):
    import stoker

    state = prepare.cool(args.work)
    direct, in_order, mapped, first = titles = [f"pack, int16 rows, {what}, {state}" for what in (
        "shuffled, direct", "in order, direct", "shuffled, mmap", "shuffled, the first epoch")]
    if not any(wanted(args, title) for title in titles):
        return
    pack = rows_pack(args)
    shard = os.path.join(pack, "data-00000.npy")

    def cool():
        prepare.cool(pack)
    if wanted(args, direct):
        loops = [bare(f"one read per row in C++, io_uring 128 deep, {threads} thread{'s' * (threads > 1)}", "bare_pack_rows", shard, 4096, ROW_BYTES, ROWS, BATCH, 1, threads,
                      "ring", 128) for threads in (1, 2)]
        mine = [loading("Stoker, direct", pack, ROWS, shuffle=True, storage="direct")]
        has_blocks = "blocks" in (inspect.getdoc(stoker.Loader) or "")
        if has_blocks:
            mine.append(loading("Stoker, direct, blocks", pack, ROWS, shuffle="blocks", storage="direct"))
        table = contest(direct, [*mine, *loops], args, before=cool, expect=EXPECT)
        table["note"] = f"{ROWS:,} rows of {ROW_BYTES:,} bytes, batches of {BATCH}, 1 epoch, start-up inside the time. Best runs: " + "; ".join(
            f"{one.name}: {best_share(table, one.name, loop.name)}" for one in mine for loop in loops) + "." + (
            "" if has_blocks else " This version has no shuffle=\"blocks\".")
        yield table

    if wanted(args, in_order):
        def dd():
            cool()
            return {"seconds": seconds("dd", f"if={shard}", "of=/dev/null", "iflag=direct", "bs=1M"), "cpu_seconds": 0}
        runs = in_turn(in_order, {"dd iflag=direct bs=1M": dd,
                               "Stoker, direct": lambda: run_or_fail(loading("Stoker, direct", pack, ROWS, storage="direct"), args, cool)}, max(args.rounds, 3))
        rates = {name: [ROWS / run["seconds"] for run in results] for name, results in runs.items()}
        yield plain_table(in_order, f"{ROWS:,} rows, 1 epoch, start-up inside the time; dd reads the same file.", ["what", "best rows/s", "spread (runs)", "of dd", "CPU per row"],
                          [[name, f"{max(some):,.0f}", f"{min(some):,.0f}-{max(some):,.0f} ({len(some)})", f"{max(some) / max(rates['dd iflag=direct bs=1M']):.0%}",
                            f"{min(run['cpu_seconds'] for run in runs[name]) / ROWS * 1e6:.1f} us" if name.startswith("Stoker") else ""] for name, some in rates.items()])

    if wanted(args, mapped):
        loop = bare("MADV_RANDOM and memcpy in C++, 1 thread", "bare_pack_rows", shard, 4096, ROW_BYTES, ROWS, BATCH, 1, 1, "mmap", 0)
        table = contest(mapped, [loading("Stoker, mmap", pack, ROWS, shuffle=True, storage="mmap"), loop], args, before=cool, expect=EXPECT)
        table["note"] = f"{ROWS:,} rows, 1 epoch, start-up inside the time. Best runs: {best_share(table, 'Stoker, mmap', loop.name)}."
        yield table

    if wanted(args, first):
        runs = in_turn(first, {f"Stoker, {storage}": lambda storage=storage: run_or_fail(loading(storage, pack, ROWS, shuffle=True, storage=storage), args, cool)
                               for storage in ("direct", "ram")}, max(args.rounds, 3))
        rates = {name: max(ROWS / run["seconds"] for run in results) for name, results in runs.items()}
        yield plain_table(first, f"{ROWS:,} rows in a new process each time; ram fills itself in the background.",
                          ["what", "best rows/s", "of direct", "first batch after", "CPU per row"],
                          [[name, f"{rates[name]:,.0f}", f"{rates[name] / rates['Stoker, direct']:.0%}", f"{min(run['first_batch_s'] for run in results):.3f} s",
                            f"{min(run['cpu_seconds'] for run in results) / ROWS * 1e6:.1f} us"] for name, results in runs.items()])


def larger_than_memory(args):
    title = f"pack of 2 GB, shuffled, direct, under a memory limit, {prepare.cool(args.work)}"
    if not wanted(args, title):
        return
    pack = large_pack(args)
    limits = {"256MB": 256_000_000, "1GB": 1_000_000_000}
    runs = in_turn(title, {limit: lambda limit=limit: run_or_fail(ours("Stoker", "stoker_memory", {
        "data": pack, "step_s": 0, "loader": {"batch_size": BATCH, "shuffle": True, "storage": "direct", "memory_limit": limit}}), args, lambda: prepare.cool(pack))
        for limit in limits}, max(args.rounds, 3))
    rates = {limit: max(LARGE_ROWS / run["seconds"] for run in results) for limit, results in runs.items()}
    rows = []
    for limit, results in runs.items():
        growth = max(run["growth_bytes"] for run in results)
        rows.append([limit, f"{rates[limit]:,.0f}", f"{rates[limit] / rates['1GB']:.0%}", f"{growth / 1e6:.0f} MB", "yes" if growth <= limits[limit] else "no",
                     f"{min(run['cpu_seconds'] for run in results) / LARGE_ROWS * 1e6:.1f} us"])
    yield plain_table(title, f"{LARGE_ROWS:,} rows of {ROW_BYTES:,} bytes, one epoch, batches of {BATCH}. Growth of RssAnon + RssShmem from before the loader is built.",
                      ["memory_limit", "best rows/s", "of that with 1GB", "growth", "at most the limit", "CPU per row"], rows)


def run(args):
    for part in (making, photos, from_memory, from_disk, larger_than_memory):
        yield from part(args)
