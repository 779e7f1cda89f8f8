"""Ready-made targets of ``stoker tune``: functions of one dict of knobs that give ``(loader, step)``::

    stoker tune stoker.targets:image_folder data/train --grid batch_size=32,64 --grid num_workers=1,2,4
    stoker tune stoker.targets:ct_slices data/slices/index.csv --subset 1000 --inflate 1000 --grid num_workers=0,4,8
    stoker tune stoker.targets:vit --with model=large --grid batch_size=32,64 --grid checkpointing=true,false
    stoker tune stoker.targets:dino --with model=large --effective-batch 256 --grid batch_size=32,64 --grid accumulate_steps=4,8

Each is a plain PyTorch DataLoader, as people write them: what is tuned is their job, not ours. All take ``source`` (the address
given behind the target), ``class_list``, ``class_subset``, ``class_subset_seed``, ``subset``, ``subset_seed``, ``inflate``, ``seed``, the
DataLoader's ``batch_size, num_workers, prefetch_factor, pin_memory, persistent_workers``, and for the step ``device``, ``step_ms`` (an
emulated step) or ``model`` (a ViT; see :func:`vit`; ``none``: no step). Without either the step is that of a small model. Needs torch;
images need Pillow.
"""

from .audio import wav_folder
from .dino import dino
from .images import ct_slices, image_folder
from .vit import vit

__all__ = ["ct_slices", "dino", "image_folder", "vit", "wav_folder"]
