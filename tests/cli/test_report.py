"""stoker report: what it renders, what it refuses, and what a browser makes of it."""

import json
import os
import pathlib
import re
import shutil
import sys
import xml.etree.ElementTree as xml

import chromium
import pytest

CASE_A = pathlib.Path(__file__).resolve().parents[1] / "data" / "case_a.csv"
TITLES = ["Context", "Configuration and environment", "Outcomes", "Findings", "Knee curve", "Heat map", "Best and chosen configuration",
          "Commands to reproduce", "Raw data"]
JOB = r"""
import json, os, sys
batch, workers = int(sys.argv[1]), int(sys.argv[2])
def say(**line): os.write(int(os.environ["STOKER_REPORT_FD"]), (json.dumps(line) + "\n").encode())
if batch >= 64 and workers >= 3: sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB <b>&")
step = 0.02
wait = 0.06 / (workers + 1) ** 1.5
for block in range(12):
    seconds = 5 * (step + wait * (1 + 0.05 * (block % 3 - 1)))
    say(event="block", steps=5, samples=5 * batch, seconds=seconds, warmup=block == 0, compute_s=5 * step, h2d_s=0.002, fetch_s=seconds - 5 * step - 0.004,
        prep_s=0.001, handoff_s=0.001, queue_depth=min(4, workers) * (1 + block % 2) / 2)
    if block == 5: say(event="memory", device_allocated_bytes=batch * 40_000_000, device_reserved_bytes=batch * 50_000_000)
say(event="done")
"""


def page_of(path):
    """The page as a tree: it is well-formed XML, whatever was put into it."""
    text = path.read_text()
    assert text.startswith("<!DOCTYPE html>\n")
    return xml.fromstring(text.removeprefix("<!DOCTYPE html>\n"))


def titles(page):
    return [title.text for title in page.iter("{http://www.w3.org/1999/xhtml}h2")]


def drawings(page):
    return [svg for svg in page.iter("{http://www.w3.org/2000/svg}svg") if "chart" in svg.get("class", "").split()]


@pytest.fixture
def case_a(tmp_path):
    shutil.copy(CASE_A, tmp_path / "case_a.csv")
    return tmp_path / "case_a.csv"


@pytest.fixture
def tuned(stoker, tmp_path):
    """A run folder with splits, time lines, memory and failures, at run/."""
    (tmp_path / "job.py").write_text(JOB)
    done = stoker("tune", "--search", "grid", "--grid", "batch_size=16,32,64", "--grid", "num_workers=0,1,2,3", "--steps-from", "reports", "--out", "run", "--quiet",
                  "--", sys.executable, "job.py", "{batch_size}", "{num_workers}")
    assert done.returncode == 0, done.stderr
    return tmp_path / "run"


def measured(folder, rate, fetch_ms, workers):
    """What `stoker measure --out` leaves, in small."""
    folder.mkdir()
    def part(ms):
        return {"share": ms / (20 + fetch_ms), "ms_per_step": ms}

    total = {"steps": 40, "samples": 1280, "running_s": 4, "step_ms": 20 + fetch_ms, "compute": part(20), "h2d": None,
             "wait": {**part(fetch_ms), "fetch": part(fetch_ms * 0.8), "prep": part(fetch_ms * 0.1), "handoff": part(fetch_ms * 0.1)}}
    answer = {"schema": "stoker.measure/1", "stoker_version": "0.1.0", "command": ["python", "train.py"], "exit_code": 0, "seconds": 4.0,
              "verdict": {"bound": "fetch_bound", "general": "io_bound", "share": 0.6, "ci_low": 0.55, "ci_high": 0.65, "severity": "severe", "gain": 2.4},
              "headline": "fetch_bound (io_bound) 60.0 % (+-5.0), severe: 2.40x faster if fetch were free", "total": total, "main_loader": 0,
              "loaders": [{"name": "train_loader", "file": "train.py", "line": 41, "settings": {"num_workers": workers, "batch_size": 32}, "corrected_samples_per_s": rate,
                           "epochs": [{"epoch": 0, **total}, {"epoch": 1, **total}]}],
              "why": ["samples wait for bytes"], "advice": ["num_workers=8: about 2.1x"], "notes": [],
              "host": {"cores": {"available": 2, "used": 1.5}, "memory": {"limit_bytes": 8 << 30, "pss_peak_bytes": 1 << 30}, "accelerators": "unknown"}}
    (folder / "measure.json").write_text(json.dumps(answer))
    rows = ["rank,loader,role,epoch,batch,samples,asked_s,step_ms,compute_ms,ready"]
    rows += [f"0,train_loader,train,0,{i},32,{i * (20 + fetch_ms) / 1000},{20 + fetch_ms},20,{i % 4}" for i in range(40)]
    (folder / "steps.csv").write_text("\n".join(rows) + "\n")
    return folder


