"""boto3 in the workers of a DataLoader, one client each, as most people write it."""

import boto3
import botocore.config
import contestant
import s3_loader
import torch


class Objects(torch.utils.data.Dataset):
    def __init__(self, bucket, keys):
        self.bucket, self.keys, self.client = bucket, keys, None

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, index):
        if self.client is None:
            self.client = boto3.client("s3", config=botocore.config.Config(s3={"addressing_style": "path"}))
        return len(self.client.get_object(Bucket=self.bucket, Key=self.keys[index])["Body"].read())


contestant.race_epochs(lambda args: s3_loader.epochs(Objects(args["bucket"], args["keys"]), args), ["boto3", "torch"])
