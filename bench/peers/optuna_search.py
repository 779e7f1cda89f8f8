"""Optuna's TPE with its median pruner on a recorded grid: {"file": CSV, "budgets": [seconds of trials, one run each]} -> regrets."""

import csv
import json
import random
import sys


def read(path):
    """Knobs in the order of the file, and the rows of each point."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    columns = list(rows[0])
    knobs = columns[columns.index("status") + 1:columns.index("images_per_s")]
    points = {}
    for row in rows:
        points.setdefault(tuple(row[knob] for knob in knobs), []).append(
            (float(row["images_per_s"]) if row["status"] == "ok" else None, float(row["trial_seconds"])))
    return knobs, points


def truth(rows):
    return 0 if any(rate is None for rate, _ in rows) else sum(rate for rate, _ in rows) / len(rows)


def run(optuna, knobs, points, seconds, seed):
    """The point with the highest rate that was seen within the time, as its users take it."""
    values = [sorted({point[i] for point in points}, key=float_or_text) for i in range(len(knobs))]
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed), pruner=optuna.pruners.MedianPruner())
    chance, order, asked, spent, seen = random.Random(seed), {}, {}, 0.0, {}
    while spent < seconds:
        trial = study.ask()
        point = tuple(of[trial.suggest_int(knob, 0, len(of) - 1)] for knob, of in zip(knobs, values))
        rows = order.setdefault(point, chance.sample(points[point], len(points[point])))
        rate, took = rows[asked.get(point, 0) % len(rows)]
        asked[point] = asked.get(point, 0) + 1
        if rate is None:
            spent += took
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            continue
        trial.report(rate, 0)  # at half of its time, as good as the whole: a rate has no learning curve
        if trial.should_prune():
            spent += took / 2
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            continue
        spent += took
        study.tell(trial, rate)
        seen[point] = max(seen.get(point, 0), rate)
    return max(seen, key=seen.get) if seen else None


def float_or_text(word):
    try:
        return 0, float(word), word
    except ValueError:
        return 1, 0, word


def main():
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    arguments = json.loads(sys.argv[1])
    knobs, points = read(arguments["file"])
    best = max(map(truth, points.values()))
    regrets = []
    for seed, seconds in enumerate(arguments["budgets"]):
        point = run(optuna, knobs, points, seconds, seed)
        regrets.append(1 - truth(points[point]) / best if point else 1)
    print(json.dumps({"regrets": regrets, "version": optuna.__version__}))


if __name__ == "__main__":
    main()
