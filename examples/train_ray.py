"""Ray Train on a cluster that runs: python train_ray.py FOLDER STORAGE WORKERS"""

import sys
import tempfile

import ray.train.torch

import stoker


def train(config):
    import torch  # here: Ray sends this function to its workers, and cannot send all of torch with it

    loader = stoker.Loader(config["folder"], batch_size=4, shuffle=True, seed=42, output="torch",
                           transform=[stoker.RandomResizedCrop(32), stoker.Normalize("imagenet")])
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, len(loader.classes)))
    model = ray.train.torch.prepare_model(model)  # but no prepare_data_loader: the loader has its rank and CPUs from Ray
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    if last := ray.train.get_checkpoint():  # Ray has started the workers again
        with last.as_directory() as folder:
            saved = torch.load(f"{folder}/state.pt", weights_only=True)
        model.load_state_dict(saved["model"])
        loader.load_state_dict(saved["loader"])
    for epoch in range(loader.epoch, 2):
        seen = 0
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(labels)
        with tempfile.TemporaryDirectory() as folder:
            torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, f"{folder}/state.pt")
            ray.train.report({"epoch": epoch, "seen": seen}, checkpoint=ray.train.Checkpoint.from_directory(folder))


folder, storage, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
trainer = ray.train.torch.TorchTrainer(train, train_loop_config={"folder": folder}, scaling_config=ray.train.ScalingConfig(num_workers=workers),
                                       run_config=ray.train.RunConfig(storage_path=storage, name="stoker"))
print(trainer.fit().metrics)