def test_the_72_points_of_a_recorded_run_become_a_page_below_a_megabyte(stoker, case_a, tmp_path):
    done = stoker("report", "case_a.csv")
    assert done.returncode == 0, done.stderr
    page = tmp_path / "case_a-report.html"
    assert page.stat().st_size < 1_000_000
    assert titles(page_of(page)) == TITLES
    assert len(drawings(page_of(page))) == 4  # two charts, each for wide and narrow screens
    assert "8 workers" in done.stdout and "72 points, 50 ok, 22 runtime_fault" in done.stdout
    markdown = (tmp_path / "case_a-report.md").read_text()
    assert re.findall(r"^## (.*)$", markdown, re.M) == TITLES
    assert re.search(r"^ +8 +495\* ", markdown, re.M), "the text heat map marks the choice"


def test_a_page_asks_for_nothing_from_outside(stoker, case_a, tmp_path):
    assert stoker("report", "case_a.csv", "--html").returncode == 0
    text = (tmp_path / "case_a-report.html").read_text()
    assert not re.search(r"(src|@import|url\()\s*=?\s*[\"']?(https?:)?//", text)
    assert set(re.findall(r"https?://[^\"' ]+", text)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}
    assert "default-src 'none'" in text


def test_tune_leaves_the_same_report_in_its_folder(stoker, tuned):
    before = {name: (tuned / name).read_text() for name in ("report.md", "report.html")}
    done = stoker("report", "run")
    assert done.returncode == 0, done.stderr

    def undated(text):
        return re.sub(r"Written [-0-9: ]+|stoker report [0-9a-f]{16}", "", text)
    for name, text in before.items():
        assert undated((tuned / name).read_text()) == undated(text), name
    assert {"Step split", "Queue depth and device activity", "Memory"} <= set(titles(page_of(tuned / "report.html")))
    links = re.findall(r'<a href="([^"#]+)"', (tuned / "report.html").read_text())
    assert {"results.csv", "results.json", "config.json", "trials/"} <= set(links) and all((tuned / link).exists() for link in links)


def test_text_that_looks_like_markup_stays_text(stoker, tuned):
    tree = page_of(tuned / "report.html")
    assert not list(tree.iter("{http://www.w3.org/1999/xhtml}b"))
    assert "Tried to allocate 2.00 GiB <b>&" in "".join(tree.itertext())
    assert "<b>" not in (tuned / "report.md").read_text()


def test_a_measured_job_becomes_a_page(stoker, tmp_path):
    measured(tmp_path / "monday", 320, 30, 2)
    done = stoker("report", "monday")
    assert done.returncode == 0, done.stderr
    assert {"Step split", "Queue depth and device activity", "Memory", "Options"} <= set(titles(page_of(tmp_path / "monday" / "report.html")))
    assert "fetch_bound (io_bound) 60.0 %" in done.stdout


