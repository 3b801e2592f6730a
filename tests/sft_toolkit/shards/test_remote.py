"""Inputs from a web server and from an object store, and what is refused by the name of its scheme."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.running.options import RunOptions
from sft_toolkit.running.runner import run_stage
from sft_toolkit.shards.remote import is_remote
from sft_toolkit.stages.convert import ConvertStage
from tests.conftest import RunCli

LINES = b"".join(
    json.dumps({"id": f"r{n}", "messages": [{"role": "user", "content": "x" * n}]}).encode() + b"\n" for n in range(50)
)


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files of a folder; `/cut.jsonl` promises more than it sends."""

    def do_GET(self) -> None:
        if self.path != "/cut.jsonl":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(2 * len(LINES)))
        self.end_headers()
        self.wfile.write(LINES)

    def do_HEAD(self) -> None:
        if self.path == "/cut.jsonl":
            self.send_response(200)
            self.end_headers()
        else:
            super().do_HEAD()

    def log_message(self, *given: Any) -> None: ...


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "a.jsonl").write_bytes(LINES)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(LINES))

    def handler(*given: Any) -> Handler:
        return Handler(*given, directory=str(tmp_path))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def convert(source: str, output: Path, **more: Any) -> list[bytes]:
    run_stage(ConvertStage(), RunOptions([source], output=str(output), rows_per_shard=20, workers=1, **more))
    return [path.read_bytes() for path in sorted(output.glob("part-*.arrow"))]


def test_lines_of_a_web_server_and_of_a_store_are_those_of_the_disk(server: str, tmp_path: Path) -> None:
    expected = convert(str(tmp_path / "a.jsonl"), tmp_path / "disk")
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/b.jsonl", LINES[: len(LINES) // 2])
    store.pipe("/bucket/c.jsonl.gz", gzip.compress(LINES[len(LINES) // 2 :]))
    store.pipe("/bucket/whole.jsonl", LINES)
    names = [f"{server}/a.jsonl", f"{server}/a.jsonl.gz", "memory://bucket/whole.jsonl"]
    for number, name in enumerate(names):
        assert convert(name, tmp_path / str(number)) == expected
    assert len(convert("memory://bucket/w*.jsonl", tmp_path / "glob")) == 3


def test_an_object_that_is_not_there_or_breaks_off_is_one_line_that_names_it(server: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.jsonl: no such object"):
        convert(f"{server}/none.jsonl", tmp_path / "o")
    with pytest.raises(ToolkitError, match=rf"{server}/cut\.jsonl: cannot be read: ") as caught:
        convert(f"{server}/cut.jsonl", tmp_path / "p")
    assert "`resume=True`" in caught.value.hint
    assert not (tmp_path / "p" / "manifest.json").exists()


@pytest.mark.parametrize("name", ["s3://b/x.jsonl", "gs://b/x.jsonl"])
def test_a_store_whose_client_is_not_installed_says_what_to_install(name: str, tmp_path: Path) -> None:
    if name.startswith("s3") and "s3fs" in fsspec.available_protocols():
        pytest.importorskip("no_such_module")
    with pytest.raises(ToolkitError, match=r"(?i)install (s3fs|gcsfs)"):
        convert(name, tmp_path / "o")


@pytest.mark.parametrize("name", ["https://h/x.parquet", "s3://b/shards", "hf://datasets/a/b/x.arrow"])
def test_what_is_read_from_the_middle_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}: only JSONL is read from there"):
        run_stage(ConvertStage(), RunOptions([name], output="-"))


@pytest.mark.parametrize(
    ("name", "message"),
    [("hf:", "names no data set"), ("hf::train", "names no data set"), ("hf:cli", "cannot be opened: ")],
)
def test_a_hub_name_that_is_none_is_one_line(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cli").mkdir()
    with pytest.raises(ToolkitError, match=message):
        convert(name, tmp_path / "o")


@pytest.mark.parametrize("output", ["s3://b/x", "gs://b/x", "hf://datasets/a/b", "s3://b/x.jsonl", "https://h/x"])
def test_an_output_that_is_no_place_on_the_disk_is_refused_by_its_scheme(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_bytes(LINES)
    with pytest.raises(UsageError, match=f"nothing is written to {output.partition(':')[0]}:// yet"):
        run_stage(ConvertStage(), RunOptions(["a.jsonl"], output=output))
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_every_command_refuses_such_an_output_before_it_reads_anything(run_cli: RunCli, tmp_path: Path) -> None:
    for command in (["soup", "a", "b"], ["pack", "a"], ["train", "a", "--model", "m"]):
        done = run_cli(*command, "-o", "s3://b/x", cwd=tmp_path)
        assert done.returncode == 2 and b"s3:// yet" in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())


def test_names_of_the_disk_are_no_urls() -> None:
    assert not any(map(is_remote, ["a.jsonl", "hf:name", "c:x", "/s3/x", "a:/b", "-"]))
    assert all(map(is_remote, ["s3://b", "s3:/b", "HTTPS://h/x"]))
