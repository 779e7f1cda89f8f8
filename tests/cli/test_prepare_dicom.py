"""stoker prepare dicom: every value as pydicom reads it, runs that continue, and nothing written that identifies a patient."""

import csv
import glob
import io
import json
import os
import pathlib
import signal
import subprocess
import time
import warnings

import numpy as np
import pytest
from PIL import Image

pydicom = pytest.importorskip("pydicom")
from pydicom.encaps import encapsulate  # noqa: E402
from pydicom.uid import (  # noqa: E402
    CTImageStorage,
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    JPEGLSLossless,
    JPEGLSNearLossless,
    RLELossless,
    generate_uid,
)

EXAMPLES = pathlib.Path(pydicom.__file__).parent / "data/test_files"
warnings.filterwarnings("ignore", module="pydicom")


@pytest.fixture(autouse=True)
def dicom_built_in(stoker):
    if "dicom (GDCM" not in stoker("--version").stdout:
        pytest.skip("built without STOKER_DICOM")


@pytest.fixture
def environment(environment, tmp_path_factory):
    """The key of the pseudonyms is not the user's."""
    return {**environment, "XDG_CONFIG_HOME": str(tmp_path_factory.mktemp("config"))}


def ct(values, z=0.0, number=1, series="1.2.3", **tags):
    """A CT slice as a pydicom data set; `values` are stored values."""
    values = np.asarray(values)
    data = pydicom.Dataset()
    data.file_meta = pydicom.dataset.FileMetaDataset()
    data.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID = CTImageStorage
    data.SOPInstanceUID = data.file_meta.MediaStorageSOPInstanceUID = generate_uid()
    data.PatientName, data.PatientID, data.PatientBirthDate = "Doe^Jane", "MRN-0042", "19700102"
    data.InstitutionName, data.ReferringPhysicianName = "Hospital of Somewhere", "Physician^Some"
    data.StudyInstanceUID, data.SeriesInstanceUID, data.Modality = "1.2", series, "CT"
    data.SeriesDescription, data.StudyDate = "CHEST of Jane Doe", "20200101"
    data.InstanceNumber, data.ImageType = number, ["ORIGINAL", "PRIMARY", "AXIAL"]
    data.ImagePositionPatient, data.ImageOrientationPatient = [-100, -100, z], [1, 0, 0, 0, 1, 0]
    data.PixelSpacing, data.SliceThickness = [0.7, 0.7], 2.5
    data.WindowCenter, data.WindowWidth = 40, 400
    data.RescaleSlope, data.RescaleIntercept = 1, -1024
    data.Rows, data.Columns = values.shape[-2:]
    if values.ndim == 3:
        data.NumberOfFrames = values.shape[0]
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.BitsAllocated = data.BitsStored = values.dtype.itemsize * 8
    data.HighBit = data.BitsStored - 1
    data.PixelRepresentation = int(values.dtype.kind == "i")
    data.PixelData = values.tobytes() + b"\0" * (values.nbytes % 2)
    for name, value in tags.items():
        if value is None:
            delattr(data, name)
        else:
            setattr(data, name, value)
    return data


def save(data, path, syntax=None):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if syntax is None:
        data.save_as(path, enforce_file_format=True)
    elif syntax in (RLELossless, JPEG2000Lossless, JPEGLSLossless, JPEGLSNearLossless):
        data.compress(syntax, generate_instance_uid=False, **({"jls_error": 2} if syntax == JPEGLSNearLossless else {}))
        data.save_as(path, enforce_file_format=True)
    else:
        if syntax == ExplicitVRBigEndian:
            data.PixelData = np.frombuffer(data.PixelData, np.uint16).byteswap().tobytes()
            data["PixelData"].VR = "OW"
        data.file_meta.TransferSyntaxUID = syntax
        pydicom.dcmwrite(path, data, enforce_file_format=True, implicit_vr=None if syntax != ImplicitVRLittleEndian else True,
                         little_endian=syntax != ExplicitVRBigEndian)
    return path


def values(seed=0, shape=(48, 40), low=0, high=4096, dtype=np.int16):
    """Smooth enough for every codec to have something to do."""
    random = np.random.default_rng(seed)
    ramp = np.linspace(low, high - 64, shape[-1])
    return (np.broadcast_to(ramp, shape) + random.integers(0, 50, shape)).astype(dtype)