def test_two_measured_jobs_stand_side_by_side(stoker, tmp_path):
    measured(tmp_path / "monday", 320, 30, 2)
    measured(tmp_path / "tuesday", 640, 5, 8)
    for words in (["--before", "monday", "--after", "tuesday"], ["monday", "tuesday"]):
        done = stoker("report", *words, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["headline"] == found["change"] == "2.0x faster: from 320 to 640 samples/s."
        assert [one["file"] for one in found["written"]] == ["tuesday/report.html", "tuesday/report.md"]
        assert "Before and after" in titles(page_of(tmp_path / "tuesday" / "report.html"))


def test_json_says_what_was_written(stoker, case_a, tmp_path):
    found = json.loads(stoker("report", "case_a.csv", "--html", "--out", "page.html", "--json").stdout)
    assert found["schema"] == "stoker.report/1" and found["failures"] == {"runtime_fault": 22}
    [written] = found["written"]
    assert written["file"] == "page.html" and abs(written["bytes"] - (tmp_path / "page.html").stat().st_size) < 100


def test_the_page_may_lie_elsewhere_and_links_still_lead_to_the_data(stoker, tuned, tmp_path):
    (tmp_path / "pages").mkdir()
    assert stoker("report", "run", "--out", "pages/monday.html").returncode == 0
    links = re.findall(r'<a href="([^"#]+)"', (tmp_path / "pages" / "monday.html").read_text())
    assert "../run/results.csv" in links and all((tmp_path / "pages" / link).exists() for link in links)


def test_markdown_can_go_to_stdout(stoker, case_a):
    done = stoker("report", "case_a.csv", "--md", "--out", "-")
    assert done.stdout.startswith("# Tuning case_a.csv\n") and done.returncode == 0


def test_a_report_that_people_wrote_into_is_kept(stoker, case_a, tmp_path):
    assert stoker("report", "case_a.csv", "--md").returncode == 0
    assert stoker("report", "case_a.csv", "--md").returncode == 0, "one that is as we wrote it is made anew"
    page = tmp_path / "case_a-report.md"
    page.write_text(page.read_text().replace("## Findings", "## Findings\n\nThe second run was on battery."))
    done = stoker("report", "case_a.csv", "--md")
    assert done.returncode == 2 and "case_a-report.md" in done.stderr and "--force" in done.stderr
    assert "on battery" in page.read_text()
    assert stoker("report", "case_a.csv", "--md", "--force").returncode == 0 and "on battery" not in page.read_text()


def test_columns_of_others_are_mapped(stoker, tmp_path):
    (tmp_path / "theirs.csv").write_text("workers_n,img_per_sec\n0,80\n4,300\n8,480\n")
    done = stoker("report", "theirs.csv")
    assert done.returncode == 2 and "no column is called images_per_s" in done.stderr and "--map images_per_s=NAME" in done.stderr
    done = stoker("report", "theirs.csv", "--map", "images_per_s=img_per_sec", "--map", "num_workers=workers_n")
    assert done.returncode == 0 and "8 workers" in done.stdout, done.stderr


@pytest.mark.parametrize("row, why", [
    ("ok,1,-5,,", "line 3: images_per_s is `-5`"), ("ok,1,1e30,,", "row 2: images_per_s is 1e+30, which nothing reaches"),
    ("ok,1,100,120,90", "row 2: images_per_s is 100, outside its own interval 120 to 90"), ("ok,1,100,10,20", "row 2: images_per_s is 100, outside its own"),
    ("ok,1,,,", "line 3: its status is ok, but images_per_s is empty"), ("ok,1,0,,", "row 2: images_per_s is 0, yet its status is ok"),
    ("ok,1,100,,,9", "line 3: 6 fields, but the header has 5"), ("fine,1,100,,", "line 3: the status `fine`")])
def test_figures_that_cannot_be_are_refused_by_row(stoker, tmp_path, row, why):
    (tmp_path / "rows.csv").write_text("status,num_workers,images_per_s,ci_low,ci_high\nok,0,50,,\n" + row + "\n")
    done = stoker("report", "rows.csv")
    assert done.returncode == 2 and "`rows.csv`" in done.stderr and why in done.stderr, done.stderr
    assert not (tmp_path / "rows-report.html").exists()


def test_a_run_in_which_nothing_ran_says_so_and_why(stoker, tmp_path):
    (tmp_path / "rows.csv").write_text("status,num_workers,images_per_s,error\noom_device,0,,CUDA out of memory\nhang,4,,\n")
    done = stoker("report", "rows.csv")
    assert done.returncode == 1 and "None of 2 points ran" in done.stdout and "CUDA out of memory" in done.stdout
    assert "Best and chosen configuration" not in titles(page_of(tmp_path / "rows-report.html"))


def test_a_file_that_was_cut_is_not_taken_for_a_run_without_trials(stoker, tmp_path):
    (tmp_path / "run/trials/0001").mkdir(parents=True)
    (tmp_path / "run/results.csv").write_text("trial,status,num_workers,images_per_s\n")
    done = stoker("report", "run")
    assert done.returncode == 1 and "has no row, but `run/trials` has 1 folder" in " ".join(done.stdout.split()), done.stdout


def test_statuses_of_others_are_said_to_be_read_as_ours(stoker, tmp_path):
    (tmp_path / "rows.csv").write_text("status,num_workers,images_per_s,error\nok,0,10,\nok,2,20,\noom,4,,CUDA out of memory\noom,8,,CUDA out of memory\n")
    done = stoker("report", "rows.csv", "--map", "status=status")
    assert done.returncode == 0 and "status `oom` of 2 rows is read as oom_device" in " ".join(done.stdout.split()), done.stdout
    done = stoker("report", "rows.csv", "--map", "num_worker=status")
    assert done.returncode == 2 and "did you mean `num_workers`?" in done.stderr, done.stderr


@pytest.mark.parametrize("words, why", [
    (["nowhere"], "cannot open `nowhere`"), (["empty"], "neither results.csv nor measure.json"), ([], "needs RUNDIR"),
    (["case_a.csv", "--out", "page.pdf"], "what is `page.pdf` to be"), (["case_a.csv", "--html", "--md", "--out", "x"], "--html and --md ask for two"),
    (["--before", "empty"], "belong together"), (["broken"], "measure.json`, line 1, column 2: expected a key in double quotes")])
def test_wrong_use_is_one_clear_sentence(stoker, case_a, tmp_path, words, why):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "measure.json").write_text("{")
    done = stoker("report", *words)
    assert done.returncode == 2 and why in done.stderr and done.stdout == "", done.stderr


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if chromium.PROGRAM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with chromium.Chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


