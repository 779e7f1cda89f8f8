"""stoker plan: days against a budget, memory, options and what-ifs; the five cases; input that cannot be planned from."""

import json
import pathlib

import pytest

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
HEADER = "trial,status,batch_size,num_workers,images_per_s,ci_low,ci_high,verdict,device_allocated_bytes,error"
ROWS = ["1,ok,32,1,100,98,102,prep_bound,2000000000,", "2,ok,32,2,196,193,199,prep_bound,2000000000,",
        "3,ok,64,2,198,196,200,prep_bound,3000000000,"]


@pytest.fixture
def table(tmp_path):
    def write(rows=ROWS, header=HEADER, name="results.csv"):
        (tmp_path / name).write_text("\n".join([header, *rows]) + "\n")
        return name
    return write


def plan(done, codes=(0,)):
    assert done.returncode in codes, done.stderr
    return json.loads(done.stdout)


def chosen(run):
    return run["configurations"][run["chosen"]]


def options_of(run):
    return {option["name"]: option for option in run["options"]}


def what_ifs_of(run):
    return {what["name"]: what for what in run["what_ifs"]}


def test_configurations_with_long_names_are_told_apart(stoker, table):
    header = "trial,status,num_workers,persistent_workers,prefetch_factor,images_per_s"
    rows = ["1,ok,2,true,2,100", "2,ok,2,true,4,90", "3,ok,2,false,2,80", "4,ok,1,true,2,70"]
    done = stoker("plan", "--run", table(rows, header), "--images", "1e6")
    assert done.returncode == 0, done.stderr
    for name in ("persistent_workers=true prefetch_factor=2", "persistent_workers=true prefetch_factor=4"):
        assert f"num_workers=2 {name} " in done.stdout, done.stdout


# ---- costs of a store


def test_prices_give_the_cost_of_an_epoch_and_of_the_run(stoker):
    prices = ("--price-per-1000-requests", "0.0004", "--price-per-gb", "0.09")
    found = plan(stoker("plan", "--case", DATA / "case_e.json", *prices, "--json"))
    assert found["prices"] == {"per_1000_requests": 0.0004, "per_gb": 0.09, "cache_limit_bytes": None}
    costs = {one["access"]: one for one in found["runs"][0]["costs"]}
    assert costs["from the store"]["later_epoch"]["cost"] == pytest.approx(2.27)  # 50,000 requests and 25 GB
    assert [costs[way]["run"]["cost"] for way in ("from the store", "disk cache", "staged once")] == pytest.approx([90 * 2.27, 2.27, 2.27])
    text = stoker("plan", "--case", DATA / "case_e.json", *prices).stdout
    assert "from the store" in text and "204.30" in text and "0.0004 per 1,000 requests, 0.09 per GB, one machine" in text
    part = plan(stoker("plan", "--case", DATA / "case_e.json", *prices, "--cache-limit", "10GB", "--json"))
    assert part["runs"][0]["costs"][1]["run"]["cost"] == pytest.approx(2.27 * (1 + 89 * 0.6))


def test_prices_need_the_size_of_the_data_set_and_a_cache_limit_needs_prices(stoker, table, sounds):
    words = ("plan", "--run", table(), "--images", "1e6", "--price-per-gb", "0.09")
    assert "the size of the data set is not known" in plan(stoker(*words, "--json"))["runs"][0]["notes"][0]
    found = plan(stoker("plan", "--run", table(), "--epochs", "10", "--dataset", "data", "--price-per-1000-requests", "1", "--json"))
    size = sum(path.stat().st_size for path in sounds.rglob("*.wav"))
    assert found["runs"][0]["costs"][0]["run"] == {"requests": 400, "bytes": pytest.approx(10 * size), "cost": pytest.approx(0.4)}
    done = stoker("plan", "--run", table(), "--images", "1e6", "--cache-limit", "1GB")
    assert done.returncode == 2 and "no price is given" in done.stderr
    assert stoker("plan", "--run", table(), "--images", "1e6", "--price-per-gb", "-1").returncode == 2


# ---- days and budgets


def test_a_table_becomes_days_with_a_range_and_a_verdict(stoker, table):
    found = plan(stoker("plan", "--run", table(), "--images", "1e9", "--budget", "70d", "--json"))
    assert found["schema"] == "stoker.plan/1" and found["stoker_version"]
    best = chosen(found["runs"][0])
    assert best["knobs"] == {"batch_size": "32", "num_workers": "2"}  # within 2 % of the fastest, and cheaper
    assert best["days"]["p10"] < best["days"]["p50"] < best["days"]["p90"]
    assert best["days"]["p50"] == pytest.approx(1e9 / 196 / 86400)
    assert best["images_per_day"]["p50"] == pytest.approx(196 * 86400)
    assert best["interval"] == "measured" and best["verdict"] == "fits"
    assert found["job"]["needed_images_per_s"] == pytest.approx(1e9 / 70 / 86400)


def test_the_text_begins_with_a_sentence_and_ends_with_the_next_command(stoker, table):
    done = stoker("plan", "--run", table(), "--images", "1e9", "--budget", "70d")
    assert done.returncode == 0 and done.stdout.startswith("stoker: results fits 70 days: ")
    assert "* results  batch_size=32 num_workers=2" in done.stdout and "images/s are needed" in done.stdout


def test_repeated_rows_of_one_point_are_one_configuration(stoker, table):
    rows = [*ROWS, "4,ok,32,2,150,148,152,prep_bound,2000000000,"]
    found = plan(stoker("plan", "--run", table(rows), "--images", "1e6", "--json"))
    pair = [one for one in found["runs"][0]["configurations"] if one["knobs"] == {"batch_size": "32", "num_workers": "2"}][0]
    assert pair["runs"] == 2 and 150 < pair["images_per_s"]["p50"] < 196
    assert pair["images_per_s"]["p90"] / pair["images_per_s"]["p10"] > 1.2


