"""Makes volumes-*.tar.gz: small volumes in every format that open_volume reads.

The files are written by zarr, numcodecs, tifffile, Pillow and nibabel, not by Stoker:
    pip install zarr tifffile imagecodecs nibabel pillow && python tests/formats/make_volumes.py
An archive that exists is kept (it must stay readable for ever). dataset/volume_files_test.cc knows the same formula.
"""

import gzip
import io
import pathlib
import tarfile
import tempfile

import nibabel
import numcodecs
import numpy as np
import tifffile
import zarr
from PIL import Image

FOLDER = pathlib.Path(__file__).parent
SMALL, LARGE = (5, 6, 7), (3, 20, 36)


def volume(shape, dtype, channels=0):
    z, y, x = np.mgrid[tuple(slice(0, n) for n in shape)]
    value = (z * 1009 + y * 101 + x * 7 + 11) % 65521
    if channels:
        value = value[..., None] + np.arange(channels)
    dtype = np.dtype(dtype)
    return (value / 8 - 100 if dtype.kind == "f" else value).astype(dtype)


def zarr_2(root, name, data, chunks, **options):
    array = zarr.create_array(root / name, shape=data.shape, dtype=data.dtype, chunks=chunks, zarr_format=2, **options)
    array[...] = data


def zarr_3(root, name, data, chunks, **options):
    array = zarr.create_array(root / name, shape=data.shape, dtype=data.dtype, chunks=chunks, zarr_format=3, **options)
    array[...] = data


def write_zarr_2(root):
    small, large, chunk = volume(SMALL, "<u2"), volume(LARGE, "<u2"), (2, 16, 32)
    zarr_2(root, "v2-raw", small, (2, 3, 4), compressors=None)
    zarr_2(root, "v2-slashes", small, (2, 3, 4), compressors=None, chunk_key_encoding={"name": "v2", "separator": "/"})
    zarr_2(root, "v2-big-endian", volume(SMALL, ">i4"), (2, 3, 4), compressors=None)
    zarr_2(root, "v2-fortran", small, (2, 3, 4), compressors=None, order="F")
    zarr_2(root, "v2-zlib", small, (2, 3, 4), compressors=numcodecs.Zlib())
    zarr_2(root, "v2-gzip", volume(SMALL, "<f4"), (2, 3, 4), compressors=numcodecs.GZip())
    zarr_2(root, "v2-zstd", volume(SMALL, "<f8"), (2, 3, 4), compressors=numcodecs.Zstd())
    for inside in ("lz4", "zstd", "zlib", "blosclz"):
        for shuffle in (0, 1, 2) if inside == "lz4" else (1,):
            zarr_2(root, f"v2-blosc-{inside}-{shuffle}", large, chunk, compressors=numcodecs.Blosc(cname=inside, shuffle=shuffle))
    zarr_2(root, "v2-lzma", small, (2, 3, 4), compressors=numcodecs.LZMA())
    zarr_2(root, "v2-delta", small, (2, 3, 4), filters=[numcodecs.Delta(dtype="<u2")])
    zarr_2(root, "v2-channels", volume(SMALL, "u1", 3), (2, 3, 4, 3), compressors=None)
    zarr_2(root, "v2-flat", volume((1,) + SMALL[1:], "<u2")[0], (3, 4), compressors=None)