OVERFLOWS = """(() => {
  const wide = [], room = document.documentElement.clientWidth;
  for (const e of document.querySelectorAll('body *')) {
    const box = e.getBoundingClientRect();
    const scrolls = e.closest('.scroll');
    if (box.width > 0 && !(scrolls && scrolls !== e && !e.closest('svg.chart:not(.heat)')) && (box.right > room + 0.5 || box.left < -0.5))
      wide.push(e.tagName + '.' + (e.getAttribute('class') || '') + ' ' + (e.textContent || '').slice(0, 30) + ' ' + box.right);
  }
  return document.documentElement.scrollWidth > room ? ['the page', ...wide] : wide;
})()"""

# Labels of one drawing that lie over each other.
COLLISIONS = """(() => {
  const bad = [];
  for (const svg of document.querySelectorAll('svg.chart')) {
    if (svg.getBoundingClientRect().width === 0) continue;
    const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
      const w = Math.min(p.right, q.right) - Math.max(p.left, q.left), h = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (w > 2 && h > 4) bad.push(a + ' / ' + b);
    }));
  }
  return bad;
})()"""


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1440])
def test_a_browser_draws_every_chart_within_the_page_and_shows_figures_on_hover(browser, stoker, case_a, tuned, tmp_path, width, dark):
    assert stoker("report", "case_a.csv").returncode == 0
    measured(tmp_path / "monday", 320, 30, 2)
    measured(tmp_path / "tuesday", 640, 5, 8)
    assert stoker("report", "monday", "tuesday").returncode == 0
    pages = {"case_a": (tmp_path / "case_a-report.html", 2), "tuned": (tuned / "report.html", 5), "measured": (tmp_path / "tuesday" / "report.html", 3)}
    for name, (page, charts) in pages.items():
        browser.open(page, width, dark=dark)
        if pictures := os.environ.get("STOKER_REPORT_PICTURES"):
            browser.picture(pathlib.Path(pictures) / f"{name}-{width}-{'dark' if dark else 'light'}.png")
        seen = "[...document.querySelectorAll('svg.chart')].filter(e => e.getBoundingClientRect().height > 60)"
        assert browser.value(seen + ".length") >= charts, name
        assert browser.value(seen + ".every(e => e.querySelectorAll('path,rect,circle').length > 3)")
        assert browser.value(OVERFLOWS) == [], name
        assert browser.value(COLLISIONS) == [], name
        x, y, tip = browser.value("(() => { const svg = " + seen + "[0], marks = svg.querySelectorAll('[data-tip]'), mark = marks[marks.length - 1];"
                                  "mark.scrollIntoView({block: 'center', behavior: 'instant'}); const box = mark.getBoundingClientRect();"
                                  "return [box.x + box.width / 2, box.y + box.height / 2, mark.getAttribute('data-tip')]; })()")
        browser.settle()  # scrolling hides what is shown
        browser.move_to(x, y)
        assert browser.value("document.getElementById('tip').hidden") is False, name
        assert browser.value("document.getElementById('tip').textContent") == tip
        assert re.search(r"\d", tip)
        box = browser.value("(() => { const b = document.getElementById('tip').getBoundingClientRect(); return [b.left, b.right]; })()")
        assert box[0] >= 0 and box[1] <= width
        assert browser.complaints() == [], name


