"""Objects and tar shards of an S3 server on loopback, 0 and 20 ms to the first byte, first and next epoch, against seven other readers and libcurl alone."""

import contextlib
import os
import shutil
import statistics
import subprocess

import prepare
import servers
from contest import bare, contest, fastest_of_groups, ours, peer, plain_table, row_of, run_once

OBJECTS, SHARDS, BATCH = 1_000, 16, 64
DELAYS_S = (0, 0.020)
DEPTHS = (64, 128, 256)
CROPS = [["random_resized_crop", 224], ["flip"]]
CROPPED = {"seek_index": "off"}  # each epoch decodes alike
DISK_CACHE = "4GB"
NOTE = ("Encoded bytes only. Epoch 0 runs from the word go: clients, workers and connections are inside. Everyone is given the keys, Stoker as a kept listing; its second row lists the bucket within epoch 0. Stoker reads ahead into epoch 1 within epoch 0, unless it is told that there is none; the others do not. "
        "Workers of the others hand back lengths only. Everyone but WebDataset signs. Server and client share the cores; CPU is the client's.")

SHARDS_NOTE = NOTE + " mosaicml-streaming and litdata read the same images from about as many shards in formats of their own, and write them to the local disk: their epoch 1 is local."


def objects_folder(photos, work):
    """The first OBJECTS photos, in folders of 100."""
    def make(folder):
        for path in sorted(prepare.files_of(photos))[:OBJECTS]:
            place = os.path.join(folder, os.path.relpath(path, photos))
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(path, "rb") as source, open(place, "wb") as copy:
                copy.write(source.read())
    return prepare.whole(os.path.join(work, f"s3-objects-{OBJECTS}"), make)


def keys_of(prefix, folder):
    return [f"{prefix}/{os.path.relpath(path, folder)}" for path in sorted(prepare.files_of(folder))]


def urls_file(work, environment, prefix, keys):
    path = os.path.join(work, f"s3-urls-{prefix}.txt")
    with open(path, "w") as file:
        file.write("".join(f"{environment['AWS_ENDPOINT_URL_S3']}/{servers.BUCKET}/{key}\n" for key in keys))
    return path


def stoker(name, args, environment, data, **more):
    loader = {"batch_size": BATCH, "shuffle": True, "seed": 42, **more.pop("loader", {"decode": "none"})}
    return ours(name, "stoker_s3", {"data": data, "bucket": servers.BUCKET, "epochs": 2, "work": args.work, "loader": loader, **more}, environment=environment)


def split_epochs(table, contestants):
    """One table of epoch 0 and one of epoch 1; a contestant that did not read every byte has failed."""
    if table is None:
        return []
    by_name = {contestant.name: contestant for contestant in contestants}
    tables = []
    sizes = [run["epochs"][0]["bytes"] for row in table["rows"] for run in row["runs"] if run.get("epochs") and run["epochs"][0]["bytes"]]
    usual = statistics.mode(sizes) if sizes else 0
    for epoch in (0, 1):
        rows = []
        for row in table["rows"]:
            if any(len(run.get("epochs", [])) == 1 for run in row["runs"]) and epoch == 1:
                continue
            runs = [{**run, **run["epochs"][epoch]} if "epochs" in run else run for run in row["runs"]]
            wrong = next((run["bytes"] for run in runs if run.get("bytes", usual) not in (0, usual)), None)
            if wrong is not None:
                runs = [{"error": f"read {wrong:,} bytes of {usual:,}"}]
            rows.append(row_of(by_name[row["name"]], runs))
        tables.append({**table, "title": f"{table['title']}, epoch {epoch}", "rows": fastest_of_groups(rows)})
    return tables