def test_a_budget_that_nothing_meets_says_what_is_missing_and_exits_1(stoker, table):
    done = stoker("plan", "--run", table(), "--images", "1e9", "--budget", "20d")
    assert done.returncode == 1 and done.stdout.startswith("stoker: results does not fit 20 days")
    assert "579 images/s are needed, 2.95 times what it has" in " ".join(done.stdout.split())
    assert "nothing here closes it, num_workers=4 (at most 2.00x, model) comes nearest" in " ".join(done.stdout.split()), "the cores are not known"
    compute_bound = plan(stoker("plan", "--case", DATA / "case_b.json", "--budget", "10d", "--json"), codes=(1,))
    assert "nothing that was measured or predicted makes it faster: fewer images" in compute_bound["headline"]


def test_validation_checkpoints_and_a_cold_epoch_0_are_counted_apart(stoker, table):
    found = plan(stoker("plan", "--run", table(), "--images", "1e8", "--epochs", "10", "--validation-time", "10m", "--checkpoint-time", "36s",
                        "--checkpoint-every", "1h", "--cold-rate", "98", "--json"))
    parts = chosen(found["runs"][0])["parts"]
    assert parts["epoch0_days"] == pytest.approx(1e7 / 98 / 86400)
    assert parts["training_days"] == pytest.approx(9e7 / 196 / 86400)
    assert parts["validation_days"] == pytest.approx(10 * 600 / 86400)
    assert parts["checkpoint_days"] == pytest.approx((parts["epoch0_days"] + parts["training_days"]) / 100)


def test_a_data_set_is_counted(stoker, sounds, table):
    found = plan(stoker("plan", "--run", table(), "--epochs", "90", "--dataset", "data", "--json"))
    assert found["job"]["images"] == 3600 and found["job"]["epoch_images"] == 40


def test_two_batches_give_a_line_of_device_memory_and_the_largest_safe_batch(stoker, table):
    found = plan(stoker("plan", "--run", table(), "--images", "1e6", "--device-memory", "10GB", "--json"))
    device = found["runs"][0]["device_memory"]
    assert device["basis"] == "fitted to 2 batches" and device["fixed_bytes"] == pytest.approx(1e9)
    assert device["largest_batch"] == int((9.2e9 - 1e9) / (1e9 / 32))
    named = plan(stoker("plan", "--run", table(), "--images", "1e6", "--model", "vit:large", "--json"))["runs"][0]["device_memory"]
    assert named["basis"] == "fitted to 2 batches" and named["parameters"] > 3e8
    for point in named["points"]:  # by that line, not by the formulas of the model
        assert point["predicted_bytes"] == pytest.approx(1e9 + point["batch_size"] * 1e9 / 32)


# ---- a run of ours


def test_a_run_of_ours_gets_its_plan_beside_it_and_again_without_force(stoker, sounds, tmp_path):
    tuned = stoker("tune", "data", "--grid", "num_workers=1,2", "--grid", "batch_size=8", "--bench-steps", "3", "--out", "run", "--search", "grid")
    assert tuned.returncode == 0, tuned.stderr
    for _ in range(2):
        done = stoker("plan", "--run", "run", "--epochs", "1000", "--budget", "1d")
        assert done.returncode == 0 and "run/plan.json" in done.stdout, done.stderr
    found = json.loads((tmp_path / "run" / "plan.json").read_text())
    assert found["job"]["epoch_images"] == 40 and chosen(found["runs"][0])["interval"] == "measured"
    (tmp_path / "run" / "plan.json").write_text("somebody's")
    refused = stoker("plan", "--run", "run", "--epochs", "1000")
    assert refused.returncode == 2 and "plan.json" in refused.stderr and (tmp_path / "run" / "plan.json").read_text() == "somebody's"
    dry = stoker("plan", "--run", "run", "--epochs", "1000", "--dry-run", "--out", "elsewhere.json")
    assert dry.returncode == 0 and "writes elsewhere.json" in dry.stdout and not (tmp_path / "elsewhere.json").exists()


def test_a_pack_of_rows_is_not_told_to_become_one(stoker, sounds):
    assert stoker("pack", "data", "rows.pack", "--kind", "raw", "--transform", "pad:800", "--quiet").returncode == 0
    assert stoker("tune", "rows.pack", "--grid", "num_workers=1,2", "--grid", "batch_size=8", "--bench-steps", "4", "--out", "run", "--quiet").returncode == 0
    run = plan(stoker("plan", "--run", "run", "--images", "1M", "--json"))["runs"][0]
    assert all("pack" not in one["name"] for one in run["what_ifs"] + run["options"]), run


@pytest.mark.parametrize("word, images", [("28.4M", 28.4e6), ("2k", 2000), ("1.5B", 1.5e9), ("28.4e6", 28.4e6)])
def test_images_are_counted_as_people_write_them(stoker, table, word, images):
    assert plan(stoker("plan", "--run", table(), "--images", word, "--json"))["job"]["images"] == images


def test_what_ifs_are_run_and_stand_beside_what_was_predicted(stoker, sounds):
    assert stoker("tune", "data", "--grid", "num_workers=1", "--grid", "batch_size=8", "--bench-steps", "3", "--out", "run").returncode == 0
    found = plan(stoker("plan", "--run", "run", "--epochs", "1000", "--verify", "--bench-steps", "4", "--json"))
    run = found["runs"][0]
    assert run["ledger"]["prep_s"] > 0 and run["ledger"]["cpu_s"] > 0
    measured = {what["name"]: what for what in run["what_ifs"] if what["measured_images_per_s"]}
    assert "storage=ram" in measured and "pack encoded" in measured
    for what in measured.values():
        assert what["measured_low"] <= what["measured_images_per_s"] <= what["measured_high"] and what["error"] >= 0
        assert what["predicted_images_per_s"] > 0
    assert all(what["not_run"] for what in run["what_ifs"] if not what["measured_images_per_s"])


    assert run["verified_images_per_s"] > 0, "the present settings ran in turn with the others"
    for what in measured.values():
        assert what["measured_gain"] == pytest.approx(what["measured_images_per_s"] / run["verified_images_per_s"])
    for option in run["options"]:
        if "no faster when it was measured" in option["reason"]:
            assert measured[option["name"]]["noise"] is None, "where runs of the same settings differ widely, nothing is concluded"


