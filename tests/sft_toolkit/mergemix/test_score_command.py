"""Running a user's evaluation command: real processes that answer, fail, hang and babble."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path

import pytest

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.mergemix.score_command import (
    ScoreCommand,
    Unreadable,
    find_scores,
    metric_name,
    metric_of,
    parse_scores,
)


def python(code: str, timeout: float | None = 60) -> ScoreCommand:
    return ScoreCommand(f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} {{model}}", timeout)


def test_the_last_line_is_the_score_and_the_model_is_an_argument(tmp_path: Path) -> None:
    model = tmp_path / "a model; with $words"
    model.mkdir()
    code = "import sys, os; print('loading'); assert os.path.isdir(sys.argv[1]); print(0.625); print()"
    assert python(code).run(model) == {"score": 0.625}


def test_an_object_of_numbers_gives_a_score_per_metric(tmp_path: Path) -> None:
    assert python('print(\'{"math": 0.5, "code": 1}\')').run(tmp_path) == {"math": 0.5, "code": 1.0}


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match="no score on the last line"):
        ScoreCommand("echo {model}; echo 1").run(tmp_path)


def test_a_command_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    code = "import sys; print(1); print('first', file=sys.stderr); sys.exit('no such benchmark')"
    with pytest.raises(ToolkitError, match=r"failed \(exit code 1\): .*: no such benchmark"):
        python(code).run(tmp_path)


def test_a_command_that_is_killed_is_told_with_its_signal(tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match=r"failed \(SIGKILL\): .*: it said nothing"):
        python("import os; os.kill(os.getpid(), 9)").run(tmp_path)


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(ToolkitError, match="ran longer than 5 s"):
        python(code, timeout=5).run(tmp_path)
    process = Path("/proc") / (tmp_path / "child").read_text()
    deadline = time.monotonic() + 30
    while _alive(process):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _alive(process: Path) -> bool:
    try:
        return process.joinpath("stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except OSError:
        return False


def test_a_command_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot start: no-such-command-here"):
        ScoreCommand("no-such-command-here {model}").run(tmp_path)


@pytest.mark.parametrize("output", ["", "\\n\\n", "done", "0.5 points", "nan", "NaN", "Infinity", "1e999"])
def test_what_is_no_score_is_refused(tmp_path: Path, output: str) -> None:
    with pytest.raises(ToolkitError, match="last line of"):
        python(f"print('{output}')").run(tmp_path)


@pytest.mark.parametrize(
    "line", ["true", "null", '"0.5"', "[0.5]", "{}", '{"a": "x"}', '{"a": true}', '{"a": {"b": 1}}']
)
def test_json_that_is_no_score_is_refused(line: str) -> None:
    with pytest.raises(ToolkitError, match="neither a number nor an object of numbers"):
        parse_scores(line, "CMD")


LM_EVAL = {
    "results": {
        "gsm8k": {"alias": "gsm8k", "acc,none": 0.5, "acc_stderr,none": "N/A"},
        "arc": {"alias": "arc", "acc,none": 0.25, "acc_norm,none": 0.75},
    },
    "config": {"batch_size": 8},
}


@pytest.mark.parametrize(
    ("text", "metric", "expected"),
    [
        ('{"acc,none": 0.5, "alias": "gsm8k"}', "acc,none", 0.5),
        (json.dumps({"results": {"gsm8k": {"acc,none": 0.5}}}), "acc,none", 0.5),
        (json.dumps(LM_EVAL), "gsm8k/acc,none", 0.5),
        (json.dumps(LM_EVAL), "acc_norm,none", 0.75),
        (f"loading\n{json.dumps(LM_EVAL, indent=2)}\nsaved to {{x}}\n", "arc/acc,none", 0.25),
        ('{"acc": 0.1}\n{"acc": 0.2}\ndone.', "acc", 0.2),
        ('{"acc": 0.1}\n{"other": 0.2}', "acc", 0.1),
        ('{"acc": null}\n{"acc": 0.2, "b": NaN, "c": Infinity}', "acc", 0.2),
        ('{ broken\n  {"a": {"b": {"acc": 7}}}', "b/acc", 7),
    ],
)
def test_a_named_metric_is_found_amid_text_and_nested_objects(text: str, metric: str, expected: float) -> None:
    assert metric_of(find_scores(text, metric, "CMD"), metric) == expected


def test_a_metric_that_several_tasks_have_is_named_by_its_path() -> None:
    with pytest.raises(UsageError, match="several metrics acc,none among arc/acc,none, gsm8k/acc,none"):
        metric_of(find_scores(json.dumps(LM_EVAL), "acc,none", "CMD"), "acc,none")


@pytest.mark.parametrize("text", ["", "0.5", "acc: 0.5", '{"acc": "0.5"}', '{"acc": true}', '{"acc": NaN}', "{" * 9999])
def test_output_without_the_metric_is_refused(text: str) -> None:
    with pytest.raises(ToolkitError, match="no metric acc in the output of CMD"):
        find_scores(text, "acc", "CMD")


def test_the_numbers_that_could_be_named_are_listed_and_the_output_is_kept(tmp_path: Path) -> None:
    line = '{"acc,none": 0.5, "alias": "gsm8k"}'
    with pytest.raises(Unreadable, match="neither a number nor an object of numbers") as refused:
        python(f"print('hello'); print('{line}')").run(tmp_path)
    assert refused.value.hint.endswith("`metric`: acc,none") and refused.value.output == f"hello\n{line}\n"


def test_a_metric_heads_a_table_by_its_full_name() -> None:
    assert metric_name({"acc": 0.5}, None) == "acc"
    assert metric_name({"arc/acc": 0.5, "arc/f1": 0.1}, "acc") == "arc/acc"


@pytest.mark.parametrize("template", ["evaluate", "evaluate model", ""])
def test_a_command_without_a_place_for_the_model_is_refused(template: str) -> None:
    with pytest.raises(UsageError, match="does not name the model"):
        ScoreCommand(template)


def test_a_command_with_an_open_quote_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be split"):
        ScoreCommand("evaluate '{model}")


def test_the_metric_is_the_one_named_else_the_only_one_else_score() -> None:
    assert metric_of({"math": 0.5}, None) == 0.5
    assert metric_of({"math": 0.5, "code": 0.25}, "code") == 0.25
    assert metric_of({"math": 0.5, "score": 0.25}, None) == 0.25
    with pytest.raises(UsageError, match="no metric score among code, math"):
        metric_of({"math": 0.5, "code": 0.25}, None)
    with pytest.raises(UsageError, match="no metric law among math"):
        metric_of({"math": 0.5}, "law")


@pytest.mark.parametrize("shell", ["sh -c", "/bin/bash -lc", "bash --norc -c"])
def test_a_folder_name_never_becomes_the_text_of_a_shell(shell: str) -> None:
    with pytest.raises(UsageError, match="text of a shell") as refused:
        ScoreCommand(f"{shell} 'evaluate {{model}}'")
    assert '"$KOLIBRI_SFT_MODEL"' in str(refused.value.hint)


@pytest.mark.parametrize("template", ["sh -c 'cat \"$KOLIBRI_SFT_MODEL\"/score'", "sh -c 'cat \"$0\"/score' {model}"])
def test_a_shell_gets_the_folder_as_a_variable_or_an_argument(tmp_path: Path, template: str) -> None:
    folder = tmp_path / "a; touch X; b"
    folder.mkdir()
    (folder / "score").write_text("0.5\n")
    assert ScoreCommand(template).run(folder) == {"score": 0.5}


def test_the_key_of_a_teacher_is_kept_from_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOLIBRI_SFT_API_KEY", "secret")
    code = "import os; print(int('KOLIBRI_SFT_API_KEY' in os.environ), end=''); print('.5')"
    assert python(code).run(tmp_path) == {"score": 0.5}