@pytest.mark.slow
def test_a_page_prints(browser, tuned, tmp_path):
    browser.open(tuned / "report.html", 1440)
    target = pathlib.Path(os.environ.get("STOKER_REPORT_PICTURES", tmp_path)) / "tuned.pdf"
    browser.print_to(target)
    text = target.read_bytes()
    assert text.startswith(b"%PDF") and 1 <= len(re.findall(rb"/Type ?/Page\b", text)) <= 8


def part_of_node(shared, node, ranks, world_size, wait_ms, bound="fetch_bound"):
    """What `stoker measure --shared` leaves of one node: ranks and how long each waits in a step of 20 ms of compute."""
    shared.mkdir(exist_ok=True)
    measured(shared / node, 320, 30, 2)
    answer = json.loads((shared / node / "measure.json").read_text())
    loaders = []
    for rank, ms in zip(ranks, wait_ms):
        def part(value, step_ms=20 + ms):
            return {"share": value / step_ms, "ms_per_step": value}
        total = {"steps": 40, "samples": 1280, "running_s": 4, "step_ms": 20 + ms, "compute": part(20), "h2d": None,
                 "wait": {**part(ms), "fetch": part(ms), "prep": part(0), "handoff": part(0)}}
        loaders.append({**answer["loaders"][0], "rank": rank, "world_size": world_size, "role": "train", "verdict": {"bound": bound}, "total": total})
    answer["loaders"] = loaders
    (shared / node / "measure.json").write_text(json.dumps(answer))


def test_what_nodes_measured_is_joined_and_the_slowest_rank_is_named(stoker, tmp_path):
    part_of_node(tmp_path / "monday", "node-a", (0, 1), 4, (1, 2))
    part_of_node(tmp_path / "monday", "node-b", (2, 3), 4, (60, 3))
    done = stoker("report", "monday")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "Rank 2 on node node-b is the slowest of 4: it waits 75 % of its time for its loader (fetch_bound)" in said
    assert "Ranks and nodes" in titles(page_of(tmp_path / "monday" / "report.html"))
    markdown = (tmp_path / "monday" / "report.md").read_text()
    assert re.search(r"node-b \| +2 \|", markdown) and "stoker measure --shared monday-again" in markdown
    part_of_node(tmp_path / "tuesday", "node-a", (0, 1), 2, (0.1, 0.2))
    assert "No rank waits for its loader" in " ".join(stoker("report", "tuesday").stdout.split())


@pytest.mark.parametrize("other, says", [
    (((2,), 3), "2 of 3 ranks are here, and rank 1 is not"), (((0,), 3), "rank 0 is in `a` and in `b`"), (((1,), 2), "`a` is of 3 ranks, `b` of 2 ranks")])
def test_parts_of_nodes_that_do_not_fit_together_are_named(stoker, tmp_path, other, says):
    part_of_node(tmp_path / "monday", "a", (0,), 3, (1,))
    part_of_node(tmp_path / "monday", "b", other[0], other[1], (1,))
    done = stoker("report", "monday")
    assert says in " ".join((done.stdout + done.stderr).split()), done.stdout + done.stderr
    assert (done.returncode == 0) == ("are here" in says)


def test_what_several_nodes_measured_is_not_compared(stoker, tmp_path):
    part_of_node(tmp_path / "monday", "a", (0,), 1, (1,))
    refused = stoker("report", "--before", "monday", "--after", "monday")
    assert refused.returncode == 2 and "cannot compare with `monday`: it holds what several nodes measured" in refused.stderr
