"""Makes the first inputs of the fuzz targets: python3 fuzz/make_corpus.py FOLDER. Needs nothing but Python.

Sums that guard a format (the CRC of PNG chunks and zip members) are right here, so that the fuzzer starts behind them.
The images, audio and volumes of tests/formats are taken as well.
"""

import io
import pathlib
import shutil
import struct
import sys
import tarfile
import zipfile
import zlib

FORMATS = pathlib.Path(__file__).parent.parent / "tests" / "formats"


def png(depth, color, interlaced, palette=b""):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = zlib.compress(bytes(index % 5 for index in range(200)))
    header = struct.pack(">IIBBBBB", 4, 4, depth, color, 0, 0, interlaced)
    colors = chunk(b"PLTE", palette) + chunk(b"tRNS", palette[:1]) if palette else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + colors + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def npy(descr, shape, data):
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def npz(method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("a.npy", npy("<i2", (3,), bytes(6)))
        archive.writestr("b.npy", npy("|u1", (2, 5000), bytes(10000)))
    return out.getvalue()


def wav(format, bits, channels):
    frame = channels * bits // 8
    fmt = struct.pack("<HHIIHH", format, channels, 8000, 8000 * frame, frame, bits)
    data = bytes(range(8 * frame))
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<I", 16) + fmt + b"data" + struct.pack("<I", len(data)) + data


def dicom(syntax, order="<", explicit=True):
    """A slice of 4 x 4 with functional groups, in the byte order of its transfer syntax."""
    def element(group, number, kind, value, order=order, explicit=explicit):
        head = struct.pack(order + "HH", group, number)
        if not explicit:
            return head + struct.pack(order + "I", len(value)) + value
        long = kind in (b"OW", b"SQ")
        return head + kind + (struct.pack(order + "HI", 0, len(value)) if long else struct.pack(order + "H", len(value))) + value

    def word(group, number, value):
        return element(group, number, b"US", struct.pack(order + "H", value))

    def item(content):
        return struct.pack(order + "HHI", 0xFFFE, 0xE000, len(content)) + content

    meta = element(2, 0x10, b"UI", syntax + b"\0" * (len(syntax) % 2), "<", True)
    place = element(0x5200, 0x9230, b"SQ", item(element(0x20, 0x9113, b"SQ", item(element(0x20, 0x32, b"DS", b"0\\0\\5 ")))))
    data = (element(8, 8, b"CS", b"ORIGINAL\\PRIMARY\\AXIAL ") + element(0x20, 0xE, b"UI", b"1.2.3.44") + element(0x20, 0x37, b"DS", b"1\\0\\0\\0\\1\\0 ") +
            word(0x28, 2, 1) + element(0x28, 4, b"CS", b"MONOCHROME2 ") + element(0x28, 8, b"IS", b"1 ") + word(0x28, 0x10, 4) + word(0x28, 0x11, 4) +
            word(0x28, 0x100, 16) + word(0x28, 0x101, 16) + word(0x28, 0x102, 15) + word(0x28, 0x103, 1) + element(0x28, 0x1052, b"DS", b"-1024 ") +
            element(0x28, 0x1053, b"DS", b"1 ") + place + element(0x7FE0, 0x10, b"OW", bytes(32)))
    if syntax.endswith(b".99"):
        packer = zlib.compressobj(6, zlib.DEFLATED, -15)
        data = packer.compress(data) + packer.flush()
    return bytes(128) + b"DICM" + meta + data


def exif(order, orientation):
    entry = struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)
    return (b"II" if order == "<" else b"MM") + struct.pack(order + "HIH", 42, 8, 1) + entry + bytes(4)


def with_exif(jpeg, order, orientation):
    content = b"Exif\0\0" + exif(order, orientation)
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content + jpeg[2:]