def test_what_cannot_be_done_is_explained_once(stoker, table):
    done = stoker("plan", "--run", table(), "--images", "1e6")
    assert " ".join(done.stdout.split()).count("pack raw: the size of a decoded sample is not known") == 1, done.stdout


def test_every_figure_has_the_measured_rate_as_its_base(stoker, table):
    rows = ["1,ok,32,1,70,69,71,prep_bound,,", "2,ok,32,2,200,198,202,prep_bound,,"]  # a worker of the slow run makes less than one of the other
    run = plan(stoker("plan", "--run", table(rows), "--images", "1e9", "--cores", "8", "--json"))["runs"][0]
    base = chosen(run)["images_per_s"]["p50"]
    assert base == pytest.approx(200)
    gains = {what["name"]: what["gain"] for what in run["what_ifs"]}
    assert any(name.startswith("num_workers=") for name in gains)
    for what in run["what_ifs"]:
        assert what["predicted_images_per_s"] == pytest.approx(base * what["gain"])
    for option in run["options"]:
        assert option["days"] == pytest.approx(1e9 / (base * option["gain"]["p50"]) / 86400)
        if option["name"] in gains:
            assert option["gain"]["p50"] == pytest.approx(gains[option["name"]])


def test_a_ledger_of_the_loader_gives_what_ifs(stoker, sounds, table, tmp_path):
    done = stoker("load", "data", "--batch-size", "8", "--num-workers", "1", "--shuffle", "--bench-steps", "4", "--json")
    (tmp_path / "ledger.json").write_text(done.stdout)
    found = plan(stoker("plan", "--run", table(), "--images", "1e6", "--ledger", "ledger.json", "--cores", "8", "--json"))
    names = what_ifs_of(found["runs"][0])
    assert any(name.startswith("num_workers=") for name in names) and {"storage=ram", "pack encoded", "pack raw", "ranks=2"} <= set(names)
    (tmp_path / "other.json").write_text("{}")
    refused = stoker("plan", "--run", "results.csv", "--images", "1e6", "--ledger", "other.json")
    assert refused.returncode == 2 and "cannot take a ledger from `other.json`" in refused.stderr


def test_a_ledger_of_the_loader_alone_gives_commands_of_the_loader(stoker, sounds, tmp_path):
    done = stoker("load", "data", "--batch-size", "8", "--num-workers", "1", "--transform", "pad:100", "--bench-steps", "4", "--json")
    (tmp_path / "ledger.json").write_text(done.stdout)
    run = plan(stoker("plan", "--ledger", "ledger.json", "--cores", "8", "--json"))["runs"][0]
    commands = [option["command"] for option in run["options"] if option["command"]]
    assert commands and all(command.startswith(("stoker load data ", "stoker pack data ")) for command in commands), commands
    assert any("--transform pad:100" in command for command in commands)
    assert not any("--decode fast" in command for command in commands), "that is for JPEG files"


def test_a_measured_torch_job_gives_what_ifs_and_its_memory(stoker, tmp_path):
    loader = {"settings": {"batch_size": 32, "num_workers": 2, "prefetch_factor": 2, "pin_memory": True}, "batch": {"bytes": 19_000_000},
              "workers": {"fetch_ms_per_batch": 20, "prep_ms_per_batch": 620, "collate_ms_per_batch": 0}, "total": {"compute": {"ms_per_step": 80}}}
    processes = [{"role": "other", "pss_bytes": 2e9}, *({"role": "worker", "uss_bytes": 3e8, "growth_bytes_per_s": "unknown"},) * 2]
    host = {"cores": {"available": 16}, "memory": {"limit_bytes": 16e9}, "shm": {"total_bytes": 8e9}, "processes": processes}
    measured = {"schema": "stoker.measure/1", "command": ["python", "my train.py", "--n", "80"], "main_loader": 0, "loaders": [loader], "host": host}
    (tmp_path / "measure.json").write_text(json.dumps(measured))
    run = plan(stoker("plan", "--ledger", "measure.json", "--json"))["runs"][0]
    assert run["ledger"]["limit"] == "prep" and run["ledger"]["fetch_in_workers"] and run["ledger"]["cores"] == 16
    more = next(what for name, what in what_ifs_of(run).items() if name.startswith("num_workers="))
    assert 3 < more["gain"] < 4.1 and more["limit"] == "compute"  # 320 ms a batch and two workers; the step takes 80 ms
    assert run["host_memory"]["total_bytes"] == pytest.approx(2e9 + 2 * 3e8 + 4 * 19e6 + 3 * 19e6)
    assert run["options"][0]["host_peak_bytes"] > run["host_memory"]["total_bytes"]
    assert "-- python 'my train.py' --n 80 " in run["options"][0]["command"]


