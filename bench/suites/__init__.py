"""The benchmarks by name. Each module's run(args) yields tables, and its first line says what it compares."""

from . import (
    augment,
    dicom,
    fast_error,
    first_batch,
    jpeg_rrc,
    large_batches,
    measure_overhead,
    memory,
    mlperf,
    nodes,
    npy_copy,
    pack,
    png16,
    ranks,
    raw_crop,
    report,
    s3,
    scan,
    steady_state,
    tune_live,
    tune_sim,
    unchanged,
    volumes,
    wav_files,
    whatif,
    window_error,
)

SUITES = {"wav-files": wav_files, "jpeg-rrc": jpeg_rrc, "png16": png16, "raw-crop": raw_crop, "augment": augment, "npy-copy": npy_copy, "pack": pack, "dicom": dicom, "volumes": volumes, "mlperf": mlperf, "scan": scan, "s3": s3, "first-batch": first_batch,
          "large-batches": large_batches, "memory": memory, "steady-state": steady_state, "fast-error": fast_error,
          "window-error": window_error, "measure-overhead": measure_overhead, "tune-sim": tune_sim, "tune-live": tune_live, "whatif": whatif, "ranks": ranks, "nodes": nodes, "report": report, "unchanged": unchanged}
