"""Writes the table and the bars of docs/background/benchmarks.md from bench/recorded/figures.json.

    python3 bench/page.py

The file holds rows of the tables in docs/background/benchmark-tables.md: change both together. A test fails where the page,
the picture or a figure differs.
"""

import html
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIGURES = ROOT / "bench/recorded/figures.json"
PAGE, BARS = ROOT / "docs/background/benchmarks.md", ROOT / "docs/images/benchmarks.svg"
TABLES = "benchmark-tables.md"
BEGIN, END = "<!-- bench/page.py writes what follows -->", "<!-- until here -->"

WIDTH, ROW, TOP, LEFT, RIGHT = 720, 24, 58, 194, 262  # of the picture, in pixels


def figures():
    return json.loads(FIGURES.read_text())


def ours(figure):
    return next(row for row in figure["contestants"] if row["name"] == figure["stoker"])


def best_peer(figure):
    return max((row for row in figure["contestants"] if row["kind"] == "peer"), key=lambda row: row["rate"])


def gain(figure):
    return ours(figure)["rate"] / best_peer(figure)["rate"]


def number(rate):
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"


def anchor(title):
    return re.sub(r"[^\w\s-]", "", title.lower()).replace(" ", "-")


def table():
    rows = ["| work | Stoker | of the best peer | best peer | its rate |", "|---|---:|---:|---|---:|"]
    for figure in figures()["figures"]:
        peer = best_peer(figure)
        rows.append(f"| [{figure['work']}]({TABLES}#{anchor(figure['table'])}) | {number(ours(figure)['rate'])} {figure['unit']} | **{gain(figure):.1f}x** | "
                    f"{peer['name']} | {number(peer['rate'])} |")
    commands = ", ".join(f"`{command}`" for command in dict.fromkeys(figure["command"] for figure in figures()["figures"]))
    return "\n".join(rows) + f"\n\nMachine: {figures()['machine']}. Commands:\n{commands}."


def bars():
    """One bar for each work: how many times the best peer's rate. The line marks 1."""
    rows = figures()["figures"]
    longest = max(gain(figure) for figure in rows)
    scale = (WIDTH - LEFT - RIGHT) / longest
    height = TOP + ROW * len(rows) + 14
    one = LEFT + scale
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
           'aria-label="Samples per second of Stoker, as a multiple of the best peer, for each work">',
           "<style>text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#24292f}.small{font-size:12px;fill:#57606a}"
           ".title{font-weight:600;font-size:15px}.card{fill:#fff;stroke:#d0d7de}.bar{fill:#d9541e}.less{fill:#8c959f}.one{stroke:#57606a;stroke-dasharray:3 3}"
           "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9aa4af}.card{fill:#161b22;stroke:#30363d}.bar{fill:#f0743e}.less{fill:#6e7681}"
           ".one{stroke:#9aa4af}}</style>",
           f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
           '<text class="title" x="16" y="26">How many times the best peer, on two cores</text>',
           '<text class="small" x="16" y="44">samples per second of Stoker over those of the fastest other loader tried</text>']
    for index, figure in enumerate(rows):
        y, times = TOP + ROW * index, gain(figure)
        out.append(f'<text x="{LEFT - 10}" y="{y + 17}" text-anchor="end">{html.escape(figure["label"])}</text>')
        out.append(f'<rect class="{"bar" if times >= 1 else "less"}" x="{LEFT}" y="{y + 4}" width="{times * scale:.1f}" height="{ROW - 8}" rx="2"/>')
        out.append(f'<text x="{LEFT + max(times, 1) * scale + 8:.1f}" y="{y + 17}">{times:.1f}x '
                   f'<tspan class="small">{html.escape(best_peer(figure)["name"].split(",")[0])}</tspan></text>')
    out.append(f'<line class="one" x1="{one:.1f}" y1="{TOP}" x2="{one:.1f}" y2="{height - 10}"/>')
    return "\n".join([*out, "</svg>"]) + "\n"


def page():
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def main():
    PAGE.write_text(page())
    BARS.write_text(bars())
    for path in (PAGE, BARS):
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