def object_readers(args, environment, keys, prefix):
    job = {"bucket": servers.BUCKET, "keys": keys, "epochs": 2, "batch_size": BATCH}
    urls, most = urls_file(args.work, environment, prefix, keys), 4 << 20
    rows = [stoker("Stoker", args, environment, f"s3://{servers.BUCKET}/{prefix}", kept=True),
            stoker("Stoker, lists the bucket", args, environment, f"s3://{servers.BUCKET}/{prefix}"),
            stoker("Stoker, told of one epoch", args, environment, f"s3://{servers.BUCKET}/{prefix}", kept=True, epochs=1, loader={"decode": "none", "epochs": 1}),
            *(peer(f"boto3 + DataLoader, {workers} workers, prefetch {ahead}", "torch_boto3", {**job, "num_workers": workers, "prefetch_factor": ahead}) for workers, ahead in ((8, 2), (16, 4))),
            *(peer(f"s3torchconnector, {workers} workers, prefetch {ahead}", "torch_s3connector", {**job, "num_workers": workers, "prefetch_factor": ahead})
              for workers, ahead in ((8, 2), (16, 4))),
            *(peer(f"obstore, {depth} in flight", "obstore_async", {**job, "depth": depth}, group="obstore") for depth in DEPTHS),
            *(peer(f"s3dlio, {depth} in flight", "s3dlio_many", {**job, "depth": depth}, group="s3dlio") for depth in DEPTHS),
            *(bare(f"libcurl alone, {depth} in flight", "bare_s3_loop", urls, depth, 2, most, group="libcurl") for depth in DEPTHS)]
    for row in rows:
        row.environment = {**environment, **row.environment}
    return rows


def own_shards(args):
    """Where peers with formats of their own keep the same images: {prefix: folder}, served like the others."""
    folders = {peer: os.path.join(args.work, f"s3-{peer}-{OBJECTS}") for peer in ("mds", "litdata")}
    for folder in folders.values():
        os.makedirs(folder, exist_ok=True)
    return folders


def shard_readers(args, environment, keys, prefix, objects, folders):
    job = {"bucket": servers.BUCKET, "keys": keys, "epochs": 2, "batch_size": BATCH}

    def own(peer):
        return {"bucket": servers.BUCKET, "key": f"{peer}/set", "folder": os.path.join(folders[peer], "set"), "images": objects, "shards": SHARDS, "work": args.work,
                "epochs": 2, "batch_size": BATCH}
    names = [f"s3://{servers.BUCKET}/{prefix}/{{000..{SHARDS - 1:03d}}}.tar"]
    rows = [stoker("Stoker", args, environment, names[0]),
            *(peer(f"WebDataset over HTTP, {workers} workers", "webdataset_http", {**job, "num_workers": workers}) for workers in (2, 8, 16)),
            *(peer(f"mosaicml-streaming, {workers} workers", "mosaic_streaming", {**own("mds"), "num_workers": workers}) for workers in (2, 8)),
            *(peer(f"litdata, {workers} workers", "litdata_streaming", {**own("litdata"), "num_workers": workers}) for workers in (2, 8))]
    for row in rows:
        row.environment = {**environment, **row.environment}
    return rows


@contextlib.contextmanager
def streaming(args, urls):
    """A process that streams every URL once to nowhere. Gives the function that starts it."""
    loop = bare("stream", "bare_s3_loop", urls, 64, 1, 4 << 20)
    process = subprocess.Popen(loop.command(args.work), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)

    def go():
        process.stdin.write("go\n")
        process.stdin.flush()
    try:
        yield go
    finally:
        process.kill()
        process.wait()


def crops(args, environment, photos, keys, disk):
    """First epochs of random crops: from the store, from the local folder, and from that while the server streams the same bytes to nobody."""
    title = "s3, jpeg-rrc, 20 ms to the first byte, epoch 0"
    if args.table and args.table not in title:
        return
    urls, count = urls_file(args.work, environment, "photos", keys), len(keys)
    job = {"loader": CROPPED, "transform": CROPS, "epochs": 1}
    rows = {"store": stoker("Stoker from the store", args, environment, f"s3://{servers.BUCKET}/photos", **job), "local": stoker("Stoker from the local folder", args, {}, photos, **job)}
    rates = {"store": [], "local": [], "local, while the server streams": []}
    for i in range(args.rounds):
        for name in list(rates)[i % 3:] + list(rates)[:i % 3]:
            prepare.say(f"{title}: round {i + 1} of {args.rounds}, {name}")
            with streaming(args, urls) if "streams" in name else contextlib.nullcontext(None) as go:
                result = run_once(rows[name.split(",")[0]], args.work, go)
            if "error" in result:
                yield plain_table(title, "", ["failed"], [[result["error"]]])
                return
            rates[name].append(result["epochs"][0]["items"] / result["epochs"][0]["seconds"])
    middle = {name: statistics.median(values) for name, values in rates.items()}
    yield plain_table(title, f"{count:,} JPEG files, RandomResizedCrop 224 and flip, batches of {BATCH} uint8, `seek_index=\"off\"`, a new process and an empty cache each time; listing and start-up are inside. "
                      "The third row shares its cores with the same server and a client that throws the same bytes away.",
                      ["what", "images/s", "spread (runs)", "the store has"],
                      [[name, f"{middle[name]:,.0f}", f"{min(values):,.0f}-{max(values):,.0f} ({len(values)})", f"{middle['store'] / middle[name]:.0%}"] for name, values in rates.items()])
    step_s = 1.4 * BATCH / middle["local"]
    yield utilization(args, environment, count, step_s, disk)