def write_zarr_3(root):
    from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ZstdCodec

    small, large, chunk = volume(SMALL, "<u2"), volume(LARGE, "<u2"), (2, 16, 32)
    zarr_3(root, "v3-raw", small, (2, 3, 4), compressors=None)
    zarr_3(root, "v3-dots", small, (2, 3, 4), compressors=None, chunk_key_encoding={"name": "default", "separator": "."})
    zarr_3(root, "v3-keys-of-v2", small, (2, 3, 4), compressors=None, chunk_key_encoding={"name": "v2", "separator": "."})
    zarr_3(root, "v3-big-endian", small, (2, 3, 4), compressors=None, serializer=BytesCodec(endian="big"))
    zarr_3(root, "v3-transposed", small, (2, 3, 4), compressors=None, filters=[zarr.codecs.TransposeCodec(order=(2, 0, 1))])
    zarr_3(root, "v3-gzip", small, (2, 3, 4), compressors=GzipCodec())
    zarr_3(root, "v3-zstd-sum", volume(SMALL, "<f4"), (2, 3, 4), compressors=[ZstdCodec(checksum=True), Crc32cCodec()])
    zarr_3(root, "v3-sum-zstd", small, (2, 3, 4), compressors=[Crc32cCodec(), ZstdCodec()])
    zarr_3(root, "v3-blosc-zstd", large, chunk, compressors=BloscCodec(cname="zstd", shuffle="bitshuffle"))
    zarr_3(root, "v3-shards", large, (2, 10, 9), shards=(4, 10, 18), compressors=BloscCodec(cname="lz4", shuffle="shuffle"))
    zarr_3(root, "v3-shards-start", small, (2, 3, 4), compressors=None, filters=None, serializer=zarr.codecs.ShardingCodec(
        chunk_shape=(1, 3, 2), codecs=[BytesCodec(), ZstdCodec()], index_codecs=[BytesCodec(), Crc32cCodec()], index_location="start"))
    # Chunks that are not there have the fill value; in a shard, too.
    for name, options in (("v3-absent", {}), ("v3-absent-shards", {"shards": (4, 6, 8)})):
        array = zarr.create_array(root / name, shape=SMALL, dtype="<f4", chunks=(2, 3, 4), fill_value=2.5, zarr_format=3, **options)
        array[:2, :3, :4] = volume(SMALL, "<f4")[:2, :3, :4]
    # Images of OME-Zarr 0.4 and 0.5: two levels, of five and of three axes.
    for version, format, axes in (("0.4", 2, "tczyx"), ("0.5", 3, "zyx")):
        group = zarr.open_group(root / f"ome-{version}", mode="w", zarr_format=format)
        datasets = []
        for level, step in enumerate((1, 2)):
            data = small[::step, ::step, ::step]
            shape = (1,) * (len(axes) - 3) + data.shape
            group.create_array(str(level), data=data.reshape(shape), chunks=(1,) * (len(axes) - 3) + (2, 3, 4), compressors=None)
            scale = [1.0] * (len(axes) - 3) + [2.0 * step, 0.5 * step, 0.25 * step]
            datasets.append({"path": str(level), "coordinateTransformations": [{"type": "scale", "scale": scale}]})
        kinds = {"t": {"type": "time"}, "c": {"type": "channel"}}
        image = {"axes": [{"name": a, **kinds.get(a, {"type": "space", "unit": "micrometer"})} for a in axes], "datasets": datasets}
        group.attrs.update({"ome": {"version": "0.5", "multiscales": [image]}} if version == "0.5" else {"multiscales": [{"version": "0.4", **image}]})


def write_files(root):
    np.save(root / "u2.npy", volume(SMALL, "<u2"))
    np.save(root / "big-endian.npy", volume(SMALL, ">i4"))
    np.save(root / "channels.npy", volume(SMALL, "<f4", 3))
    np.save(root / "flat.npy", volume((1,) + SMALL[1:], "u1")[0])
    np.save(root / "fortran.npy", np.asfortranarray(volume(SMALL, "<u2")))
    np.savez(root / "stored.npz", image=volume(SMALL, "<u2"), mask=volume(SMALL, "u1"))
    np.savez_compressed(root / "deflated.npz", image=volume(SMALL, "<u2"), mask=volume(SMALL, "u1"))

    affine = np.diag([0.5, 0.75, 3.0, 1.0])
    for name, dtype in (("u1", "u1"), ("i2", "<i2"), ("f4", "<f4"), ("u2-big-endian", ">u2")):
        header = nibabel.Nifti1Header(endianness=">" if dtype[0] == ">" else "<")
        header.set_xyzt_units("mm")
        image = nibabel.Nifti1Image(volume(SMALL, dtype).T, affine, header, dtype=dtype.lstrip("<>"))
        nibabel.save(image, root / f"{name}.nii")
    image = nibabel.Nifti1Image(volume(SMALL, "<i2").T, affine)
    image.header.set_slope_inter(2.0, -1024.0)
    nibabel.save(image, root / "scaled.nii.gz")
    nibabel.save(nibabel.Nifti2Image(volume(SMALL, "<u2").T, affine), root / "version-2.nii")
    series = np.stack([volume(SMALL, "<i2").T] * 2, -1)
    nibabel.save(nibabel.Nifti1Image(series, affine), root / "over-time.nii")
    nibabel.save(nibabel.Nifti1Image(series[..., :1], affine), root / "one-time.nii")