def measured_without_workers(folder, *command, fetch=0):
    """A job of 20 ms of prep and 40 of compute per batch, in one thread, on two cores."""
    loader = {"file": "/home/me/main.py", "line": 233, "settings": {"batch_size": 32, "num_workers": 0}, "batch": None, "samples_per_s": 530,
              "workers": {"fetch_ms_per_batch": fetch, "prep_ms_per_batch": 20, "collate_ms_per_batch": 0, "delay_ms_per_batch": 0},
              "total": {"compute": {"ms_per_step": 40, "cpu_ms_per_step": 60}}}
    host = {"cores": {"available": 2, "used": 1, "used_by_others": 0.1}, "memory": {"limit_bytes": 16e9}, "processes": [{"role": "other", "pss_bytes": 2e9}]}
    (folder / "measure.json").write_text(json.dumps({"schema": "stoker.measure/1", "command": ["python", "main.py", *command], "main_loader": 0,
                                                     "loaders": [loader], "host": host}))


def test_the_commands_of_a_torch_job_have_no_placeholder_and_what_runs_as_it_is_comes_first(stoker, tmp_path):
    measured_without_workers(tmp_path, "-j", "0", fetch=30)
    run = plan(stoker("plan", "--ledger", "measure.json", "--json"))["runs"][0]
    worth = [option for option in run["options"] if option["worth"]]
    assert len(worth) > 1
    for option in worth:
        assert option["command"].startswith("stoker measure --steps 100 --stop -- python main.py -j "), option
        assert "storage" not in option["name"] and "DATA" not in option["command"], option
    needs_edit = ["# first" in option["command"] for option in worth if not option["changes_training"]]
    assert needs_edit == sorted(needs_edit) and not needs_edit[0]


def test_the_command_of_an_option_has_the_jobs_own_flag_changed(stoker, tmp_path):
    measured_without_workers(tmp_path, "-j", "0", "--epochs", "1")
    run = plan(stoker("plan", "--ledger", "measure.json", "--json"))["runs"][0]
    first = run["options"][0]
    assert first["name"] == "num_workers=1" and first["order"] == 1, "two would be no faster"
    assert first["command"] == "stoker measure --steps 100 --stop -- python main.py -j 1 --epochs 1"
    assert first["host_peak_bytes"] is None, "no worker was there whose memory could be measured"
    assert run["configurations"][0]["images_per_s"]["p50"] == pytest.approx(530)


def test_a_command_without_a_known_flag_says_what_to_change_first(stoker, tmp_path):
    measured_without_workers(tmp_path, "--epochs", "1")
    run = plan(stoker("plan", "--ledger", "measure.json", "--json"))["runs"][0]
    assert run["options"][0]["command"].endswith(
        "-- python main.py --epochs 1   # first set num_workers=1 at main.py:233: stoker knows no flag of this command for it")


def test_nodes_that_share_a_storage_fill_it(stoker, tmp_path):
    case = {"schema": "stoker.case/1", "job": {"images": 1e9}, "machine": {"cores": 8}, "data": {"decodes": False, "cache": "cold"},
            "runs": [{"name": "node", "rows": [{"knobs": {"batch_size": 64}, "images_per_s": 1000}],
                      "stages": {"batch_size": 64, "num_workers": 8, "prep_s": 0.004, "compute_s": 0.001, "storage_per_s": 4000}}]}
    (tmp_path / "case.json").write_text(json.dumps(case))
    run = plan(stoker("plan", "--case", "case.json", "--nodes", "1,2,8", "--json"))["runs"][0]
    assert run["saturating_nodes"] == pytest.approx(4, abs=0.05)
    assert [node["share"] for node in run["nodes"]] == pytest.approx([1, 1, 0.5], abs=0.01) and run["nodes"][2]["images_per_s"] == 4000
    assert "the storage is full at 4.0 such nodes" in stoker("plan", "--case", "case.json", "--nodes", "8").stdout


FLEET = ("--node-rate", "2500", "--dataset-samples", "1.28M", "--dataset-bytes", "150GB")


def fleet_rows(found):
    return {(row["nodes"], row["access"]): row for row in found["runs"][0]["fleet"]["rows"]}


def test_many_nodes_are_planned_from_a_rate_alone(stoker):
    prices = ("--price-per-1000-requests", "0.0004", "--price-per-gb", "0.09")
    words = ("plan", "--nodes", "1,8,1000", *FLEET, "--epochs", "90", "--nic-rate", "3GB", *prices)
    found = plan(stoker(*words, "--json"))
    rows, fleet = fleet_rows(found), found["runs"][0]["fleet"]
    assert found["runs"][0]["kind"] == "given" and found["runs"][0]["notes"] == []
    assert fleet["store"] == {"requests_per_s": 5500, "prefixes": 1, "bytes_per_s": None}
    assert fleet["store_full_at_nodes"] == pytest.approx(2.2) and fleet["store_full_of"] == "store requests"
    alone, many = rows[1, "from the store"], rows[1000, "from the store"]
    assert alone["last_epoch"]["limit"] == "node" and alone["last_epoch"]["seconds"] == pytest.approx(1.28e6 / 2500)
    assert many["last_epoch"]["limit"] == "store requests" and many["last_epoch"]["seconds"] == pytest.approx(1.28e6 / 5500)
    assert many["run"]["requests"] == pytest.approx(90 * 1.28e6) and many["run"]["cost"] == pytest.approx(90 * (1280 * 0.0004 + 150 * 0.09))
    assert rows[1000, "staged once"]["epoch_0"]["bytes"] == pytest.approx(1000 * 150e9) and rows[1000, "staged once"]["last_epoch"]["requests"] == 0
    assert rows[1000, "disk cache"]["last_epoch"]["requests"] == pytest.approx(1.28e6 * 0.999**89)
    assert rows[1000, "disk cache, shuffle=nodes"]["epoch_1"]["requests"] == 0 and (1, "disk cache, shuffle=nodes") not in rows
    assert {change["nodes"] for change in fleet["changes"]} == {8, 1000}
    text = stoker(*words).stdout
    assert "it is full at 2.20 such nodes" in text and "stage at 1,000 nodes" in " ".join(text.split()) and "one node takes" in text
    table = [line for line in text.splitlines() if " nodes, " in line or " node, " in line or "many nodes and one store" in line]
    assert len({len(line) for line in table[:12]}) == 1  # aligned