def files():
    for color, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 8), 4: (8, 16), 6: (8, 16)}.items():
        for depth in depths:
            for interlaced in (0, 1):
                yield "png", f"{color}-{depth}-{interlaced}", png(depth, color, interlaced, bytes(range(6)) if color == 3 else b"")
                yield "png", f"rows-{color}-{depth}-{interlaced}", bytes([9, 7, depth, color, interlaced + 34]) + bytes(index % 5 for index in range(300))
    for descr in ("|u1", "<f4", "<V2", "|b1"):
        yield "npy", descr[1:], npy(descr, (2, 3), bytes(24))
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        yield "npz", str(method), npz(method)
    for format in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        for long_name in (False,) if format == tarfile.USTAR_FORMAT else (False, True):
            yield "tar", f"{format}-{long_name}", tar(format, long_name)
    for pack in sorted(FORMATS.glob("*.pack")):
        yield "json", pack.stem, (pack / "pack.json").read_bytes()
        yield "pack", pack.stem, (pack / "pack.json").read_bytes() + b"\0" + (pack / "index.npy").read_bytes()
    yield "json", "escapes", rb'["\"\\\/\b\f\n\r\t\u00e9\ud83d\udd25\udce9", -0, 1.5e-7, 18446744073709551616, true, null, {"a": {}}]'
    for path in sorted(FORMATS.glob("*.jpg")):
        for places in (0, 3):
            yield "seek", f"{path.stem}-{places}", bytes([0, places]) + bytes(12 * places) + path.read_bytes()
    for name, order, explicit in ((b"", "<", False), (b".1", "<", True), (b".2", ">", True), (b".1.99", "<", True)):
        yield "dicom", "slice" + name.decode(), dicom(b"1.2.840.10008.1.2" + name, order, explicit)
        yield "dicom", "bare" + name.decode(), dicom(b"1.2.840.10008.1.2" + name, order, explicit)[132:]
    yield from volumes()
    for format, bits in ((1, 8), (1, 16), (1, 24), (1, 32), (3, 32), (3, 64)):
        for channels in (1, 2, 3):
            yield "wav", f"{format}-{bits}-{channels}", wav(format, bits, channels)


def volumes():
    for path in sorted(FORMATS.glob("volumes-*.tar.gz")):
        with tarfile.open(path) as archive:
            members = {member.name: archive.extractfile(member).read() for member in archive}
        for name, content in members.items():
            folder, _, last = name.rpartition("/")
            if last in (".zarray", ".zattrs", "zarr.json"):
                chunks = [other for other in members if other.startswith(folder + "/") and not other.endswith((".zarray", ".zattrs", ".json", ".zgroup"))]
                yield "zarr", f"{folder}-{last}".replace("/", "-"), content + b"\0" + (members[chunks[0]] if chunks else b"")
            elif last.endswith(".tif"):
                yield "tiff", name.replace("/", "-"), content
            elif last.endswith(".nii"):
                yield "nifti", last, content[:600]


def tar(format, long_name):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for name, content in (("a/0.jpg", b"x" * 600), ("a/0.cls", b"7"), ("b" * (300 if long_name else 3) + "/1.json", b'{"label": 3}')):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def main(folder):
    for format in ("dicom", "jpeg", "jpeg_differential", "png", "webp", "wav", "flac", "npy", "npz", "tar", "pack", "seek", "json", "nifti", "tiff", "zarr"):
        (folder / format).mkdir(parents=True, exist_ok=True)
    for format, name, content in files():
        (folder / format / name).write_bytes(content)
    for extension, format in (("jpg", "jpeg"), ("jpg", "jpeg_differential"), ("png", "png"), ("webp", "webp"), ("wav", "wav"), ("flac", "flac")):
        for path in FORMATS.glob(f"*.{extension}"):
            shutil.copy(path, folder / format / path.name)
    for order, orientation in (("<", 6), (">", 3)):
        turned = with_exif((FORMATS / "yuv420.jpg").read_bytes(), order, orientation)
        (folder / "jpeg" / f"exif-{orientation}.jpg").write_bytes(turned)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_corpus.py FOLDER")
    main(pathlib.Path(sys.argv[1]))
