"""Stoker as a data loader of dlio_benchmark, the driver of MLPerf Storage.

    PYTHONPATH=examples/mlperf_dlio dlio_benchmark workload=unet3d_h100 \
        ++workload.reader.data_loader_classname=stoker_dlio.StokerDataLoader \
        ++workload.dataset.data_folder=data/unet3d

Every record is read whole, its CRC checked, and handed over as arrays: the driver's own readers throw the bytes away.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from dlio_benchmark.common.enumerations import DatasetType
from dlio_benchmark.data_loader.base_data_loader import BaseDataLoader

import stoker


class StokerDataLoader(BaseDataLoader):
    """The driver makes one for training and one for validation, calls read() once, and next() for every epoch."""

    def __init__(self, format_type: Any, dataset_type: Any, epoch: int) -> None:
        super().__init__(format_type, dataset_type, epoch, "stoker")
        self._loader: stoker.Loader | None = None

    def read(self) -> None:
        """Nothing is read here: the driver does not time this call."""

    def next(self) -> Iterator[Any]:
        if self._loader is None:
            self._loader = self._make()
        for batch in self._loader:
            yield batch.data

    def finalize(self) -> None:
        """Comes after every epoch: the next one uses the same loader."""

    def _make(self) -> stoker.Loader:
        arguments = self._args
        files = arguments.file_list_train if self.dataset_type is DatasetType.TRAIN else arguments.file_list_eval
        return stoker.Loader(
            samples=[(path, 0) for path in files], batch_size=self.batch_size, arrays="x" if str(self.format_type) == "npz" else None, shapes="list",
            drop_last=True, rank=arguments.my_rank, world_size=arguments.comm_size, output="numpy",
            storage="direct" if getattr(arguments, "odirect", False) else "buffered", memory_limit=os.environ.get("STOKER_DLIO_MEMORY_LIMIT", "8GB"))