def test_many_nodes_without_prices_cost_nothing_that_is_told(stoker):
    found = plan(stoker("plan", "--nodes", "4", *FLEET, "--cache-limit", "15GB", "--prefixes", "10", "--store-requests", "100", "--json"))
    row = fleet_rows(found)[4, "disk cache"]
    assert row["run"] is None and row["last_epoch"]["cost"] is None
    assert row["last_epoch"]["requests"] == pytest.approx(0.9 * 1.28e6)
    assert row["last_epoch"]["seconds"] == pytest.approx(0.9 * 1.28e6 / 1000) and row["last_epoch"]["limit"] == "store requests"


def test_many_nodes_of_a_measured_case_take_its_rates_and_its_cold_epoch(stoker):
    found = plan(stoker("plan", "--case", DATA / "case_e.json", "--nodes", "1,100", "--json"))
    fleet = found["runs"][0]["fleet"]
    assert fleet["samples"] == 50000 and fleet["bytes"] == 25e9
    assert fleet["node"]["images_per_s"] == pytest.approx(410) and fleet["node"]["fetch_images_per_s"] == 110 and fleet["node"]["limit"] == "cores"
    assert fleet_rows(found)[1, "from the store"]["epoch_0"]["limit"] == "fetch"
    assert fleet_rows(found)[100, "from the store"]["epoch_0"]["limit"] == "store requests"


def test_many_nodes_of_a_run_need_the_size_of_the_data_set(stoker, table):
    found = plan(stoker("plan", "--run", table(), "--images", "1e6", "--nodes", "8", "--json"))
    assert found["runs"][0]["fleet"] is None
    assert any("give --dataset, or --dataset-samples and --dataset-bytes" in note for note in found["runs"][0]["notes"])


@pytest.mark.parametrize("words, why", [
    (["--nodes", "0", *FLEET], "`--nodes` takes whole numbers from 1 to 1000000, not `0`"), (["--nodes", "1,-8", *FLEET], "not `-8`"),
    (["--nodes", "1.5", *FLEET], "not `1.5`"), (["--nodes", "many", *FLEET], "not `many`"), (["--nodes", "1,,2", *FLEET], "not ``"),
    (["--nodes", "inf", *FLEET], "not `inf`"), (["--nodes", "1e9", *FLEET], "not `1e9`"),
    (["--nodes", "8", "--node-rate", "-5"], "--node-rate"), (["--nodes", "8", "--node-rate", "fast"], "--node-rate"), (["--nodes", "8", "--node-rate", "0"], "--node-rate"),
    (["--nodes", "8", *FLEET, "--nic-rate", "0"], "`--nic-rate` is 0"), (["--nodes", "8", *FLEET, "--nic-rate", "-1GB"], "--nic-rate"),
    (["--nodes", "8", *FLEET, "--store-rate", "x"], "--store-rate"), (["--nodes", "8", *FLEET, "--store-requests", "0"], "--store-requests"),
    (["--nodes", "8", *FLEET, "--prefixes", "0"], "--prefixes"), (["--nodes", "8", *FLEET, "--prefixes", "1.5"], "--prefixes"),
    (["--nodes", "8", "--node-rate", "5", "--dataset-samples", "0"], "--dataset-samples"),
    (["--nodes", "8", "--node-rate", "1e-300", "--dataset-samples", "5"], "`--node-rate` is 1e-300, which no job has"),
    (["--nodes", "8", *FLEET, "--price-per-gb", "1e300"], "`--price-per-gb` is 1e300, which no job has"),
    (["--nodes", "8", *FLEET, "--epochs", "1e15"], "1e15 epochs of 1280000 samples are more than any job has"),
    (["--nodes", "8", "--node-rate", "5", "--dataset-samples", "5", "--dataset-bytes", "0"], "`--dataset-bytes` is 0"),
    (["--nodes", "8", *FLEET, "--dataset", "data"], "`--dataset-samples` and `--dataset` do not go together"),
    (["--nodes", "8"], "--node-rate N with --nodes"), ([*FLEET], "`--node-rate` is for several nodes"),
    (["--case", str(DATA / "case_e.json"), "--nic-rate", "3GB"], "`--nic-rate` is for several nodes")])
def test_nodes_and_rates_that_cannot_be_are_refused_by_their_flag(stoker, words, why):
    done = stoker("plan", *words)
    assert done.returncode == 2 and why in done.stderr and done.stdout == "", done.stderr


def test_a_question_is_answered_from_a_ledger_alone(stoker, sounds, tmp_path):
    done = stoker("load", "data", "--batch-size", "8", "--num-workers", "1", "--bench-steps", "4", "--json")
    (tmp_path / "ledger.json").write_text(done.stdout)
    found = plan(stoker("plan", "--ledger", "ledger.json", "--what-if", "step_ms=50", "--what-if", "ranks=2", "--json"))
    assert found["job"] is None and set(what_ifs_of(found["runs"][0])) == {"step_ms=50", "ranks=2"}
    assert what_ifs_of(found["runs"][0])["step_ms=50"]["predicted_images_per_s"] == pytest.approx(160, rel=0.02)  # 8 in 50 ms
    refused = stoker("plan", "--ledger", "ledger.json", "--what-if", "color=blue")
    assert refused.returncode == 2 and "cannot ask what if `color=blue`" in refused.stderr


# ---- the five cases


def test_case_a_is_planned_with_8_workers(stoker):
    found = plan(stoker("plan", "--run", DATA / "case_a.csv", "--images", "28.4e6", "--json"))
    run = found["runs"][0]
    assert (run["points"], run["ok"]) == (72, 50) and sum(run["failures"].values()) == 22
    assert chosen(run)["knobs"]["num_workers"] == "8" and chosen(run)["days"]["p50"] == pytest.approx(28.4e6 / 495 / 86400, rel=0.01)


