"""Mistakes that a user makes: one line on stderr that says what to do, exit code 2, nothing on stdout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shadowprice.cli.app import main

JOBS = "id,gpus,submit,duration\na,1,0,10\nb,2,0,5\n"
FILES: dict[str, str | bytes] = {
    "jobs.csv": JOBS,
    "utf16.csv": JOBS.encode("utf-16"),
    "negative.csv": "id,gpus,submit,duration\na,1,0,-4\n",
    "twice.csv": "id,gpus,submit,duration\na,1,0,4\na,1,0,5\n",
    "header.csv": "id,gpus,submit,duration\n",
    "empty.csv": "",
    "no_jobs.json": json.dumps({"cluster": {"a": 2}, "jobs": []}),
    "no_types.json": json.dumps({"cluster": {}, "jobs": [{"tput": [1.0]}]}),
    "problem.json": json.dumps({"cluster": {"a": 2}, "jobs": [{"tput": [1.0]}]}),
    "mine.py": "def raises(problem):\n    raise ValueError('oops')\ndef nothing(problem):\n    return None\n",
    "run.toml": "round = 3\n",
    "study.yaml": "study: t\nworkloads: {w: {generator: lognormal, parameters: {jobs: 3}}}\n"
    "clusters: [1x2]\npolicies: [fifo]\nconditions: {odd: {predictor: oracle}}\n",
}
SIMULATE = ["simulate", "jobs.csv", "--cluster", "1x2", "--policy", "srtf"]
MISTAKES = [
    (["simulat"], "did you mean 'simulate'"),
    (["simulate", "jobs.csv", "--cluster", "1x2"], "missing option '--policy'"),
    ([*SIMULATE, "--custer", "1x2"], "no such option"),
    ([*SIMULATE, "--seed", "-1"], "--seed"),
    (["simulate", "nowhere.csv", *SIMULATE[2:]], "nowhere.csv: no such file"),
    (["simulate", "utf16.csv", *SIMULATE[2:]], "utf-16"),
    (["simulate", "negative.csv", *SIMULATE[2:]], "row 1, column 'duration': got '-4'"),
    (["simulate", "twice.csv", *SIMULATE[2:]], "row 2, column 'id'"),
    (["simulate", "header.csv", *SIMULATE[2:]], "no rows"),
    (["simulate", "empty.csv", *SIMULATE[2:]], "is empty"),
    (["simulate", "jobs.csv", "--cluster", "1y2", "--policy", "srtf"], "cluster '1y2'"),
    (["simulate", "jobs.csv", "--cluster", "1x1", "--policy", "srtf"], "job 'b' needs 2 gpus"),
    (["simulate", "jobs.csv", "--cluster", "1x2", "--policy", "srt"], "did you mean 'srtf'"),
    ([*SIMULATE[:-1], "mine.py:Nope"], "mine.py has no 'nope'"),
    ([*SIMULATE[:-1], "mine.py:raises"], "the function raises has no name"),
    ([*SIMULATE, "--with", "charge:start_s=1"], "did you mean 'charges'"),
    ([*SIMULATE, "--with", "charges:start=1"], "did you mean 'start_s'"),
    ([*SIMULATE, "--predictor", "oracle"], "takes no predictor"),
    ([*SIMULATE, "--run", "run.toml"], "did you mean 'round_s'"),
    (["allocate", "max_min_fairness", "no_jobs.json"], "jobs has no entry"),
    (["allocate", "max_min_fairness", "no_types.json"], "cluster has no gpu type"),
    (["allocate", "max_min_fairness", "problem.json", "--model", "mine.py:raises"], "oops"),
    (["allocate", "max_min_fairness", "problem.json", "--model", "mine.py:nothing"], "nothing"),
    (["study", "run", "study.yaml"], "conditions['odd'], policies['fifo']"),
    (["study", "report", "study.yaml", "--paper", "paper"], "--paper and --style go together"),
    (["verify", "nowhere"], "no such file or directory"),
    (["models", "nosuch"], "expected one of"),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES, ids=lambda value: str(value)[-40:])
def test_a_mistake_is_told_in_one_line(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, content in FILES.items():
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["shadowprice", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("error: ")
    assert message in line.lower()
