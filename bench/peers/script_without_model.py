"""Runs a training script that nobody here wrote, with its model replaced by a step that sleeps; its data path stays as it is.

Arguments: REPORT MILLISECONDS SCRIPT ARGUMENTS... The report is JSON: when each batch of each phase was there, how many samples it
had, and what the model made of it. "check" instead of milliseconds: every bit of the images that are validated is in the report, too.
"""

import json
import runpy
import sys
import time

import torch
from torchvision import models

REPORT, CHECKS, SCRIPT = sys.argv[1], sys.argv[2] == "check", sys.argv[3]
SLEEP_S = 0 if CHECKS else float(sys.argv[2]) / 1000
began = time.perf_counter()
phases = []


class Step(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(3 * 8 * 8, 1000)

    def forward(self, images):
        now = time.perf_counter() - began
        if not phases or phases[-1]["training"] != self.training:
            phases.append({"training": self.training, "times": [], "samples": [], "logits": []})
        time.sleep(SLEEP_S)
        logits = self.layer(images[:, :, ::28, ::28].flatten(1))
        phases[-1]["times"].append(now)
        phases[-1]["samples"].append(len(images))
        if not self.training:
            phases[-1]["logits"].append([logits.double().sum().item(), images.view(torch.int32).sum().item() if CHECKS else 0])
        return logits


models.resnet18 = lambda *arguments, **options: Step()
sys.argv = sys.argv[3:]
torch.set_num_threads(1)
if __name__ == "__main__":
    runpy.run_path(SCRIPT, run_name="__main__")
    with open(REPORT, "w") as file:
        json.dump(phases, file)