def test_case_b_pivots_from_giant_to_large(stoker):
    found = plan(stoker("plan", "--case", DATA / "case_b.json", "--json"))
    giant, large = found["runs"]
    assert found["chosen_run"] == 1 and found["job"]["needed_images_per_s"] == pytest.approx(21.9, abs=0.05)
    assert chosen(giant)["days"]["p50"] == pytest.approx(61, abs=0.3) and chosen(giant)["verdict"] == "over"
    assert chosen(large)["days"]["p50"] == pytest.approx(14, abs=0.1) and chosen(large)["verdict"] in ("fits", "likely")
    assert chosen(large)["images_per_day"]["p50"] == pytest.approx(2.03e6, rel=0.005)
    assert (chosen(large)["knobs"]["batch_size"], chosen(large)["knobs"]["accumulate_steps"]) == ("64", "4")
    assert "ViT-Giant would take 61 days, ViT-Large takes 14 days (" in found["pivot"] and "FLOPs alone say 3.70" in found["pivot"]
    assert "4.35" in found["pivot"] and "batch_size=64" in found["pivot"]


def test_case_b_memory_is_predicted_beside_what_was_seen(stoker):
    found = plan(stoker("plan", "--case", DATA / "case_b.json", "--json"))
    giant, large = (run["device_memory"] for run in found["runs"])
    assert giant["parameters"] == pytest.approx(1.13e9, rel=0.005)
    assert len(large["points"]) == 5 and all(abs(point["ratio"] - 1) < 0.05 for point in large["points"])
    oom = [point for point in giant["points"] if point["out_of_memory"]]
    assert [point["batch_size"] for point in oom] == [8] and oom[0]["unexplained"] and 20e9 < oom[0]["predicted_bytes"] < 32e9
    host = found["runs"][1]["host_memory"]  # one memory, one limit
    assert host["unified"] and host["limit_bytes"] == 128e9 and host["total_bytes"] == pytest.approx(4e9 + 6.8e9)
    text = stoker("plan", "--case", DATA / "case_b.json").stdout
    assert "batch 8 ran out of memory, unexplained" in " ".join(text.split())


def test_case_c_wants_workers_and_not_a_larger_batch(stoker):
    found = plan(stoker("plan", "--case", DATA / "case_c.json", "--json"))
    run = found["runs"][0]
    assert chosen(run)["days"]["p50"] == pytest.approx(26.7, abs=0.05)
    first = run["options"][0]
    assert first["name"] == "num_workers=12" and first["order"] == 1 and 9 < first["gain"]["p50"] < 12.5 and first["days"] < 3.5
    assert first["host_peak_bytes"] == pytest.approx(84e9, rel=0.002) and first["host_limit_bytes"] == 170e9 and first["risk"] == "low"
    batch = options_of(run)["batch_size=2"]
    assert not batch["worth"] and batch["changes_training"] and batch["gain"]["p50"] == pytest.approx(1, abs=0.02)
    assert batch["reason"].startswith("raising the batch cannot help: the loader is the limit")
    assert batch["device_peak_bytes"] > batch["device_limit_bytes"] == 80e9
    assert [option["order"] for option in run["options"] if option["worth"]] == list(range(1, 1 + sum(option["worth"] for option in run["options"])))


def test_case_c_accumulates_and_keeps_its_workers_only_where_that_helps(stoker):
    run = plan(stoker("plan", "--case", DATA / "case_c.json", "--lr", "0.001", "--json"))["runs"][0]
    more = options_of(run)["accumulate_steps=2"]  # batch 1 takes 77 of 80 GB
    assert more["worth"] and more["gain"]["p50"] == 1 and more["device_peak_bytes"] == pytest.approx(77e9)
    assert "learning rate 0.002 (linear) or 0.00141 (square root) instead of 0.001, by rules of thumb" in more["training"]
    keep = options_of(run)["persistent_workers=true"]
    assert not keep["worth"] and "an epoch 20 h" in keep["reason"] and keep["host_peak_bytes"] == pytest.approx(7e9, rel=0.01)
    assert "host memory 6.5 GiB of 158.3 GiB" in keep["reason"]


def test_case_c_gets_bundles_with_hours_memory_risk_and_commands(stoker):
    done = stoker("plan", "--case", DATA / "case_c.json", "--json")
    bundles = plan(done)["runs"][0]["bundles"]
    assert [bundle["label"] for bundle in bundles] == list("ABC")[:len(bundles)] and len(bundles) >= 2
    assert bundles[0]["changes"] == ["num_workers=4"] and bundles[0]["epoch_hours"] == pytest.approx(20 / bundles[0]["gain"]["p50"], rel=0.01)
    assert bundles[0]["host_peak_bytes"] == pytest.approx(28e9, rel=0.01) and bundles[0]["risk"] == "low" and bundles[0]["commands"]
    assert "num_workers=12" in bundles[1]["changes"] and bundles[1]["gain"]["p50"] < 12.5, "never more than the step allows"
    assert all(later["gain"]["p50"] > sooner["gain"]["p50"] for sooner, later in zip(bundles, bundles[1:]))
    text = " ".join(stoker("plan", "--case", DATA / "case_c.json").stdout.split())
    assert "combinations of changes that act on different limits" in text and "A careful: num_workers=4" in text and "an epoch" in text