def hu(path):
    """What pydicom makes of a file, rounded as we do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = pydicom.dcmread(path, force=True)
        pixels = data.pixel_array.astype(np.float64)
        stored = pixels * float(data.get("RescaleSlope", 1)) + float(data.get("RescaleIntercept", 0))
    return np.rint(stored).astype(np.int64)


def rows(out):
    with open(pathlib.Path(out) / "_index/index.csv", newline="") as file:
        return list(csv.DictReader(file))


def slice_of(out, row):
    path = pathlib.Path(out) / row["path"]
    stored = np.load(path)[int(row["row"])] if path.suffix == ".npy" else np.asarray(Image.open(path))
    return stored.astype(np.int64) - int(row["hu_offset"])


def answer(done, code=0):
    assert done.returncode == code, done.stderr + done.stdout
    return json.loads(done.stdout)


def prepare(stoker, *words, code=0, **options):
    return answer(stoker("prepare", "dicom", *words, "--json", **options), code)


def causes(report):
    return {one["path"]: one["cause"] for one in report["left_out"]}


SYNTAXES = {"implicit": ImplicitVRLittleEndian, "explicit": ExplicitVRLittleEndian, "big-endian": ExplicitVRBigEndian,
            "deflated": DeflatedExplicitVRLittleEndian, "rle": RLELossless, "jpeg2000": JPEG2000Lossless, "jpegls": JPEGLSLossless,
            "jpegls-near": JPEGLSNearLossless}
KINDS = {"int16": dict(dtype=np.int16, low=-900, high=3000), "uint16": dict(dtype=np.uint16), "uint8": dict(dtype=np.uint8, high=256)}


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_is_that_of_pydicom_in_each_transfer_syntax_that_it_writes(stoker, tmp_path, kind):
    written = {}
    for i, (name, syntax) in enumerate(SYNTAXES.items()):
        data = ct(values(i, **KINDS[kind]), series=f"1.2.{i + 1}", number=i)
        if kind == "uint8" and syntax == ExplicitVRBigEndian:
            continue  # bytes in words: the file below
        if kind == "int16" and syntax in (JPEGLSLossless, JPEGLSNearLossless):
            continue  # pydicom refuses to write signed values
        try:
            written[save(data, tmp_path / f"in/{name}.dcm", syntax)] = name
        except (NotImplementedError, RuntimeError, ValueError) as error:
            pytest.fail(f"{name}: {error}")
    report = prepare(stoker, "in", "out", "--keep-identifiers")
    assert report["left_out"] == [] and report["slices"] == len(written)
    found = {row["source"]: slice_of("out", row) for row in rows("out")}
    for path, name in written.items():
        assert np.array_equal(found[path.name], hu(path)), name


def test_every_gray_file_of_pydicom_has_the_values_that_pydicom_reads(stoker, tmp_path):
    (tmp_path / "in").mkdir()
    names = []
    for path in sorted(EXAMPLES.glob("*.dcm")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = pydicom.dcmread(path, force=True)
            if path.stem == "JPEG-lossy":
                continue  # pylibjpeg refuses it: JPGExtended is the same image with its marker repaired
            if "PixelData" not in data or data.get("PhotometricInterpretation") != "MONOCHROME2" or data.BitsAllocated not in (8, 16):
                continue
        # Many are copies of one image: a folder each, and a run each, so that none counts as a duplicate.
        (tmp_path / "in" / path.stem).mkdir()
        (tmp_path / "in" / path.stem / path.name).write_bytes(path.read_bytes())
        names.append(path.stem)
    assert len(names) >= 18
    # GDCM does not decode the first; the second lacks pixels; the third has values up to 65535.
    refused = {"JPEG2000-embedded-sequence-delimiter", "MR_truncated", "JPEGLSNearLossless_16"}
    lossy = {"JPGExtended"}  # two decoders of a lossy JPEG may round differently
    for name in names:
        done = stoker("prepare", "dicom", f"in/{name}", f"out/{name}", "--keep-identifiers", "--json")
        report = json.loads(done.stdout)
        if name in refused:
            assert done.returncode == 1 and report["refused_files"] == 1, (name, report)
            continue
        assert done.returncode == 0 and report["slices"] == 1, (name, report)
        mine, theirs = slice_of(f"out/{name}", rows(f"out/{name}")[0]), hu(tmp_path / f"in/{name}/{name}.dcm")
        assert np.abs(mine - theirs.reshape(mine.shape)).max() <= (1 if name in lossy else 0), name


def test_jpeg_baseline_has_the_values_of_pillow(stoker, tmp_path):
    pixels = values(3, (64, 48), 20, 220, np.uint8)
    encoded = io.BytesIO()
    Image.fromarray(pixels).save(encoded, "JPEG", quality=92)
    data = ct(pixels, PixelData=encapsulate([encoded.getvalue()]))
    data["PixelData"].is_undefined_length = True
    data.file_meta.TransferSyntaxUID = JPEGBaseline8Bit
    save(data, tmp_path / "in/a.dcm")
    assert prepare(stoker, "in", "out")["slices"] == 1
    expected = np.asarray(Image.open(io.BytesIO(encoded.getvalue()))).astype(np.int64) - 1024
    assert np.abs(slice_of("out", rows("out")[0]) - expected).max() <= 1


def lossless_jpeg(pixels, predictor=1):
    """16-bit gray, process 14: each difference to its left neighbour (above in the first column) as a length and that many bits."""
    height, width = pixels.shape
    image = pixels.astype(np.int64)
    guess = np.empty_like(image)
    guess[:, 1:] = image[:, :-1]
    guess[1:, 0] = image[:-1, 0]
    guess[0, 0] = 1 << 15
    bits = []
    for difference in ((image - guess + 32768) % 65536 - 32768).ravel().tolist():
        length = abs(difference).bit_length()
        bits.append(f"{length:05b}")  # 17 codes of 5 bits
        if length and length < 16:
            bits.append(f"{difference if difference > 0 else difference + (1 << length) - 1:0{length}b}")
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    data = int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\x00")

    def segment(marker, content):
        return bytes([0xFF, marker]) + (len(content) + 2).to_bytes(2, "big") + content

    frame = b"\x10" + height.to_bytes(2, "big") + width.to_bytes(2, "big") + b"\x01\x01\x11\x00"
    table = b"\x00" + bytes([0, 0, 0, 0, 17] + [0] * 11) + bytes(range(17))
    return (b"\xff\xd8" + segment(0xC3, frame) + segment(0xC4, table) + segment(0xDA, b"\x01\x01\x00" + bytes([predictor]) + b"\x00\x00")
            + data + b"\xff\xd9")


@pytest.mark.parametrize("uid", ["1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.70"])
def test_jpeg_lossless_has_the_values_that_were_encoded(stoker, tmp_path, uid):
    pixels = values(5, (32, 30), 0, 4096, np.uint16)
    data = ct(pixels, PixelData=encapsulate([lossless_jpeg(pixels)]))
    data["PixelData"].is_undefined_length = True
    data.file_meta.TransferSyntaxUID = uid
    path = save(data, tmp_path / "in/a.dcm")
    assert np.array_equal(hu(path), pixels.astype(np.int64) - 1024), "the reference reads what the test encoded"
    assert prepare(stoker, "in", "out")["slices"] == 1
    assert np.array_equal(slice_of("out", rows("out")[0]), pixels.astype(np.int64) - 1024)


def a_series(folder, count=4, series="1.2.3", seed=0, **tags):
    """Slices whose names and numbers run against their positions."""
    for i in range(count):
        save(ct(values(seed + i), z=2.5 * i, number=count - i, series=series, **tags), folder / f"{count - i}.dcm")


def test_the_index_describes_slices_in_the_order_of_their_positions(stoker, tmp_path):
    a_series(tmp_path / "in")
    report = prepare(stoker, "in", "out")
    assert report["schema"] == "stoker.prepare/1" and (report["series"], report["slices"], report["added"]) == (1, 4, 1)
    found = rows("out")
    assert [float(row["position"]) for row in found] == [0, 2.5, 5, 7.5]
    assert [int(row["instance"]) for row in found] == [4, 3, 2, 1]
    assert [row["path"].rsplit("/")[-1] for row in found] == ["00000.png", "00001.png", "00002.png", "00003.png"]
    assert {row["slice_spacing"] for row in found} == {"2.5"} and {row["pixel_spacing"] for row in found} == {"0.7"}
    assert found[0]["hu_offset"] == "32768" and found[0]["rows"] == "48" and found[0]["cols"] == "40"
    assert (found[0]["window_center"], found[0]["window_width"]) == ("40", "400")
    assert (found[0]["rescale_slope"], found[0]["rescale_intercept"]) == ("1", "-1024")
    for i, row in enumerate(found):
        assert np.array_equal(slice_of("out", row), values(i).astype(np.int64) - 1024)


def everything_written(folder):
    """All bytes and names below a folder, PNG and arrays inflated or not."""
    text = b""
    for path in sorted(pathlib.Path(folder).rglob("*")):
        text += os.fsencode(str(path.relative_to(folder))) + b"\n" + (path.read_bytes() if path.is_file() else b"")
    return text


SECRETS = [b"Doe", b"Jane", b"MRN-0042", b"19700102", b"Hospital", b"Physician", b"CHEST", b"20200101", b"1.2.826", b"1.2.3.77", b"jane"]


@pytest.mark.parametrize("format", ["png", "npy", "pack"])
def test_nothing_that_identifies_a_patient_is_written(stoker, tmp_path, format):
    a_series(tmp_path / "in/Doe^Jane", series="1.2.3.77")
    (tmp_path / "in/Doe^Jane/1.dcm").write_bytes((tmp_path / "in/Doe^Jane/1.dcm").read_bytes()[:900])  # an error is noted
    done = stoker("prepare", "dicom", "in", "out", "--format", format)
    assert done.returncode == 1
    written = everything_written("out")
    assert [secret for secret in SECRETS if secret in written] == []
    assert "Doe^Jane/1.dcm" in done.stdout  # people who run it see which file it was


def test_identifiers_are_written_when_asked_for(stoker, tmp_path):
    a_series(tmp_path / "in", series="1.2.3.77")
    prepare(stoker, "in", "out", "--keep-identifiers")
    row = rows("out")[0]
    assert (row["patient"], row["study"], row["series"], row["source"]) == ("MRN-0042", "1.2", "1.2.3.77", "4.dcm")
    assert row["path"] == "1.2.3.77/00000.png"
    assert b"Doe" not in everything_written("out")  # names never are


def test_a_series_id_cannot_lead_out_of_the_folder(stoker, tmp_path):
    a_series(tmp_path / "in", count=1, series="../../evil")
    prepare(stoker, "in", "out", "--keep-identifiers")
    assert not (tmp_path.parent / "evil").exists() and rows("out")[0]["path"] == "s.._.._evil/00000.png"


def test_ids_depend_on_the_key_and_on_nothing_else(stoker, tmp_path):
    a_series(tmp_path / "in")
    for out in ("a", "b"):
        prepare(stoker, "in", out, "--key-file", "one.key")
    prepare(stoker, "in", "c", "--key-file", "two.key")
    assert rows("a") == rows("b")
    assert {row["patient"] for row in rows("a")} & {row["patient"] for row in rows("c")} == set()
    assert oct((tmp_path / "one.key").stat().st_mode & 0o777) == "0o600"
    refused = stoker("prepare", "dicom", "in", "a", "--key-file", "two.key")
    assert refused.returncode == 2 and "made with another key" in refused.stderr


def snapshot(folder):
    return {str(path): path.stat().st_mtime_ns for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file() and path.name != ".lock"}


def test_a_second_run_writes_only_what_is_new_or_changed(stoker, tmp_path):
    a_series(tmp_path / "in/a", series="1.2.3")
    a_series(tmp_path / "in/b", series="1.2.4", seed=10)
    prepare(stoker, "in", "out")
    before = snapshot("out")
    again = prepare(stoker, "in", "out")
    assert again["up_to_date"] and (again["kept"], again["slices_written"]) == (2, 0)
    assert snapshot("out") == before

    save(ct(values(99), z=10, number=9, series="1.2.4"), tmp_path / "in/b/9.dcm")
    a_series(tmp_path / "in/c", series="1.2.5", seed=20)
    third = prepare(stoker, "in", "out")
    assert (third["kept"], third["changed"], third["added"], third["slices_written"]) == (1, 1, 1, 9)
    assert len(rows("out")) == 13 and prepare(stoker, "in", "out")["up_to_date"]

    damaged = tmp_path / "out" / rows("out")[0]["path"]
    damaged.write_bytes(b"")
    fourth = prepare(stoker, "in", "out")
    assert (fourth["changed"], fourth["kept"]) == (1, 2) and damaged.stat().st_size > 0


def test_series_whose_files_are_gone_are_reported_and_stay_until_they_are_pruned(stoker, tmp_path):
    a_series(tmp_path / "in/a", series="1.2.3")
    a_series(tmp_path / "in/b", series="1.2.4", seed=10)
    prepare(stoker, "in", "out")
    for path in (tmp_path / "in/b").iterdir():
        path.unlink()
    report = prepare(stoker, "in", "out")
    assert len(report["removed"]) == 1 and not report["pruned"] and len(rows("out")) == 8
    report = prepare(stoker, "in", "out", "--prune")
    assert report["pruned"] and len(rows("out")) == 4 and not (tmp_path / "out" / report["removed"][0]).exists()


def test_a_dry_run_says_the_same_and_writes_nothing(stoker, tmp_path):
    a_series(tmp_path / "in")
    report = prepare(stoker, "in", "out", "--dry-run")
    assert report["dry_run"] and (report["series"], report["slices"], report["added"]) == (1, 4, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_a_folder_that_the_next_run_completes(stoker, binary, environment, tmp_path, how):
    for i in range(12):
        a_series(tmp_path / f"in/{i}", count=12, series=f"1.2.{i}", seed=i)
    run = subprocess.Popen([binary, "prepare", "dicom", "in", "out", "--workers", "1"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not glob.glob(str(tmp_path / "out/*/.series.json")) and time.monotonic() < deadline and run.poll() is None:
        time.sleep(0.001)  # until the first series is there
    run.send_signal(how)
    run.communicate(timeout=60)
    assert run.returncode in ((-9, 0) if how == signal.SIGKILL else (128 + how, 0))
    for folder in glob.glob(str(tmp_path / "out/[0-9a-f]*")):  # what has a name is whole
        assert len(glob.glob(folder + "/*.png")) == 12 and os.path.exists(folder + "/.series.json")
    report = prepare(stoker, "in", "out")
    assert (report["series"], report["slices"]) == (12, 144) and report["kept"] >= 1
    assert not (tmp_path / "out/_index/.partial").exists()
    prepare(stoker, "in", "whole")
    assert rows("out") == rows("whole")


def test_bad_files_are_named_with_their_cause_and_the_others_are_written(stoker, tmp_path):
    folder = tmp_path / "in"
    a_series(folder / "good")
    cut = save(ct(values(), series="1.2.10"), folder / "cut.dcm")
    cut.write_bytes(cut.read_bytes()[:-100])
    head = save(ct(values(), series="1.2.11"), folder / "head.dcm")
    head.write_bytes(head.read_bytes()[:400])
    color = ct(np.zeros((8, 8, 3), np.uint8)[..., 0], series="1.2.12", SamplesPerPixel=3, PhotometricInterpretation="RGB", PlanarConfiguration=0)
    color.PixelData = bytes(8 * 8 * 3)
    save(color, folder / "color.dcm")
    pdf = ct(values(), series="1.2.13", PixelData=None, SOPClassUID="1.2.840.10008.5.1.4.1.1.104.1")
    pdf.EncapsulatedDocument = b"%PDF-1.4 "
    save(pdf, folder / "pdf.dcm")
    save(ct(values(), series="1.2.14", ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"]), folder / "localizer.dcm")
    save(ct(values(dtype=np.uint16, high=65535), series="1.2.15", RescaleIntercept=0), folder / "large.dcm")
    htj2k = ct(values(), series="1.2.16", PixelData=encapsulate([b"abcd"]))
    htj2k["PixelData"].is_undefined_length = True
    htj2k.file_meta.TransferSyntaxUID = "1.2.840.10008.1.2.4.201"
    save(htj2k, folder / "htj2k.dcm")
    broken = ct(values(), series="1.2.17", PixelData=encapsulate([b"not a codestream"]))
    broken["PixelData"].is_undefined_length = True
    broken.file_meta.TransferSyntaxUID = JPEG2000Lossless
    save(broken, folder / "broken.dcm")
    save(ct(values(), series="1.2.18", BurnedInAnnotation="YES"), folder / "burned.dcm")
    (folder / "copy.dcm").write_bytes((folder / "good/1.dcm").read_bytes())
    (folder / "notes.txt").write_text("not DICOM at all, but long enough to be looked at twice" * 10)
    (folder / "DICOMDIR").write_bytes((EXAMPLES.parent / "test_files/dicomdirtests/DICOMDIR").read_bytes())

    report = prepare(stoker, "in", "out", code=1)
    said = causes(report)
    assert said["cut.dcm"] == "it is truncated: it has 3740 of 3840 bytes of pixel data"
    assert said["head.dcm"].startswith("it is truncated: ")
    assert said["color.dcm"].startswith("it is a colour image (RGB, 3 samples per pixel)")
    assert said["large.dcm"].startswith("the value ") and said["large.dcm"].endswith("is outside -32768 to 32767")
    assert said["htj2k.dcm"] == "its transfer syntax is not supported: HTJ2K lossless"
    assert said["broken.dcm"] == "its pixel data (JPEG 2000 lossless) cannot be decoded"
    assert said["burned.dcm"].startswith("it has text burned into its pixels")
    assert report["refused_files"] == 7
    ignored = {one["path"]: one["cause"] for one in report["left_out"] if one["ignored"]}
    assert ignored == {"DICOMDIR": "it is a DICOMDIR", "pdf.dcm": "it is a PDF document, not an image", "localizer.dcm": "it is a localizer",
                       "good/1.dcm": "it is the same instance as `copy.dcm`"}
    assert report["slices"] == 4 and report["refused_series"] == 2
    text = stoker("prepare", "dicom", "in", "out")
    assert text.returncode == 1 and "7 files, and with them 2 whole series" in text.stdout and "cut.dcm: it is truncated" in text.stdout


def test_a_slice_that_fails_leaves_the_rest_of_its_series_in_place(stoker, tmp_path):
    for format in ("png", "npy"):
        folder = tmp_path / f"in-{format}"
        a_series(folder)
        save(ct(values(dtype=np.uint16, high=65535), z=2.6, number=7, RescaleIntercept=0), folder / "large.dcm")
        report = prepare(stoker, folder, format, "--format", format, code=1)
        assert list(causes(report)) == ["large.dcm"] and report["slices"] == 4
        for i, row in enumerate(rows(format)):
            assert np.array_equal(slice_of(format, row), values(i).astype(np.int64) - 1024), (format, i)
        again = prepare(stoker, folder, format, "--format", format, code=1)
        assert again["up_to_date"] and list(causes(again)) == ["large.dcm"]


def test_mixed_sizes_and_orientations_become_series_of_their_own(stoker, tmp_path):
    a_series(tmp_path / "in")
    save(ct(values(shape=(16, 16)), z=20), tmp_path / "in/small.dcm")
    save(ct(values(), z=21, ImageOrientationPatient=[1, 0, 0, 0, 0, -1]), tmp_path / "in/turned.dcm")
    report = prepare(stoker, "in", "out")
    assert (report["series"], report["slices"]) == (3, 6)
    assert any("several sizes or orientations" in note["text"] for note in report["series_notes"])
    assert len({row["series"] for row in rows("out")}) == 1 and len({row["path"].split("/")[0] for row in rows("out")}) == 3


def test_missing_tags_have_stated_fallbacks(stoker, tmp_path):
    a_series(tmp_path / "in", RescaleSlope=None, RescaleIntercept=None, ImagePositionPatient=None, PixelSpacing=None)
    report = prepare(stoker, "in", "out")
    notes = " ".join(note["text"] for note in report["series_notes"])
    assert "1 and 0 are taken" in notes and "order of their InstanceNumber" in notes and "no PixelSpacing" in notes
    assert [int(row["instance"]) for row in rows("out")] == [1, 2, 3, 4]
    assert np.array_equal(slice_of("out", rows("out")[3]), values(0))


def test_frames_of_an_enhanced_ct_are_sorted_by_their_own_positions(stoker, tmp_path):
    stored = np.stack([values(i) for i in range(40)])
    for name, syntax in {"native": None, "rle": RLELossless}.items():
        data = ct(stored, ImagePositionPatient=None, ImageOrientationPatient=None, RescaleSlope=None, RescaleIntercept=None,
                  SOPClassUID="1.2.840.10008.5.1.4.1.1.2.1")
        order = np.random.default_rng(1).permutation(40)

        def item(**tags):
            one = pydicom.Dataset()
            for tag, value in tags.items():
                setattr(one, tag, value)
            return one

        data.SharedFunctionalGroupsSequence = [item(
            PlaneOrientationSequence=[item(ImageOrientationPatient=[1, 0, 0, 0, 1, 0])],
            PixelValueTransformationSequence=[item(RescaleSlope=2, RescaleIntercept=-1000, RescaleType="HU")])]
        data.PerFrameFunctionalGroupsSequence = [item(PlanePositionSequence=[item(ImagePositionPatient=[0, 0, float(z)])]) for z in order]
        save(data, tmp_path / name / "a.dcm", syntax)
        report = prepare(stoker, name, f"out-{name}")
        assert report["slices"] == 40 and report["left_out"] == []
        for place, row in enumerate(rows(f"out-{name}")):
            frame = list(order).index(place)
            assert int(row["frame"]) == frame + 1
            assert np.array_equal(slice_of(f"out-{name}", row), stored[frame].astype(np.int64) * 2 - 1000)


def test_files_without_preamble_are_found_by_their_content(stoker, tmp_path):
    whole = save(ct(values()), tmp_path / "in/a", ImplicitVRLittleEndian)
    data = whole.read_bytes()
    start = data.index(b"\x08\x00\x08\x00")
    whole.write_bytes(data[start:])
    assert prepare(stoker, "in", "out")["slices"] == 1


def test_a_folder_of_somebody_else_is_not_written_into(stoker, tmp_path):
    a_series(tmp_path / "in")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.txt").write_text("mine")
    done = stoker("prepare", "dicom", "in", "out")
    assert done.returncode == 2 and "did not write" in done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_wrong_use_is_said_in_one_sentence(stoker, tmp_path):
    (tmp_path / "empty").mkdir()
    for words, sentence in {("dicom", "none", "out"): "cannot read `none`", ("dicom", "empty", "out"): "there is no DICOM file below `empty`",
                            ("nifti", "empty", "out"): "cannot prepare `nifti`", ("dicom", "empty", "empty"): "both source and destination",
                            ("dicom", "empty", "out", "--format", "tiff"): "there is no format `tiff`"}.items():
        done = stoker("prepare", *words)
        assert done.returncode == 2 and sentence in done.stderr, done.stderr


def test_slices_train_from_png_arrays_and_packs_with_the_same_values(stoker, tmp_path):
    stoker_module = pytest.importorskip("stoker")
    a_series(tmp_path / "in")
    for format in ("png", "npy", "pack"):
        prepare(stoker, "in", format, "--format", format)
    window = stoker_module.Window(level=-200, width=2000)
    options = dict(batch_size=4, output="numpy", color="keep")
    with stoker_module.Loader(str(tmp_path / "png/_index/index.csv"), transform=[window], **options) as loader:
        (from_png, _), = loader
    with stoker_module.Loader(str(tmp_path / "pack/slices.pack"), transform=[window], batch_size=4, output="numpy") as loader:
        (from_pack, _), = loader
    expected = np.stack([np.clip((values(i).astype(np.float32) - 1024 + 200 + 1000) / 2000, 0, 1) for i in range(4)])
    assert np.allclose(from_png.squeeze(), expected, atol=1e-5)
    assert np.allclose(from_pack.squeeze(), expected, atol=1e-5)


def test_a_copy_is_written_where_the_first_file_cannot_be_decoded(stoker, tmp_path):
    pixels = values(3)
    good = ct(pixels)
    save(good, tmp_path / "in/b.dcm", RLELossless)
    content = (tmp_path / "in/b.dcm").read_bytes()
    at = content.rindex(b"\xfe\xff\x00\xe0") + 8  # the header of the fragment, which says where its segments begin
    (tmp_path / "in/a.dcm").write_bytes(content[:at] + b"\xff" * 64 + content[at + 64:])
    report = prepare(stoker, "in", "out", code=1)
    assert report["slices"] == 1 and (slice_of(tmp_path / "out", rows(tmp_path / "out")[0]) == hu(tmp_path / "in/b.dcm")).all()
    named = {one["path"]: one["cause"] for one in report["left_out"]}
    assert "its copy `b.dcm` is used" in named["a.dcm"]
    again = prepare(stoker, "in", "out", code=1)
    assert again["kept"] == 1 and any(one["path"] == "a.dcm" and not one["ignored"] for one in again["left_out"])


def test_a_file_that_is_cut_inside_its_header_is_truncated(stoker, tmp_path):
    a_series(tmp_path / "in")
    content = sorted((tmp_path / "in").iterdir())[0].read_bytes()
    for length in range(140, 700, 20):
        (tmp_path / "in" / f"cut{length}").write_bytes(content[:length])
    report = prepare(stoker, "in", "out", code=1)
    named = {one["path"]: one for one in report["left_out"]}
    for length in range(140, 700, 20):
        assert not named[f"cut{length}"]["ignored"] and "truncated" in named[f"cut{length}"]["cause"], length


def test_what_a_killed_run_left_in_the_index_is_removed(stoker, tmp_path):
    a_series(tmp_path / "in")
    prepare(stoker, "in", "out")
    left = tmp_path / "out/_index/.index.csv.123-0.part"
    left.write_text("half")
    prepare(stoker, "in", "out")
    assert not left.exists()


def test_a_dry_run_says_that_it_decodes_nothing(stoker, tmp_path):
    a_series(tmp_path / "in")
    assert any("decodes nothing" in note for note in prepare(stoker, "in", "out", "--dry-run")["notes"])


@pytest.mark.parametrize("format", ["png", "npy"])
def test_prepared_series_are_volumes(stoker, tmp_path, format):
    stoker_module = pytest.importorskip("stoker")
    a_series(tmp_path / "in/a", series="1.2.1", seed=1)
    a_series(tmp_path / "in/b", series="1.2.2", seed=2)
    prepare(stoker, "in", "out", "--format", format)
    for address in ("out", "out/_index/index.csv", "out/_index/volumes.csv"):
        volumes = stoker_module.Volumes(tmp_path / address, patch=(2, 8, 8), samples=6, normalize=("scale", 1, 0))
        assert len(volumes) == 2 and volumes.info()[0]["shape"][0] == 4
        with stoker_module.Loader(volumes, batch_size=3, output="numpy") as loader:
            for batch in loader:
                for row in range(batch.size):
                    name = pathlib.Path(volumes.images[int(batch.volumes[row])]).relative_to(tmp_path / "out").parts[0]
                    series = [one for one in rows(tmp_path / "out") if one["path"].startswith(name)]
                    z, y, x = batch.coords[row]
                    stack = np.stack([slice_of(tmp_path / "out", one) for one in series])
                    assert (batch.image[row] == stack[z:z + 2, y:y + 8, x:x + 8]).all()
    done = stoker("load", "out", "--patch", "2x8x8", "--samples", "6", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["samples"] == 6


def test_rows_of_the_index_are_chosen_by_an_expression(stoker, tmp_path):
    a_series(tmp_path / "in/a", series="1.2.1", seed=1)
    a_series(tmp_path / "in/b", series="1.2.2", seed=2, count=3)
    prepare(stoker, "in", "out")
    all_rows = rows(tmp_path / "out")
    chosen = json.loads(stoker("load", "out/_index/index.csv", "--image-color", "keep", "--where", "position > 3 and rows==48", "--json").stdout)
    assert chosen["samples"] == sum(float(row["position"]) > 3 and row["rows"] == "48" for row in all_rows) > 0
    refused = stoker("load", "out/_index/index.csv", "--where", "spacing<3")
    assert refused.returncode == 2 and "names the column `spacing`" in refused.stderr and "`slice_spacing`" in refused.stderr
