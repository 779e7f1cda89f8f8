"""stoker.torch.DataLoader, and what it knows of torchvision: the same batches as torch's own, or torch's own."""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import warnings

import numpy
import pytest
from conftest import picture

torch = pytest.importorskip("torch")
import torchvision_names  # noqa: E402, F401  before torchvision

pytest.importorskip("torchvision")
from stoker.supply.known import NotKnown, read  # noqa: E402
from stoker.torch import DataLoader  # noqa: E402
from torch.utils import data as torch_data  # noqa: E402
from torchvision import datasets, transforms  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

import stoker  # noqa: E402

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
VALIDATION = [transforms.Resize(32), transforms.CenterCrop(24), transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
TRAINING = [transforms.RandomResizedCrop(24), transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize(MEAN, STD)]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> pathlib.Path:
    """Five classes of sizes, colours and formats that ImageFolder meets."""
    root = tmp_path_factory.mktemp("pictures")
    generator = numpy.random.default_rng(5)
    for number in range(40):
        folder = root / ("ant", "bee", "cat", "dog", "emu")[number % 5]
        folder.mkdir(exist_ok=True)
        image = picture(number, int(generator.integers(30, 90)), int(generator.integers(30, 90)))
        mode = ("RGB", "RGB", "L", "RGB", "CMYK", "RGB", "P", "RGBA")[number % 8]
        kind = "png" if mode in ("P", "RGBA") else "jpg"
        image.convert(mode).save(folder / f"{number:03}.{kind}")
    return root


def validation(root, operations=None, **options):
    return datasets.ImageFolder(str(root), transforms.Compose(operations or VALIDATION), **options)


def both(dataset, **options):
    """The batches of Stoker's and of torch's own loader."""
    loader = DataLoader(dataset, **options)
    native = list(loader)
    assert loader.supply.is_native, loader.supply.why
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return native, list(torch_data.DataLoader(dataset, **options))


def assert_equal(native, own):
    assert len(native) == len(own)
    for mine, theirs in zip(native, own, strict=True):
        assert type(mine) is type(theirs) is list and len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            assert type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.is_contiguous() == b.is_contiguous()
            assert torch.equal(a, b)


# ---- the same batches

@pytest.mark.parametrize("operations", [
    VALIDATION,
    [transforms.Resize((20, 30), interpolation=transforms.InterpolationMode.BICUBIC), transforms.PILToTensor()],
    [transforms.Resize(40), transforms.CenterCrop((30, 20)), transforms.PILToTensor(), transforms.ConvertImageDtype(torch.float32)],
    [v2.Resize(32), v2.CenterCrop(24), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)],
    [v2.Resize((24, 24)), v2.ToImage(), v2.ToDtype(torch.uint8, scale=True), v2.ToPureTensor()],
    [transforms.Compose(VALIDATION[:2]), *VALIDATION[2:]],
])
def test_pipelines_without_chance_give_the_same_bits(pictures, operations):
    assert_equal(*both(validation(pictures, operations), batch_size=7))


def test_augmentations_that_stoker_knows_are_fed_natively(pictures):
    operations = [transforms.RandomResizedCrop(24), transforms.RandAugment(), transforms.ToTensor(), transforms.Normalize(MEAN, STD), transforms.RandomErasing()]
    loader = DataLoader(validation(pictures, operations), batch_size=8)
    batches = list(loader)
    assert loader.supply.is_native, loader.supply.why
    assert [images.shape[1:] for images, _ in batches] == 5 * [(3, 24, 24)] and batches[0][0].dtype == torch.float32


def test_small_pictures_are_padded_and_cropped_natively(tmp_path):
    (tmp_path / "a").mkdir()
    for number in range(8):
        picture(number, 32, 32).save(tmp_path / "a" / f"{number}.png")
    loader = DataLoader(validation(tmp_path, [transforms.RandomCrop(32, padding=4), transforms.ToTensor()]), batch_size=4)
    assert [list(images.shape) for images, _ in loader] == 2 * [[4, 3, 32, 32]] and loader.supply.is_native, loader.supply.why


def test_transforms_of_pretrained_weights_are_known(pictures):
    presets = pytest.importorskip("torchvision.transforms._presets")
    dataset = datasets.ImageFolder(str(pictures), presets.ImageClassification(crop_size=24, resize_size=30))
    assert_equal(*both(dataset, batch_size=7))