def test_case_d_is_closed_by_memory_and_packs_and_not_by_threads(stoker):
    found = plan(stoker("plan", "--case", DATA / "case_d.json", "--json"))
    run = found["runs"][0]
    assert run["target_images_per_s"] == [77000, 121000]
    what = what_ifs_of(run)
    threads = next(one for name, one in what.items() if name.startswith("num_workers="))
    assert not threads["closes_gap"]
    assert what["storage=ram"]["closes_gap"] and what["pack raw"]["closes_gap"]
    assert not what["storage=direct"]["closes_gap"]  # each file on its own, at the disk's pace
    ram = options_of(run)["storage=ram"]["command"]  # their builder has no such setting: it is our loader's
    assert ram.startswith("stoker load DATA --storage ram ") and 'stoker.Loader(DATA, storage="ram")' in ram
    assert any("differs from every other in 3 knobs" in note for note in run["notes"])
    assert any("cold or warm was not recorded" in note for note in run["notes"])


def test_case_e_is_fetch_in_epoch_0_and_decoding_afterwards(stoker):
    found = plan(stoker("plan", "--case", DATA / "case_e.json", "--json"))
    run = found["runs"][0]
    epochs = run["epochs"]
    assert epochs["fetch_stall_s"] == pytest.approx(50000 / 110 - 50000 / 410) and 325 < epochs["fetch_stall_s"] < 345
    assert epochs["local_copy_gain_first"] == pytest.approx(3.7, abs=0.1) and epochs["local_copy_gain_later"] == 1
    assert epochs["later_images_per_s_per_worker"] == pytest.approx(51, abs=0.5)
    assert what_ifs_of(run)["stage locally"]["gain"] == pytest.approx(1, abs=0.02)  # not 5 to 10 times
    assert options_of(run)["stage locally"]["command"].startswith("stoker stage s3://BUCKET/PREFIX staged ")
    assert not options_of(run)["stage locally"]["worth"] and not options_of(run)["batch_size=512"]["worth"]
    assert chosen(run)["parts"]["epoch0_days"] == pytest.approx(50000 / 110 / 86400)
    assert "not fetching" in " ".join(stoker("plan", "--case", DATA / "case_e.json").stdout.split())


def test_case_e_is_told_of_batch_384_its_rate_smaller_images_and_workers_that_live_on(stoker):
    run = plan(stoker("plan", "--case", DATA / "case_e.json", "--json"))["runs"][0]
    batch = options_of(run)["batch_size=384"]
    assert "learning rate 0.75 (linear) or 0.612 (square root) instead of 0.5" in batch["training"] and "rules of thumb" in batch["training"]
    assert batch["device_peak_bytes"] == pytest.approx(1.5 * 12.9e9) and not batch["worth"], "decoding is the limit"
    workers = options_of(run)["num_workers=16"]  # what the team tried first; its report does not tell the cores
    assert workers["order"] == 1 and workers["gain"]["p10"] == 1 and workers["gain"]["p50"] == pytest.approx(2) and "not known" in workers["reason"]
    assert workers["host_peak_bytes"] == pytest.approx(3e9 + 16e9 + 16 * 2 * 154140672, rel=0.05)
    assert "accumulate_steps=2" not in options_of(run), "384 fits: nothing needs to be accumulated"
    image = options_of(run)["img_size=160"]
    assert image["changes_training"] and not image["worth"] and "smaller crops of the same files" in image["reason"]
    off = options_of(run)["persistent_workers=false"]
    assert not off["worth"] and "memory" in off["reason"] and off["host_peak_bytes"] > 0
    rate = plan(stoker("plan", "--case", DATA / "case_e.json", "--lr", "0.1", "--json"))["runs"][0]
    assert "0.15 (linear)" in options_of(rate)["batch_size=384"]["training"], "the flag goes before the case"


CONVOLUTIONS = """
from torch import nn
def build():
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.Flatten(),
                         nn.AdaptiveAvgPool1d(64), nn.Linear(64, 10))
"""


def test_any_model_is_traced_for_its_memory_by_parts(stoker, tmp_path):
    import sys

    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(CONVOLUTIONS)
    done = stoker("plan", "--case", DATA / "case_e.json", "--model", "net.py:build,img=32", "--amp", "none", "--python", sys.executable, "--json")
    device = plan(done)["runs"][0]["device_memory"]
    parts = {part["name"]: part for part in device["parts"]}
    assert device["basis"] == "traced" and {"parameters", "gradients", "optimizer", "activations", "input"} <= set(parts)
    assert parts["gradients"]["fixed_bytes"] == parts["optimizer"]["fixed_bytes"] == 4 * device["parameters"]
    assert parts["input"]["bytes_per_image"] == 3 * 32 * 32 * 4 and device["largest_batch"] > 1000
    assert "by parts: parameters" in " ".join(stoker("plan", "--case", DATA / "case_e.json", "--model", "net.py:build,img=32", "--python",
                                                     sys.executable).stdout.split())
    wrong = stoker("plan", "--case", DATA / "case_e.json", "--model", "net.py:nothing,img=32", "--python", sys.executable)
    assert wrong.returncode == 2 and "has no function `nothing`" in wrong.stderr
    wrong = stoker("plan", "--case", DATA / "case_e.json", "--model", "net.py:build,img=32", "--python", "/bin/false")
    assert wrong.returncode == 2 and "--python" in wrong.stderr


# ---- what cannot be planned from


def test_a_run_in_which_nothing_ran_is_explained_and_not_planned(stoker, table, tmp_path):
    rows = ["1,oom_device,64,2,,,,,,CUDA out of memory. Tried to allocate 2.00 GiB", "2,runtime_fault,32,2,,,,,,HIP error: illegal address"]
    done = stoker("plan", "--run", table(rows), "--images", "1e6", "--budget", "1d", "--out", "plan.json")
    assert done.returncode == 1 and done.stdout.startswith("stoker: nothing is planned: none of 2 points ran")
    text = " ".join(done.stdout.split())
    assert "1 of 2 points: oom_device: CUDA out of memory" in text and "1 of 2 points: runtime_fault" in text
    assert not (tmp_path / "plan.json").exists()


