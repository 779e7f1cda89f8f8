"""The plugin for dlio_benchmark, with a stand-in for the driver's modules."""

import enum
import importlib.util
import pathlib
import sys
import types

import numpy

PLUGIN = pathlib.Path(__file__).parents[2] / "examples/mlperf_dlio/stoker_dlio.py"


class DatasetType(enum.Enum):
    TRAIN = "train"
    VALID = "valid"


def plugin(monkeypatch, arguments):
    class BaseDataLoader:
        def __init__(self, format_type, dataset_type, epoch_number, data_loader_type):
            self._args, self.format_type, self.dataset_type, self.batch_size = arguments, format_type, dataset_type, arguments.batch_size

    for name, content in {"dlio_benchmark": {}, "dlio_benchmark.common": {}, "dlio_benchmark.common.enumerations": {"DatasetType": DatasetType},
                          "dlio_benchmark.data_loader": {}, "dlio_benchmark.data_loader.base_data_loader": {"BaseDataLoader": BaseDataLoader}}.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.spec_from_file_location("stoker_dlio", PLUGIN)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.StokerDataLoader


def test_every_record_of_a_rank_is_handed_over_in_each_epoch(tmp_path, monkeypatch):
    files = []
    for number in range(8):
        numpy.savez(tmp_path / f"{number}.npz", x=numpy.full((number + 1, 4), number, numpy.uint8), y=0)
        files.append(str(tmp_path / f"{number}.npz"))
    seen = []
    for rank in range(2):
        arguments = types.SimpleNamespace(batch_size=2, file_list_train=files, file_list_eval=[], my_rank=rank, comm_size=2, odirect=False)
        loader = plugin(monkeypatch, arguments)("npz", DatasetType.TRAIN, 1)
        for _ in range(2):
            loader.read()
            batches = list(loader.next())
            loader.finalize()
            assert [len(batch) for batch in batches] == [2, 2]
        seen += [array for batch in batches for array in batch]
    assert sorted((int(array[0, 0]), array.shape) for array in seen) == [(number, (number + 1, 4)) for number in range(8)]
