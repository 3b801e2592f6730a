"""Errors below cli/ name parameters, a command names its flags; choices are listed in one place."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from sft_toolkit import choices
from sft_toolkit.choices import require_choices
from sft_toolkit.cli.flags import _NAMED, CLI_NAMES, RUNNING, spelled
from sft_toolkit.cli.main import build_app, run
from sft_toolkit.cli.registry import COMMANDS
from sft_toolkit.errors import UsageError
from tests.conftest import ROOT

Fault = Callable[..., str]


def leaves(command: Any) -> Iterator[Any]:
    children = getattr(command, "commands", None)
    if children is None:
        yield command
    for child in (children or {}).values():
        yield from leaves(child)


def commands() -> list[Any]:
    roots = [typer.main.get_command(build_app([name])).commands[name] for name in COMMANDS]  # type: ignore[attr-defined]
    return [leaf for root in roots for leaf in leaves(root)]


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fault:
    """The one line that a command with a usage error prints."""

    def read(*arguments: str | Path, **environment: str) -> str:
        monkeypatch.setattr(sys, "argv", ["kolibri-sft", *map(str, arguments)])
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as end:
            run()
        assert end.value.code == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        return line.rstrip("\n")

    return read


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("`overlong` cut: unknown", "--overlong cut: unknown"),
        ("choose `overlong=truncate`, or a larger `capacity`", "choose --overlong truncate, or a larger --capacity"),
        ("use `force=True`", "use --force"),
        ("keep input order with `shuffle=False`", "keep input order with --no-shuffle"),
        ("`quarantine=True` needs a place", "--on-error quarantine needs a place"),
        ("`part` and `k`", "--shard and -k"),
        ("`inputs`: none", "TOKENS...: none"),
        ("see `convert(dataset)`", "see kolibri-sft convert --dataset"),
        ("finish it: `train(resume=True)`", "finish it: kolibri-sft train --resume"),
        ("see `effort fit(min_group=5)`", "see kolibri-sft effort fit --min-group 5"),
        ("Expected `str`, got `int` - at `$.tools`", "Expected `str`, got `int` - at `$.tools`"),
    ],
)  # fmt: skip
def test_a_parameter_is_spelled_as_the_flag_of_the_running_command(text: str, shown: str) -> None:
    pack = typer.main.get_command(build_app(["pack"])).commands["pack"]  # type: ignore[attr-defined]
    token = RUNNING.set(pack.make_context("pack", ["tokens", "-o", "packed"]))
    try:
        assert spelled(text) == shown
    finally:
        RUNNING.reset(token)


def test_outside_a_command_errors_stay_as_python_names_them() -> None:
    assert spelled("`overlong` cut: unknown") == "`overlong` cut: unknown"


def texts_below() -> Iterator[tuple[Path, int, str]]:
    """Every text below cli/ but docstrings."""
    for folder in ("sft_toolkit", "packers", "labelers"):
        for path in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(path.read_text())
            docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                    yield path.relative_to(ROOT), node.lineno, node.value


def test_no_text_below_the_command_line_names_a_flag() -> None:
    flags = [found for found in texts_below() if re.search(r"(?<![\w-])--[a-z]", found[2])]
    of_others = ("pip install", "hf download", "--safe_serialization", "ray start", "<html")
    assert [flag for flag in flags if not any(other in flag[2] for other in of_others)] == []


def test_every_parameter_that_an_error_names_is_one_of_a_command() -> None:
    known = {parameter.name for command in commands() for parameter in command.params}
    named = {match["name"] for _, _, text in texts_below() for match in _NAMED.finditer(text)}
    assert len(named) > 20
    of_others = {"save_pretrained", "merge_and_unload", "is_decoder"}
    assert sorted(named - known - CLI_NAMES.keys() - COMMANDS.keys() - of_others) == []


def test_names_that_differ_stand_for_parameters_that_exist() -> None:
    known = {parameter.name for command in commands() for parameter in command.params}
    assert set(CLI_NAMES.values()) - known == set()


def test_a_bad_value_names_the_variable_or_the_file_it_came_from(fault: Fault, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text('driver = "slurm"\n[plan]\nattention-share = 3.5\n')
    assert fault("mask", "x", "--driver", "slurm").startswith("error: --driver: 'slurm' is not one of 'local', 'ray'; ")
    assert f"'ray' (from {config}: driver);" in fault("mask", "x", "--config", config)
    assert fault("plan", tmp_path, "--config", config).endswith(
        f"(from {config}: [plan] attention-share); give a number from 0 to 1"
    )
    assert "--driver: 'k8s' is not one of 'local', 'ray' (from KOLIBRI_SFT_DRIVER); " in fault(
        "mask", "x", KOLIBRI_SFT_DRIVER="k8s"
    )
    assert "--attention-share 7.0: not a share (from KOLIBRI_SFT_PLAN_ATTENTION_SHARE); " in fault(
        "plan", tmp_path, KOLIBRI_SFT_PLAN_ATTENTION_SHARE="7"
    )


def test_pack_offers_nothing_that_it_refuses(fault: Fault) -> None:
    pack = typer.main.get_command(build_app(["pack"])).commands["pack"]  # type: ignore[attr-defined]
    flags = {flag for parameter in pack.params for flag in parameter.opts}
    assert flags & {"--format", "--map", "--map-file", "--quarantine"} == set()
    texts = " ".join(parameter.help or "" for parameter in pack.params)
    assert "JSONL" not in texts and "hf:" not in texts
    assert fault("pack", "tokens").startswith("error: Missing option '-o' / '--output'")


def test_only_commands_that_draw_take_a_seed() -> None:
    takers = {command.name for command in commands() if any(parameter.name == "seed" for parameter in command.params)}
    assert takers & {"convert", "mask", "language"} == set()
    assert {"pack", "mix", "label", "distill", "train", "plan"} <= takers


def test_each_choice_lists_what_is_implemented() -> None:
    from sft_toolkit.formats import FORMATS
    from sft_toolkit.labelers.difficulty import STUDENTS
    from sft_toolkit.packers import AUTO, ORDERS
    from sft_toolkit.running.drivers import DRIVERS
    from sft_toolkit.souping.float_formats import FORMATS as DTYPES
    from sft_toolkit.teachers.prefill import FORMS
    from sft_toolkit.training.reports import REPORTS

    assert get_args(choices.SourceFormat) == tuple(FORMATS)
    assert get_args(choices.Driver) == tuple(DRIVERS)
    assert get_args(choices.OrderName) == (AUTO, *ORDERS)
    assert get_args(choices.Dtype) == tuple(DTYPES)
    assert get_args(choices.Report) == tuple(REPORTS)
    assert get_args(choices.ClassifierKind) == tuple(STUDENTS)
    assert get_args(choices.Prefill) == ("auto", *FORMS, "none")


def test_a_value_that_is_no_choice_is_refused_from_python_too() -> None:
    from sft_toolkit.stages.mask import MaskStage
    from sft_toolkit.stages.pack.two_passes import PackOptions

    with pytest.raises(UsageError, match="`method` greedy: unknown") as caught:
        PackOptions(method="greedy")  # type: ignore[arg-type]
    assert caught.value.hint == "choose one of nkf, bfd"
    with pytest.raises(UsageError, match="`loops` drop: unknown"):
        MaskStage(loops="drop")  # type: ignore[arg-type]
    require_choices(MaskStage(loops=None))
