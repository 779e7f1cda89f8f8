"""The recipes of the suite `augment`, in torchvision's words and in Stoker's short text."""

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
DINO_COLOURS = "random_apply:p=0.8[color_jitter:0.4:0.4:0.2:0.1],random_grayscale:0.2"

STOKER = {
    "jitter": "rrc:224,flip,color_jitter:0.4:0.4:0.2:0.1,normalize:imagenet",
    "randaugment": "rrc:224,flip,randaug:2:9,normalize:imagenet,random_erasing:0.25",
    "dino": f"views(first=1[rrc:224:scale=0.4..1:filter=bicubic,flip,{DINO_COLOURS},gaussian_blur:23,normalize:imagenet],"
            f"second=1[rrc:224:scale=0.4..1:filter=bicubic,flip,{DINO_COLOURS},random_apply:p=0.1[gaussian_blur:23],solarize:128:0.2,normalize:imagenet],"
            f"small=8[rrc:96:scale=0.05..0.4:filter=bicubic,flip,{DINO_COLOURS},random_apply:p=0.5[gaussian_blur:23],normalize:imagenet])",
    "cifar": "random_crop:32:4,flip",
    "log-mel": "mel:16000:400:hop_length=160:n_mels=80,db:power:80",
    "flac": "pad:160000",
}


def torchvision_recipe(name):
    from torchvision import transforms as t

    last = [t.ToTensor(), t.Normalize(MEAN, STD)]
    if name == "jitter":
        return t.Compose([t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.ColorJitter(0.4, 0.4, 0.2, 0.1), *last])
    if name == "randaugment":
        return t.Compose([t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.RandAugment(2, 9), *last, t.RandomErasing(0.25)])
    if name == "cifar":
        return t.Compose([t.RandomCrop(32, 4), t.RandomHorizontalFlip(), t.PILToTensor()])
    colours = [t.RandomHorizontalFlip(), t.RandomApply([t.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8), t.RandomGrayscale(0.2)]

    def crop(size, scale):
        return t.RandomResizedCrop(size, scale, interpolation=t.InterpolationMode.BICUBIC)

    def blur(p):
        return t.RandomApply([t.GaussianBlur(23)], p)

    first = t.Compose([crop(224, (0.4, 1)), *colours, blur(1), *last])
    second = t.Compose([crop(224, (0.4, 1)), *colours, blur(0.1), t.RandomSolarize(128, 0.2), *last])
    small = t.Compose([crop(96, (0.05, 0.4)), *colours, blur(0.5), *last])
    return Dino(first, second, small)


class Dino:
    """Ten views of one image; a class, so that workers can take it over."""

    def __init__(self, first, second, small):
        self.first, self.second, self.small = first, second, small

    def __call__(self, image):
        import torch

        return self.first(image), self.second(image), torch.stack([self.small(image) for _ in range(8)])