def write_tiff(root):
    small, large, real = volume(SMALL, "<u2"), volume(LARGE, "<u2"), volume(LARGE, "<f4")
    tifffile.imwrite(root / "plain.tif", small, photometric="minisblack")
    tifffile.imwrite(root / "plain-big-endian.tif", small, photometric="minisblack", byteorder=">")
    tifffile.imwrite(root / "plain-big.tif", volume(SMALL, "<f4"), photometric="minisblack", bigtiff=True)
    tifffile.imwrite(root / "imagej.tif", small, imagej=True)
    for name, compression in (("lzw", "lzw"), ("deflate", "zlib"), ("packbits", "packbits"), ("zstd", "zstd")):
        for page in range(SMALL[0]):
            tifffile.imwrite(root / f"{name}.tif", small[page], append=page > 0, photometric="minisblack", compression=compression,
                             rowsperstrip=4, predictor=2 if name in ("lzw", "zstd") else None)
    for name, byteorder in (("tiles", "<"), ("tiles-big-endian", ">")):
        tifffile.imwrite(root / f"{name}.tif", large.astype(byteorder + "u2"), photometric="minisblack", compression="zlib", predictor=2,
                         tile=(16, 16), byteorder=byteorder, bigtiff=name == "tiles")
    tifffile.imwrite(root / "real.tif", real, photometric="minisblack", compression="zlib", predictor=3, rowsperstrip=7)
    tifffile.imwrite(root / "real-big-endian.tif", real.astype(">f4"), photometric="minisblack", compression="lzw", predictor=3, byteorder=">")
    tifffile.imwrite(root / "color.tif", volume(SMALL, "u1", 3), photometric="rgb", compression="zlib")
    tifffile.imwrite(root / "tiles-raw.tif", large, photometric="minisblack", tile=(16, 32))
    pages = [Image.fromarray(page) for page in volume(LARGE, "u1")]
    pages[0].save(root / "pillow-lzw.tif", save_all=True, append_images=pages[1:], compression="tiff_lzw")
    noise = (np.arange(80 * 90, dtype=np.uint64) * 2654435761 >> 13) & 7  # more codes than the table of LZW has
    Image.fromarray(noise.astype("u1").reshape(80, 90)).save(root / "pillow-noise-lzw.tif", compression="tiff_lzw")
    with tifffile.TiffWriter(root / "two-sizes.tif") as writer:
        writer.write(small[0], photometric="minisblack")
        writer.write(small[0, :4], photometric="minisblack")
    Image.fromarray(volume(SMALL, "u1")[0]).convert("L").save(root / "jpeg.tif", compression="jpeg")
    for folder in ("tif-slices", "png-slices"):
        (root / folder).mkdir()
    for page in range(12):  # 10 comes behind 9
        tifffile.imwrite(root / f"tif-slices/slice-{page}.tif", volume((12, 6, 7), "<u2")[page], photometric="minisblack", compression="zlib" if page % 2 else None)
        Image.fromarray(volume((12, 6, 7), "<u2")[page]).save(root / f"png-slices/{page:05}.png")


def archive(root, path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file in sorted(root.rglob("*")):
            if file.is_file():
                member = tarfile.TarInfo(str(file.relative_to(root)))
                member.size = file.stat().st_size
                tar.addfile(member, io.BytesIO(file.read_bytes()))
    path.write_bytes(gzip.compress(out.getvalue(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size} bytes")


for kind, write in {"files": write_files, "tiff": write_tiff, "zarr-2": write_zarr_2, "zarr-3": write_zarr_3}.items():
    if not (FOLDER / f"volumes-{kind}.tar.gz").exists():
        with tempfile.TemporaryDirectory() as folder:
            write(pathlib.Path(folder))
            archive(pathlib.Path(folder), FOLDER / f"volumes-{kind}.tar.gz")
