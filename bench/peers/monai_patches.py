"""Patches of NIfTI volumes by MONAI as its tutorials do it: CacheDataset holds the volumes, RandCropByPosNegLabeld cuts four of each."""

import glob
import os

import contestant
import torch
from monai.data import CacheDataset, DataLoader, list_data_collate
from monai.transforms import Compose, EnsureChannelFirstd, FgBgToIndicesd, LoadImaged, NormalizeIntensityd, RandCropByPosNegLabeld

PER_VOLUME = 4


def batches(args):
    torch.set_num_threads(1)
    items = [{"image": path, "label": path.replace("image", "mask")} for path in sorted(glob.glob(os.path.join(args["data"], "image-*.nii")))]
    transform = Compose([
        LoadImaged(["image", "label"]), EnsureChannelFirstd(["image", "label"]), FgBgToIndicesd("label"),
        RandCropByPosNegLabeld(["image", "label"], "label", args["patch"], pos=1, neg=1, num_samples=PER_VOLUME, fg_indices_key="label_fg_indices",
                               bg_indices_key="label_bg_indices"),
        NormalizeIntensityd("image")])
    data = CacheDataset(items, transform, cache_rate=1, num_workers=1, progress=False)
    while True:
        for batch in DataLoader(data, batch_size=args["batch_size"] // PER_VOLUME, shuffle=True, num_workers=args["num_workers"], collate_fn=list_data_collate):
            yield batch["image"].as_tensor()


contestant.race(batches, ["torch", "numpy", "monai", "nibabel"])
