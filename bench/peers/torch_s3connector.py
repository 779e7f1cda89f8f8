"""s3torchconnector: Amazon's own data set for PyTorch, on the CRT client, in the workers of a DataLoader."""

import os

import contestant
import s3_loader
from s3torchconnector import S3ClientConfig, S3MapDataset


def length(reader):
    return len(reader.read())


def epochs(args):
    objects = S3MapDataset.from_objects([f"s3://{args['bucket']}/{key}" for key in args["keys"]], region=os.environ["AWS_REGION"],
                                        endpoint=os.environ["AWS_ENDPOINT_URL_S3"], transform=length, s3client_config=S3ClientConfig(force_path_style=True))
    yield from s3_loader.epochs(objects, args)


contestant.race_epochs(epochs, ["s3torchconnector", "torch"])
