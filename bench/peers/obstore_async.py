"""obstore (object_store in Rust): many requests in flight in one process, from asyncio."""

import asyncio
import os
import random

import contestant
import obstore
from obstore.store import S3Store


def epochs(args):
    store = S3Store(args["bucket"], endpoint=os.environ["AWS_ENDPOINT_URL_S3"], virtual_hosted_style_request=False, client_options={"allow_http": True})
    keys = list(args["keys"])

    async def fetch_all():
        waiting, lengths = iter(keys), []

        async def work():
            for key in waiting:
                answer = await obstore.get_async(store, key)
                lengths.append(len(await answer.bytes_async()))

        await asyncio.gather(*(work() for _ in range(args["depth"])))
        return lengths

    with asyncio.Runner() as runner:
        while True:
            random.shuffle(keys)
            lengths = runner.run(fetch_all())
            yield [(len(lengths), sum(lengths))]


contestant.race_epochs(epochs, ["obstore"])