def utilization(args, environment, count, step_s, disk):
    title = "s3, emulated accelerator, 20 ms to the first byte"
    runs = []
    for i in range(args.rounds):
        prepare.say(f"{title}: round {i + 1} of {args.rounds}")
        runs.append(run_once(ours("Stoker", "stoker_accelerator", {"data": f"s3://{servers.BUCKET}/photos", "epochs": 3, "step_s": step_s, "work": disk, "transform": CROPS, "disk_cache": DISK_CACHE,
                                                                 "loader": {"batch_size": BATCH, "shuffle": True, "seed": 42, **CROPPED}}, environment=environment), args.work))
        if "error" in runs[-1]:
            return plain_table(title, "", ["failed"], [[runs[-1]["error"]]])
    rows = [[epoch, *(f"{statistics.median(run['epochs'][epoch][key] for run in runs):.1%} ({min(run['epochs'][epoch][key] for run in runs):.1%})" for key in ("au", "worst_au"))]
            for epoch in range(3)]
    return plain_table(title, f"{count:,} JPEG files, steps of {step_s * 1e3:.1f} ms: 1.4 x batch / the local epoch-0 rate. AU is the share of the time that the accelerator computes; medians of {args.rounds} runs, the lowest in brackets.",
                       ["epoch", "AU", "AU of the worst 10 steps in a row"], rows)


def cached(args, environment, photos, disk):
    """Epoch 1 from the disk cache against the same data on the same disk."""
    local = os.path.join(disk, "photos")
    if not os.path.exists(local):
        shutil.copytree(photos, local)
    prepare.warm(local)
    rows = [stoker("Stoker, disk cache", args, environment, f"s3://{servers.BUCKET}/photos", disk_cache=DISK_CACHE, work=disk), stoker("Stoker, local folder", args, {}, local)]
    yield from split_epochs(contest("s3, 4,000 JPEG objects with a disk cache, 20 ms to the first byte", rows, args, note="Encoded bytes only. Epoch 1 comes from the cache. Cache and local folder are on one file system, in which nothing was deleted before."), rows)


def run(args):
    photos = prepare.jpeg_folder(args.data, args.work)
    objects = objects_folder(photos, args.work)
    shards = os.path.dirname(prepare.jpeg_shards(objects, SHARDS)[0])
    folders = {"objects": objects, "shards": shards, "photos": photos}
    for folder in folders.values():
        prepare.warm(folder)
    keys = {prefix: keys_of(prefix, folder) for prefix, folder in folders.items()}
    others = own_shards(args)
    with servers.nginx({**folders, **others}, DELAYS_S) as environments:
        for delay, environment in zip(DELAYS_S, environments):
            words = f"{delay * 1e3:.0f} ms to the first byte"
            rows = object_readers(args, environment, keys["objects"], "objects")
            yield from split_epochs(contest(f"s3, {OBJECTS:,} JPEG objects, {words}", rows, args, note=NOTE), rows)
            rows = shard_readers(args, environment, keys["shards"], "shards", objects, others)
            yield from split_epochs(contest(f"s3, {SHARDS} tar shards, {words}", rows, args, note=SHARDS_NOTE), rows)
        with servers.fresh_disk(args.work) as disk:
            yield from cached(args, environments[-1], photos, disk)
            yield from crops(args, environments[-1], photos, keys["photos"], disk)
    yield from signed(args, {"objects": objects}, keys["objects"])


def signed(args, folders, keys):
    """The same objects in a store that checks signatures."""
    title = f"s3, {OBJECTS:,} JPEG objects, SeaweedFS"
    if args.table and args.table not in title:
        return
    with servers.seaweedfs(folders) as environment:
        if environment:
            rows = [row for row in object_readers(args, environment, keys, "objects") if "boto3" not in row.name]
            yield from split_epochs(contest(title, rows, args, note=NOTE + " SeaweedFS checks the signatures."), rows)
