"""The counting of ./dev: what it says of a stage is what the stage's JUnit file says."""
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run_stage(folder, xml, status=0):
    """Runs `stage` of ./dev on a command that writes `xml` and exits with `status`; gives its output and the sums."""
    made = folder / "made.xml"
    made.write_text(xml)
    script = (ROOT / "dev").read_text().replace('main "$@"; exit', "")
    script = script.replace('cd "$root"', f"cd {folder}")
    script += f"""
mkdir -p build/logs
stage sample result.xml bash -c 'cp made.xml result.xml; exit {status}'
echo "sums $passed $failed $skipped"
"""
    file = folder / "dev"
    file.write_text(script)
    done = subprocess.run(["bash", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("skipped", [0, 1, 7, 8, 9, 10, 11, 19, 100])
def test_counts_are_decimal(tmp_path, skipped):
    out = run_stage(tmp_path, f'<testsuite name="x" tests="120" failures="0" skipped="{skipped}" disabled="0">')
    assert f"{120 - skipped} passed, 0 failed, {skipped} skipped" in out
    assert f"sums {120 - skipped} 0 {skipped}" in out


def test_errors_failures_and_counts_that_are_absent(tmp_path):
    out = run_stage(tmp_path, '<testsuite errors="09" failures="08" tests="0100">', status=1)
    assert "83 passed, 17 failed, 0 skipped" in out


def test_a_command_that_fails_without_a_failed_test_is_a_failure(tmp_path):
    assert "sums 5 1 0" in run_stage(tmp_path, '<testsuite tests="5" failures="0">', status=3)
