"""Batches as jax arrays, in place: python jax_example.py FOLDER"""

import sys

import jax
import jax.numpy as jnp

import stoker

loader = stoker.Loader(sys.argv[1], batch_size=8, shuffle=True, output="jax", layout="NHWC", drop_last=True,
                       transform=[stoker.RandomResizedCrop(16), stoker.Normalize("imagenet")])


def loss_of(weights, images, labels):
    scores = images.reshape(len(images), -1) @ weights
    return -jnp.mean(jax.nn.log_softmax(scores)[jnp.arange(len(labels)), labels])


@jax.jit
def step(weights, images, labels):
    loss, gradient = jax.value_and_grad(loss_of)(weights, images, labels)
    return weights - 0.01 * gradient, loss


weights = jnp.zeros((16 * 16 * 3, len(loader.classes)))
for epoch in range(3):
    for images, labels in loader:
        weights, loss = step(weights, images, labels)
    print(f"epoch {epoch}: loss {float(loss):.3f}")