def test_equal_batches_give_equal_logits(pictures):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(5)).eval()
    native, own = both(validation(pictures), batch_size=8)
    with torch.no_grad():
        for (images, labels), (others, same) in zip(native, own, strict=True):
            assert torch.equal(model(images), model(others)) and torch.equal(labels, same)


def samplers(size):
    yield dict(shuffle=True)
    yield dict(shuffle=True, drop_last=True)
    yield dict(sampler=torch_data.WeightedRandomSampler(torch.arange(size) + 1.0, 50))
    yield dict(sampler=torch_data.distributed.DistributedSampler(range(size), num_replicas=3, rank=1))
    yield dict(sampler=torch_data.SubsetRandomSampler([3, 1, 4, 1, 5]))
    yield dict(sampler=[5, -1, numpy.int64(3), torch.tensor(2)])
    yield dict(shuffle=True, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("workers", [0, 1])
def test_the_order_is_the_one_that_torch_would_have_drawn(pictures, number, workers):
    dataset = validation(pictures)
    made = []
    for kind in (DataLoader, torch_data.DataLoader):
        options = list(samplers(len(dataset)))[number]
        torch.manual_seed(11)
        loader = kind(dataset, batch_size=6, num_workers=workers, **options)
        made.append((list(loader), torch.rand(2), list(loader), torch.rand(2), len(loader)))
    native, own = made
    assert_equal(native[0], own[0])
    assert_equal(native[2], own[2])
    assert torch.equal(native[1], own[1]) and torch.equal(native[3], own[3]), "the job's random numbers go on as they would have"
    assert native[4] == own[4]


def test_batch_samplers_may_give_batches_of_any_length(pictures):
    batches = [[1], [2, 3, 4, 5, 6], [7, 8], [], list(range(9, 31)), [0]][:3] + [list(range(9, 31)), [0]]
    assert_equal(*both(validation(pictures), batch_sampler=batches))


def test_subsets_and_chains_are_known(pictures):
    dataset = validation(pictures)
    for made in (torch_data.Subset(dataset, [5, 3, -1, 0]), torch_data.ConcatDataset([dataset, torch_data.Subset(dataset, range(3))]),
                 torch_data.Subset(torch_data.ConcatDataset([validation(pictures), validation(pictures)]), [1, 50, 79]),
                 torch_data.random_split(dataset, [30, 10])[1]):
        assert_equal(*both(made, batch_size=3))


def test_labels_are_the_data_sets_own(pictures):
    assert_equal(*both(validation(pictures, target_transform=lambda label: label / 2), batch_size=7))
    dataset = validation(pictures)
    loader = DataLoader(dataset, batch_size=40)
    before = next(iter(loader))[1]
    dataset.samples[:] = [(path, 4 - label) for path, label in dataset.samples]
    assert torch.equal(next(iter(loader))[1], 4 - before), "labels that the job changes are seen"


def test_a_transform_that_the_job_changes_is_seen_in_the_next_epoch(pictures):
    dataset = validation(pictures)
    loader = DataLoader(dataset, batch_size=40)
    next(iter(loader))
    dataset.transform = transforms.Compose([transforms.Resize((8, 8)), transforms.ToTensor()])
    assert_equal(list(loader), list(torch_data.DataLoader(dataset, batch_size=40)))
    assert loader.supply.is_native


def test_a_later_pass_asks_the_jobs_own_code_for_one_sample(pictures, monkeypatch):
    from stoker.supply import feed

    asked = []
    monkeypatch.setattr(feed, "_image", lambda dataset, index, make=feed._image: (asked.append(index), make(dataset, index))[1])
    loader = DataLoader(validation(pictures), batch_size=8)
    list(loader)
    first = len(asked)
    list(loader)
    assert loader.supply.is_native and first > 1 and len(asked) == first + 1


def test_files_that_the_engine_cannot_decode_come_from_the_jobs_own_code(pictures, tmp_path):
    root = tmp_path / "mixed"
    (root / "a").mkdir(parents=True)
    for number in range(20):
        picture(number).save(root / "a" / f"{number:03}.{'bmp' if number == 11 else 'jpg'}")
    dataset = validation(root)
    with pytest.warns(stoker.Note, match="the job's own code makes 1 of 4 samples"):
        native = list(DataLoader(dataset, batch_size=4))
    assert_equal(native, list(torch_data.DataLoader(dataset, batch_size=4)))


def test_a_broken_file_raises_what_the_job_would_have_seen(tmp_path):
    (tmp_path / "a").mkdir()
    for number in range(12):
        picture(number).save(tmp_path / "a" / f"{number:03}.jpg")
    (tmp_path / "a" / "009.jpg").write_bytes(b"no picture")
    raised = []
    for kind in (DataLoader, torch_data.DataLoader):
        batches = iter(kind(validation(tmp_path), batch_size=4))
        next(batches), next(batches)
        with pytest.raises(Exception) as caught, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            next(batches)
        raised.append(caught.type)
    assert raised[0] is raised[1]


def test_a_getitem_that_the_job_put_into_torchvision_is_used(pictures, monkeypatch):
    own = datasets.DatasetFolder.__getitem__

    def shifted(self, index):
        image, label = own(self, index)
        return image, label + 100

    monkeypatch.setattr(datasets.DatasetFolder, "__getitem__", shifted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = DataLoader(validation(pictures), batch_size=4)
        assert next(iter(loader))[1].min() >= 100
    assert "__getitem__ was replaced by the job" in loader.supply.why


class Following(torch_data.Sampler):
    """Decides from batch to batch, as hard mining does."""

    def __init__(self):
        self.now = 0

    def __iter__(self):
        for _ in range(12):
            yield self.now

    def __len__(self):
        return 12


def test_a_sampler_that_follows_the_loop_is_asked_for_one_batch_at_a_time(pictures):
    def seen(kind):
        sampler = Following()
        labels = []
        for step, (_, label) in enumerate(kind(validation(pictures), batch_size=2, sampler=sampler)):
            labels.append(label.tolist())
            sampler.now = step * 3
        return labels

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert seen(DataLoader) == seen(torch_data.DataLoader)
    with pytest.raises(NotKnown, match="sampler Following"):
        read(torch_data.DataLoader(validation(pictures), batch_size=2, sampler=Following()))
    read(torch_data.DataLoader(validation(pictures), batch_size=2, sampler=Following(), num_workers=1))  # torch reads it ahead, too


@pytest.mark.parametrize("order", [numpy.array([3, 1, 2]), torch.tensor([3, 1, 2])], ids=["array", "tensor"])
def test_an_array_may_be_the_sampler_of_a_loader_without_workers(pictures, order):
    read(torch_data.DataLoader(validation(pictures), batch_size=2, sampler=order))


def test_labels_that_are_texts_come_as_torch_gives_them(pictures):
    def labels(kind):
        dataset = validation(pictures)
        dataset.target_transform = str
        return next(iter(kind(dataset, batch_size=3)))[1]

    assert labels(DataLoader) == labels(torch_data.DataLoader)
    assert type(labels(DataLoader)) is type(labels(torch_data.DataLoader))


# ---- random pipelines: the same distributions

def kolmogorov_smirnov(a, b):
    """The largest distance of the two distributions, in units of what chance explains."""
    a, b = numpy.sort(a), numpy.sort(b)
    everything = numpy.concatenate([a, b])
    distance = numpy.abs(numpy.searchsorted(a, everything, "right") / len(a) - numpy.searchsorted(b, everything, "right") / len(b)).max()
    return distance * numpy.sqrt(len(a) * len(b) / (len(a) + len(b)))


def crops(images):
    """Left, top, width and height of each crop, and whether it is mirrored, read back from an image whose pixels say where they are."""
    values = images.double().numpy()
    x, y = values[:, 0], values[:, 1]
    width = numpy.abs(x[:, :, -1].mean(1) - x[:, :, 0].mean(1))
    height = y[:, -1].mean(1) - y[:, 0].mean(1)
    return width, height, x[:, :, -1].mean(1) < x[:, :, 0].mean(1), numpy.minimum(x[:, :, 0], x[:, :, -1]).mean(1), y[:, 0].mean(1)


def compare_draws(tmp_path, draws):
    (tmp_path / "a").mkdir()
    ramp_y, ramp_x = numpy.mgrid[0:200, 0:250].astype(numpy.uint8)
    from PIL import Image

    Image.fromarray(numpy.stack([ramp_x, ramp_y, ramp_x], -1)).save(tmp_path / "a" / "ramp.png")
    operations = [transforms.RandomResizedCrop(16), transforms.RandomHorizontalFlip(0.3), transforms.PILToTensor()]
    dataset = validation(tmp_path, operations)
    torch.manual_seed(5)
    order = [0] * draws
    own, loader = [], DataLoader(dataset, batch_size=500, sampler=order)
    native = [crops(images) for images, _ in loader]
    assert loader.supply.is_native
    own = [crops(images) for images, _ in torch_data.DataLoader(dataset, batch_size=500, sampler=order)]
    mine, theirs = ([numpy.concatenate(part) for part in zip(*parts, strict=True)] for parts in (native, own))
    area = [part[0] * part[1] for part in (mine, theirs)]
    aspect = [part[0] / numpy.maximum(part[1], 1) for part in (mine, theirs)]
    for name, (a, b) in dict(area=area, aspect=aspect, left=(mine[3], theirs[3]), top=(mine[4], theirs[4])).items():
        assert kolmogorov_smirnov(a, b) < 1.95, name  # one time in a thousand by chance; the seed decides
    flips = [part[2].mean() for part in (mine, theirs)]
    assert abs(flips[0] - flips[1]) < 4 * numpy.sqrt(2 * 0.3 * 0.7 / draws)


def test_random_crops_and_flips_have_torchvisions_distributions(tmp_path):
    compare_draws(tmp_path, 2000)


@pytest.mark.slow
def test_random_crops_and_flips_have_torchvisions_distributions_over_many_draws(tmp_path):
    compare_draws(tmp_path, 20_000)


def test_the_jobs_seed_decides_the_draws(pictures, tmp_path):
    def draw(seed, pictures=pictures):
        torch.manual_seed(seed)
        loader = DataLoader(validation(pictures, TRAINING), batch_size=40, shuffle=True)
        return [next(iter(loader))[0] for _ in range(2)]

    first, again, other = draw(1), draw(1), draw(2)
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    assert not torch.equal(first[0], first[1]) and not torch.equal(first[0], other[0])
    shutil.copytree(pictures, tmp_path / "elsewhere")
    assert torch.equal(draw(1, tmp_path / "elsewhere")[0], first[0])  # wherever the files lie


# ---- a true DataLoader

def test_it_is_a_dataloader_of_torch(pictures):
    dataset = validation(pictures)
    loader = DataLoader(dataset, 8, False, num_workers=1, persistent_workers=True, prefetch_factor=3)
    assert isinstance(loader, torch_data.DataLoader) and len(loader) == 5 and loader.dataset is dataset
    assert loader.batch_size == 8 and loader.num_workers == 1 and isinstance(loader.sampler, torch_data.SequentialSampler)
    own = list(torch_data.DataLoader(dataset, 8))
    assert_equal(list(loader), own)
    assert_equal(list(loader), own)
    assert loader.supply.stats()["samples"] == 80
    with pytest.raises(ValueError, match="batch_size"):
        loader.batch_size = 4


def test_persistent_workers_draw_anew_in_each_epoch(pictures):
    loader = DataLoader(validation(pictures, TRAINING), batch_size=40, num_workers=1, persistent_workers=True)
    first, second = next(iter(loader))[0], next(iter(loader))[0]
    assert loader.supply.is_native and not torch.equal(first, second)


def test_several_passes_at_once_and_passes_left_early(pictures):
    dataset = validation(pictures)
    loader, own = DataLoader(dataset, batch_size=8), list(torch_data.DataLoader(dataset, batch_size=8))
    for (a, _), (b, _) in zip(loader, loader, strict=True):
        assert torch.equal(a, b)
    for _ in range(3):
        assert torch.equal(next(iter(loader))[0], own[0][0])
    assert_equal(list(loader), own)


def test_a_job_may_keep_every_batch(pictures):
    dataset = torch_data.Subset(validation(pictures), [0, 1, 2, 3] * 100)
    assert_equal(*both(dataset, batch_size=4))


def test_a_fork_after_the_first_batch_works_in_both_processes(pictures, tmp_path):
    dataset = validation(pictures)
    loader = DataLoader(dataset, batch_size=8)
    own = list(torch_data.DataLoader(dataset, batch_size=8))
    batches = iter(loader)
    next(batches)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            torch.set_num_threads(1)
            same = all(torch.equal(a[0], b[0]) for a, b in zip(loader, own, strict=True))
            os._exit(0 if same else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert_equal([next(batches), *batches], own[1:])


# ---- what is not known stays as it is

class OwnGetitem(datasets.ImageFolder):
    def __getitem__(self, index):
        return super().__getitem__(index)


@pytest.mark.parametrize("make, why", [
    (lambda root: dict(dataset=validation(root, [transforms.ElasticTransform(), *VALIDATION])), "ElasticTransform is not known: operation 1 of 5"),
    (lambda root: dict(dataset=validation(root, [transforms.Resize(32, max_size=40), *VALIDATION[1:]])), "Resize(max_size=...) has no counterpart here: operation 1 of 4"),
    (lambda root: dict(dataset=validation(root, [transforms.Resize(32, transforms.InterpolationMode.HAMMING), *VALIDATION[1:]])), "interpolation 'hamming' of Resize"),
    (lambda root: dict(dataset=validation(root, [*VALIDATION, transforms.Lambda(lambda x: x)])), "Lambda"),
    (lambda root: dict(dataset=validation(root, [*VALIDATION, lambda x: x])), "<lambda> is not an operation of torchvision: operation 5 of 5"),
    (lambda root: dict(dataset=validation(root, [transforms.ToTensor(), transforms.Resize((24, 24))])), "Resize stands behind the change to a tensor"),
    (lambda root: dict(dataset=validation(root, [transforms.Resize(24), transforms.ToTensor()]), batch_size=1), "different sizes"),
    (lambda root: dict(dataset=OwnGetitem(str(root), transforms.Compose(VALIDATION))), "OwnGetitem has a __getitem__ of its own"),
    (lambda root: dict(dataset=validation(root, loader=lambda path: picture(1))), "reads files with <lambda>"),
    (lambda root: dict(dataset=validation(root), collate_fn=lambda rows: rows), "collate_fn is <lambda>"),
    (lambda root: dict(dataset=validation(root), batch_size=None), "batch_size=None"),
    (lambda root: dict(dataset=validation(root), num_workers=1, worker_init_fn=print), "worker_init_fn print may change the data set"),
    (lambda root: dict(dataset=[1, 2, 3]), "the data set list is not known"),
    (lambda root: dict(dataset=torch_data.ConcatDataset([validation(root), validation(root, TRAINING)])), "different transforms"),
])
def test_what_is_not_known_is_torchs_own_and_said_in_one_line(pictures, make, why):
    options = make(pictures)
    loader = DataLoader(**options)
    with pytest.warns(stoker.Note) as caught:
        made = list(loader)
    notes = [str(warning.message) for warning in caught if issubclass(warning.category, stoker.Note)]
    assert len(notes) == 1 and why in notes[0] and "\n" not in notes[0] and notes[0].startswith("test_supply.py:")
    assert not loader.supply.is_native and why in loader.supply.why and loader.supply.stats() is None
    assert len(made) == len(torch_data.DataLoader(**make(pictures)))


def test_an_iterable_data_set_is_torchs_own():
    class Numbers(torch_data.IterableDataset):
        def __iter__(self):
            return iter(range(4))

    with pytest.warns(stoker.Note, match="Numbers is an IterableDataset"):
        assert [batch.tolist() for batch in DataLoader(Numbers(), batch_size=2)] == [[0, 1], [2, 3]]


def test_a_first_batch_that_fails_gives_the_loader_back_to_torch(pictures, monkeypatch):
    from stoker.supply import feed

    dataset = validation(pictures)
    torch.manual_seed(3)
    own = list(torch_data.DataLoader(dataset, batch_size=8, shuffle=True))
    monkeypatch.setattr(feed.Loader, "_next", lambda self, iteration: (_ for _ in ()).throw(stoker.Error("the disk is gone")))
    torch.manual_seed(3)
    loader = DataLoader(dataset, batch_size=8, shuffle=True)
    with pytest.warns(stoker.Note, match="not replaced: the disk is gone"):
        assert_equal(list(loader), own)
    assert not loader.supply.is_native


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("how", ["generator", "weights", "persistent", "plain"])
def test_the_order_stays_when_the_loader_is_given_back(pictures, monkeypatch, how, workers):
    """A sampler with random numbers of its own is not read twice."""
    from stoker.supply import feed

    def order(kind):
        torch.manual_seed(5)
        dataset = validation(pictures)
        dataset.samples = [(path, number) for number, (path, _) in enumerate(dataset.samples)]
        own = torch.Generator().manual_seed(1)
        options = {"generator": {"sampler": torch_data.RandomSampler(dataset, generator=own)},
                   "weights": {"sampler": torch_data.WeightedRandomSampler([1, 2] * 20, 30, generator=own)},
                   "persistent": {"sampler": torch_data.RandomSampler(dataset, generator=own), "persistent_workers": workers > 0},
                   "plain": {"shuffle": True}}[how]
        loader = kind(dataset, batch_size=7, num_workers=workers, **options)
        return [label for _ in range(3) for _, labels in loader for label in labels.tolist()], torch.rand(1).item()

    expected = order(torch_data.DataLoader)
    monkeypatch.setattr(feed.SuppliedIterator, "_refusal", lambda self, *_: "a test says so")
    with pytest.warns(stoker.Note, match="not replaced: a test says so"):
        assert order(DataLoader) == expected


def test_what_makes_a_target_is_called_once_for_each_sample(pictures):
    def labels(kind):
        calls = iter(range(1000))
        return [labels.tolist() for _, labels in kind(validation(pictures, target_transform=lambda _: next(calls)), batch_size=8)]

    assert labels(DataLoader) == labels(torch_data.DataLoader)


def test_other_pixels_in_the_first_batch_give_the_loader_back_to_torch(pictures, monkeypatch):
    dataset = validation(pictures)
    own = list(torch_data.DataLoader(dataset, batch_size=8))
    from stoker.supply import feed

    def changed(self, iteration, original=feed.Loader._next):
        batch = original(self, iteration)
        batch.data[0, 0, 0, 0] += 1
        return batch

    monkeypatch.setattr(feed.Loader, "_next", changed)
    with pytest.warns(stoker.Note, match="other pixels"):
        assert_equal(list(DataLoader(dataset, batch_size=8)), own)


def test_a_folder_that_the_engine_cannot_decode_is_left_to_torch(tmp_path):
    (tmp_path / "a").mkdir()
    for number in range(8):
        picture(number).save(tmp_path / "a" / f"{number:03}.bmp")
    dataset = validation(tmp_path)
    with pytest.warns(stoker.Note, match="not replaced"):
        native = list(DataLoader(dataset, batch_size=4))
    assert_equal(native, list(torch_data.DataLoader(dataset, batch_size=4)))


def test_a_sampler_that_goes_beyond_the_data_set_raises_what_torch_raises(pictures):
    raised = []
    for kind in (DataLoader, torch_data.DataLoader):
        batches = iter(kind(validation(pictures), batch_size=2, sampler=[0, 1, 40]))
        next(batches)
        with pytest.raises(IndexError) as caught:
            next(batches)
        raised.append(str(caught.value))
    assert raised[0] == raised[1]


def test_the_jobs_random_numbers_are_not_touched(pictures):
    dataset = validation(pictures, TRAINING)
    states = []
    for _ in range(2):
        torch.manual_seed(1), random.seed(1), numpy.random.seed(1)
        for _ in DataLoader(dataset, batch_size=8, num_workers=1):
            pass
        states.append((torch.rand(1).item(), random.random(), numpy.random.rand()))
    torch.manual_seed(1)
    torch.empty((), dtype=torch.int64).random_()  # the seed of the pass, which torch draws too
    assert states[0] == states[1] and states[0][0] == torch.rand(1).item()


def test_reading_a_loader_changes_nothing_of_it(pictures):
    dataset = validation(pictures, TRAINING)
    loader = torch_data.DataLoader(dataset, batch_size=8)
    before = dict(loader.__dict__), dict(dataset.__dict__)
    found = read(loader)
    assert not found.is_fixed and found.operations == 4 and found.dataset_name == "ImageFolder"
    assert (dict(loader.__dict__), dict(dataset.__dict__)) == before
    with pytest.raises(NotKnown):
        read(torch_data.DataLoader([1]))


def test_accelerate_keeps_it_native(pictures):
    accelerate = pytest.importorskip("accelerate")
    dataset = validation(pictures)
    try:
        prepared = accelerate.Accelerator(cpu=True).prepare(DataLoader(dataset, batch_size=8))
        assert_equal([list(batch) for batch in prepared], list(torch_data.DataLoader(dataset, batch_size=8)))
        assert prepared.base_dataloader.supply.is_native and prepared.base_dataloader.supply.stats()["samples"] == 40
    finally:
        accelerate.state.AcceleratorState._reset_state(True)


def test_lightning_takes_it(pictures, tmp_path):
    lightning = pytest.importorskip("pytorch_lightning")
    seen = []

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch, index):
            seen.append(batch[1])
            return self.layer(batch[0].mean().view(1, 1)).sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    loader = DataLoader(validation(pictures), batch_size=8)
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False, default_root_dir=str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(Model(), loader)
    assert torch.equal(torch.cat(seen), torch.cat([labels for _, labels in torch_data.DataLoader(validation(pictures), batch_size=8)]))
    assert loader.supply.is_native


def test_importing_it_does_not_import_torchvision():
    done = subprocess.run([sys.executable, "-c", "import sys, stoker.torch; stoker.torch.DataLoader([1, 2]).supply; assert 'torchvision' not in sys.modules"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
