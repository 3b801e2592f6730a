"""`convert` as users run it: pipes, folders, bad input, signals. Every stage command runs on the same rails."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunCli, cli_command


def record(number: int, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"Frage {number}"}, {"role": "assistant", "content": "Antwort " * 20}]
    return {"id": f"r{number}", "messages": messages, **more}


def write_records(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def shard_bytes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("part-*.arrow"))}


def one_line_error(result: subprocess.CompletedProcess[bytes], code: int) -> str:
    text = result.stderr.decode()
    assert result.returncode == code, text
    assert text.startswith("error: ") and text.count("\n") == 1, text
    return text


def test_a_pipe_gives_one_record_a_line_and_nothing_else_on_stdout(run_cli: RunCli) -> None:
    result = run_cli("convert", stdin=b"".join(json.dumps(record(n)).encode() + b"\n" for n in range(1200)))
    lines = result.stdout.splitlines()
    assert result.returncode == 0
    assert [json.loads(line)["id"] for line in lines] == [f"r{n}" for n in range(1200)]
    assert b"records in   1,200" in result.stderr and b"records out  1,200" in result.stderr


def test_shards_are_the_same_bytes_for_any_workers_and_any_split_of_the_input(run_cli: RunCli, tmp_path: Path) -> None:
    records = [record(number) for number in range(500)]
    whole = write_records(tmp_path / "whole.jsonl", records)
    thirds = [
        write_records(tmp_path / f"third{part}.jsonl", records[start:end])
        for part, (start, end) in enumerate([(0, 123), (123, 340), (340, 500)])
    ]
    packed = tmp_path / "whole.jsonl.gz"
    packed.write_bytes(gzip.compress(whole.read_bytes()))
    runs: dict[str, list[str | Path]] = {
        "one": [whole, "--workers", "1"],
        "two": [whole, "--workers", "2"],
        "thirds": [*thirds, "--workers", "2"],
        "packed": [packed, "--workers", "2"],
    }
    for name, arguments in runs.items():
        result = run_cli("convert", *arguments, "-o", tmp_path / name, "--rows-per-shard", "100")
        assert result.returncode == 0, result.stderr
    expected = shard_bytes(tmp_path / "one")
    assert len(expected) == 5
    assert all(shard_bytes(tmp_path / name) == expected for name in runs)


def test_an_array_job_of_three_writes_what_one_run_writes(run_cli: RunCli, tmp_path: Path) -> None:
    source = write_records(tmp_path / "in.jsonl", [record(number) for number in range(500)])
    common = ["--rows-per-shard", "60", "--workers", "1"]
    assert run_cli("convert", source, "-o", tmp_path / "one", *common).returncode == 0
    for task in (1, 2, 3):
        share = ("--shard", f"{task - 1}/3")
        result = run_cli("convert", source, "-o", tmp_path / "many", *common, *share)
        assert result.returncode == 0, result.stderr
        assert (tmp_path / "many" / "manifest.json").exists() == (task == 3)
    assert shard_bytes(tmp_path / "many") == shard_bytes(tmp_path / "one")
    manifests = [json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("one", "many")]
    assert manifests[0]["counters"] == manifests[1]["counters"]
    assert manifests[0]["shards"] == manifests[1]["shards"]


def test_a_run_killed_in_the_middle_goes_on_where_it_was_and_ends_in_the_same_bytes(
    run_cli: RunCli, tmp_path: Path
) -> None:
    source = write_records(tmp_path / "in.jsonl", [record(number) for number in range(20_000)])
    common = [source, "--rows-per-shard", "200", "--workers", "2"]
    assert run_cli("convert", *common, "-o", tmp_path / "whole").returncode == 0
    target = tmp_path / "killed"
    running = subprocess.Popen(cli_command("convert", *common, "-o", target), stderr=subprocess.DEVNULL)
    while len(shard_bytes(target)) < 5:
        time.sleep(0.01)
    running.kill()
    running.wait()
    begun = shard_bytes(target)
    assert not (target / "manifest.json").exists() and len(begun) < 100
    refused = one_line_error(run_cli("convert", *common, "-o", target), 2)
    assert "finished shards; use --resume to continue" in refused
    reported = [path.with_suffix(".arrow").name for path in (target / ".progress").glob("part-*.json")]
    untouched = {name: (target / name).stat().st_mtime_ns for name in reported}
    assert len(untouched) >= 3, "a shard is there just before it counts, so two workers may be two behind"
    resumed = run_cli("convert", *common, "-o", target, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert {name: (target / name).stat().st_mtime_ns for name in untouched} == untouched
    assert shard_bytes(target) == shard_bytes(tmp_path / "whole")
    assert sorted(path.name for path in target.iterdir()) == sorted(
        path.name for path in (tmp_path / "whole").iterdir()
    )


def test_resume_of_a_finished_run_does_nothing_and_of_another_run_is_refused(run_cli: RunCli, tmp_path: Path) -> None:
    source = write_records(tmp_path / "in.jsonl", [record(0)])
    target = tmp_path / "out"
    assert run_cli("convert", source, "-o", target).returncode == 0
    again = run_cli("convert", source, "-o", target, "--resume")
    assert again.returncode == 0 and b"finished already, nothing to do" in again.stderr
    other = one_line_error(run_cli("convert", source, "-o", target, "--resume", "--dataset", "x"), 2)
    assert "was begun from other inputs or options" in other


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_run_with_its_code_and_leaves_nothing_that_looks_whole(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    source = write_records(tmp_path / "in.jsonl", [record(one) for one in range(20_000)])
    target = tmp_path / "out"
    command = cli_command("convert", source, "-o", target, "--rows-per-shard", "100", "--workers", "2")
    running = subprocess.Popen(command, stderr=subprocess.PIPE)
    while len(shard_bytes(target)) < 3:
        time.sleep(0.01)
    running.send_signal(number)
    _, stderr = running.communicate(timeout=30)
    how = "interrupted" if number == signal.SIGINT else "stopped by SIGTERM"
    says = f"error: {how}; the same command with --resume resumes: finished shards are kept in {target}\n"
    assert (running.returncode, stderr.decode()) == (code, says)
    assert not (target / "manifest.json").exists()


def test_a_reader_that_goes_away_is_exit_code_141_without_a_word(tmp_path: Path) -> None:
    source = write_records(tmp_path / "in.jsonl", [record(number) for number in range(5000)])
    running = subprocess.Popen(
        cli_command("convert", source, "--quiet"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout is not None and running.stderr is not None
    running.stdout.readline()
    running.stdout.close()
    assert (running.wait(30), running.stderr.read()) == (141, b"")


def test_a_bad_record_stops_the_run_and_names_file_line_and_id(run_cli: RunCli, tmp_path: Path) -> None:
    records = [record(0), {"id": "r1", "messages": "hi"}, record(2)]
    source = write_records(tmp_path / "in.jsonl", records)
    error = one_line_error(run_cli("convert", source, "-o", tmp_path / "out"), 1)
    assert f"{source}:2: messages is text that is not JSON" in error
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_quarantine_goes_on_and_keeps_the_bad_records_with_their_reasons(run_cli: RunCli, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    lines = [
        json.dumps(record(0)),
        '{"messages": ',
        "",
        json.dumps({"id": "r3", "messages": []}),
        json.dumps(record(4)),
    ]
    source.write_text("\n".join(lines))
    result = run_cli("convert", source, "-o", tmp_path / "out", "--on-error", "quarantine", "--json")
    assert result.returncode == 0
    summary = json.loads(result.stdout)
    assert (summary["in"], summary["out"]) == (4, 2)
    assert summary["rejected"] == {"empty_conversation": 1, "not_json": 1}
    rejected = [json.loads(line) for line in (tmp_path / "out/quarantine/part-00000.jsonl").read_text().splitlines()]
    assert [(entry["origin"], entry["reason"]) for entry in rejected] == [
        (f"{source}:2", "not_json"),
        (f"{source}:4", "empty_conversation"),
    ]
    assert rejected[1]["record"] == {"id": "r3", "messages": []}


def test_quarantine_in_a_pipe_needs_a_file_to_keep_records_in(run_cli: RunCli, tmp_path: Path) -> None:
    lines = json.dumps(record(0)).encode() + b"\nnot json\n"
    assert "add --quarantine FILE.jsonl" in one_line_error(
        run_cli("convert", "--on-error", "quarantine", stdin=lines), 2
    )
    file = tmp_path / "rejected.jsonl"
    result = run_cli("convert", "--on-error", "quarantine", "--quarantine", file, stdin=lines)
    assert result.returncode == 0 and len(result.stdout.splitlines()) == 1
    assert json.loads(file.read_text())["reason"] == "not_json"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no records; is the input empty?"),
        (b"\n\n", "no records; is the input empty?"),
        (b'{"messages": [{"role": "user", "content": "\xff"}]}\n', "in.jsonl:1: byte 44 of the line is not UTF-8"),
        (b'{"messages": [{"role": "user", "con', "in.jsonl:1: the last line is cut off"),
        (b'[{"messages": []}]\n', "in.jsonl:1: the line is a JSON array, not one record"),
    ],
)
def test_content_that_is_no_records_is_one_line_with_the_place(
    content: bytes, says: str, run_cli: RunCli, tmp_path: Path
) -> None:
    (tmp_path / "in.jsonl").write_bytes(content)
    assert says in one_line_error(run_cli("convert", tmp_path / "in.jsonl", "-o", tmp_path / "out"), 1)
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_truncated_gzip_is_told_and_no_shard_folder_looks_whole(run_cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(json.dumps(record(n)).encode() + b"\n" for n in range(300)))[:-20])
    error = one_line_error(run_cli("convert", path, "-o", tmp_path / "out"), 1)
    assert "in.jsonl.gz: compressed data is damaged or ends early" in error
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_line_of_200_megabytes_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    with path.open("wb") as file:
        file.write(b'[{"messages": "')
        file.seek(200 << 20, os.SEEK_CUR)
        file.write(b'"}]\n')
    command = ["bash", "-c", 'ulimit -v 3000000; exec "$@"', "-", *cli_command("convert", path, "--workers", "1")]
    result = subprocess.run(command, capture_output=True, timeout=120)
    assert "in.jsonl:1: the line has 200 MiB, more than 64; the file seems to be one JSON array" in one_line_error(
        result, 1
    )


def test_an_output_folder_that_is_not_empty_or_is_a_file_is_refused(run_cli: RunCli, tmp_path: Path) -> None:
    source = write_records(tmp_path / "in.jsonl", [record(0)])
    (tmp_path / "full").mkdir()
    write_records(tmp_path / "full" / "other.jsonl", [])
    assert "not empty (it holds other.jsonl)" in one_line_error(run_cli("convert", source, "-o", tmp_path / "full"), 2)
    assert "is input and output" in one_line_error(run_cli("convert", source, "-o", tmp_path), 2)
    (tmp_path / "file").write_text("x")
    assert "is a file" in one_line_error(run_cli("convert", source, "-o", tmp_path / "file"), 2)


def test_a_place_that_cannot_be_written_is_told_before_any_work(run_cli: RunCli, tmp_path: Path) -> None:
    source = write_records(tmp_path / "in.jsonl", [record(0)])
    error = one_line_error(run_cli("convert", source, "-o", "/proc/nowhere/out"), 1)
    assert "/proc/nowhere" in error


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_full_disk_is_one_line_and_leaves_no_file(workers: str, tmp_path: Path) -> None:
    source = write_records(tmp_path / "in.jsonl", [record(number) for number in range(5000)])
    target = tmp_path / "out.jsonl"
    limit = "ulimit -f 200; trap '' XFSZ; exec \"$@\""  # a file may grow to 200 KiB, then writes fail
    command = cli_command("convert", source, "-o", target, "--workers", workers, "--quiet")
    result = subprocess.run(["bash", "-c", limit, "-", *command], capture_output=True, timeout=60)
    assert "out.jsonl" in one_line_error(result, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_jsonl_file_appears_whole_and_is_replaced_only_by_force(run_cli: RunCli, tmp_path: Path) -> None:
    source = write_records(tmp_path / "in.jsonl", [record(number) for number in range(3)])
    target = tmp_path / "out.jsonl.gz"
    assert run_cli("convert", source, "-o", target).returncode == 0
    first = target.read_bytes()
    assert len(gzip.decompress(first).splitlines()) == 3
    assert "exists; use --force" in one_line_error(run_cli("convert", source, "-o", target), 2)
    assert run_cli("convert", source, "-o", target, "--force").returncode == 0
    assert target.read_bytes() == first


def test_flag_beats_environment_beats_config_file_beats_default(run_cli: RunCli, tmp_path: Path) -> None:
    source = write_records(tmp_path / "in.jsonl", [record(0)])
    config = tmp_path / "c.toml"
    config.write_text('workers = 2\n[convert]\ndataset = "aus-der-datei"\nrows-per-shard = 7\n')
    result = run_cli(
        "convert", source, "-o", tmp_path / "out", "--config", config, "--rows-per-shard", "9",
        environment={"KOLIBRI_SFT_WORKERS": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["seed"] is None
    assert manifest["options"]["workers"] == {"value": 1, "from": "environment"}
    assert manifest["options"]["dataset"] == {"value": "aus-der-datei", "from": "config file"}
    assert manifest["options"]["rows_per_shard"] == {"value": 9, "from": "flag"}
    assert manifest["options"]["source_format"] == {"value": "auto", "from": "default"}
    assert manifest["options"]["quarantine"] == {"value": False, "from": "default"}


def test_a_config_file_with_an_unknown_option_is_refused(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[convert]\nwrokers = 1\n")
    result = run_cli("convert", "--config", tmp_path / "c.toml", stdin=b"{}")
    assert result.returncode == 2 and b"no option" in result.stderr and b"wrokers" in result.stderr


def test_a_subcommand_has_a_table_of_its_own_in_the_config_file(run_cli: RunCli, tmp_path: Path) -> None:
    lines = ["workers = 1", "[effort.label]", "seed = 1", "[convert]", "dataset = 'd'"]
    (tmp_path / "c.toml").write_text("\n".join(lines))
    done = run_cli("convert", "--config", tmp_path / "c.toml", stdin=json.dumps(record(0)).encode())
    assert json.loads(done.stdout)["dataset"] == "d", done.stderr
    (tmp_path / "c.toml").write_text("[effort]\nlength-column = 'n'\n[effort.label]\nseed = 5\n")
    done = run_cli("effort", "label", "--config", tmp_path / "c.toml", stdin=json.dumps(record(0, n=3)).encode())
    assert done.returncode == 0, done.stderr
    (tmp_path / "c.toml").write_text("[effort.label]\nwrokers = 1\n")
    done = run_cli("effort", "label", "--config", tmp_path / "c.toml", stdin=json.dumps(record(0)).encode())
    assert b"[effort.label] has no option wrokers" in done.stderr


def test_a_dry_run_writes_nothing(run_cli: RunCli, tmp_path: Path) -> None:
    source = write_records(tmp_path / "in.jsonl", [record(0)])
    result = run_cli("convert", source, "-o", tmp_path / "out", "--dry-run")
    assert result.returncode == 0 and b"dry run" in result.stderr
    assert not (tmp_path / "out").exists()