def test_one_point_is_planned_and_said_to_be_the_only_one(stoker, table):
    found = plan(stoker("plan", "--run", table(ROWS[:1]), "--images", "1e6", "--json"))
    run = found["runs"][0]
    assert "only one configuration was measured, so there is nothing to compare it with" in run["notes"] and run["device_memory"] is None


def test_a_table_of_others_is_read_by_a_map_of_its_columns(stoker, table):
    name = table(["64,8,410.5"], "batch_size,workers,throughput")
    refused = stoker("plan", "--run", name, "--images", "1e6")
    assert refused.returncode == 2 and "--map images_per_s=NAME" in refused.stderr and "throughput" in refused.stderr
    found = plan(stoker("plan", "--run", name, "--map", "images_per_s=throughput", "--images", "1e6", "--json"))
    assert chosen(found["runs"][0])["images_per_s"]["p50"] == pytest.approx(410.5)
    assert chosen(found["runs"][0])["interval"] == "assumed"


@pytest.mark.parametrize("row, why", [
    ("2,ok,32,2,-5,,,,,", "line 3"), ("2,ok,32,2,1e15,,,,,", "row 2: images_per_s is 1e+15"), ("2,ok,32,2,0,,,,,", "row 2: images_per_s is 0"),
    ("2,ok,32,2,inf,,,,,", "images_per_s"), ("2,ok,32,2,100,120,130,,,", "row 2: images_per_s is 100, outside its own interval"),
    ("2,ok,32,2,100,,,,9e17,", "row 2: device_allocated_bytes is 9e+17")])
def test_figures_that_cannot_be_are_refused_by_their_row(stoker, table, row, why):
    done = stoker("plan", "--run", table([ROWS[0], row]), "--images", "1e6")
    assert done.returncode == 2 and why in done.stderr and "results.csv" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("words, why", [
    ([], "nothing measured to plan from"), (["--run", "results.csv"], "how much is to be trained is not known"),
    (["--run", "results.csv", "--images", "-3"], "--images"), (["--run", "results.csv", "--images", "0"], "--images"),
    (["--run", "results.csv", "--images", "1e6", "--budget", "soon"], "--budget"), (["--run", "results.csv", "--epochs", "3"], "size of an epoch"),
    (["--run", "nowhere", "--images", "1"], "cannot open `nowhere`"), (["--run", "empty", "--images", "1"], "it has no results.csv"),
    (["--run", "results.csv", "--case", "x.json", "--images", "1"], "two sources"),
    (["--run", "results.csv", "--images", "1", "--model", "resnet50"], "cannot read the model `resnet50`"),
    (["--run", "results.csv", "--images", "1", "--amp", "int3"], "--amp"),
    (["--run", "results.csv", "--images", "1", "--verify"], "no run here is of it"),
    (["--run", "results.csv", "--images", "1", "--nodes", "1,x"], "--nodes"),
    (["--run", "results.csv", "--images", "1", "--memory-limit", "0"], "`--memory-limit` is 0, which no machine has"),
    (["--run", "results.csv", "--images", "1", "--current", "num_workers=1,nope=1"], "`--current` names `nope`"),
    (["--run", "results.csv", "--images", "1", "--current", "nope=1"], "the rows have batch_size, num_workers")])
def test_wrong_use_is_named(stoker, table, tmp_path, words, why):
    table()
    (tmp_path / "empty").mkdir()
    done = stoker("plan", *words)
    assert done.returncode == 2 and why in done.stderr and done.stdout == "", done.stderr


@pytest.mark.parametrize("change, why", [
    ({"schema": "x"}, "schema is not stoker.case/1"), ({"job": 3}, "job is not an object"), ({"runs": []}, "runs is empty"),
    ({"jobs": {}}, "jobs is no key of a case; did you mean `job`?"),
    ({"runs": [{"rows": [{"knobs": {"a": 1}}]}]}, "runs[0].rows[0].images_per_s is missing"),
    ({"runs": [{"rows": [{"knobs": {"a": 1}, "images_per_s": -4}]}]}, "runs[0].rows[0].images_per_s is -4"),
    ({"job": {"images": 1e6, "epochs": 3, "epoch_images": 10}}, "job.images is 1e+06, and epochs of epoch_images are 30: give one of both"),
    ({"runs": [{"rows": [{"knobs": {"a": 1}, "images_per_s": 3, "step_s": 1, "samples_per_step": 8}]}]},
     "runs[0].rows[0].images_per_s is 3, and samples_per_step in step_s are 8"),
    ({"machine": {"memory": "lots"}}, "machine.memory is no good"), ({"machine": {"cores": "two"}}, "machine.cores is not a number"),
    ({"data": {"storage": "tape"}}, "data.storage is `tape`")])
def test_a_mistake_in_a_case_is_named_by_its_place(stoker, tmp_path, change, why):
    case = {"schema": "stoker.case/1", "job": {"images": 10}, "runs": [{"rows": [{"knobs": {"batch_size": 1}, "images_per_s": 1}]}]}
    (tmp_path / "case.json").write_text(json.dumps({**case, **change}))
    done = stoker("plan", "--case", "case.json")
    assert done.returncode == 2 and "case.json" in done.stderr and why in done.stderr, done.stderr


def test_a_file_of_others_is_not_overwritten(stoker, table, tmp_path):
    (tmp_path / "mine.json").write_text("mine")
    done = stoker("plan", "--run", table(), "--images", "1e6", "--out", "mine.json")
    assert done.returncode == 2 and "mine.json" in done.stderr and (tmp_path / "mine.json").read_text() == "mine"
    assert stoker("plan", "--run", "results.csv", "--images", "1e6", "--out", "mine.json", "--force").returncode == 0
    assert json.loads((tmp_path / "mine.json").read_text())["schema"] == "stoker.plan/1"
