"""How a teacher is reached: its address, its key, its template."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sft_toolkit.cli.settings import ENV_PREFIX
from sft_toolkit.errors import ToolkitError, UsageError

if TYPE_CHECKING:
    from sft_toolkit.teachers.teacher import Teacher

KEY_VARIABLE = f"{ENV_PREFIX}_API_KEY"
LOCAL = "local:"


def open_teacher(
    teacher: str, timeouts: Any, api_key_file: Path | None, tokenizer: Path | None, streamed: bool
) -> Teacher:
    if teacher.startswith(LOCAL):
        from sft_toolkit.teachers.local_teacher import LocalTeacher

        return LocalTeacher(teacher.removeprefix(LOCAL))
    from sft_toolkit.teachers.http_teacher import HttpTeacher

    template = None
    if tokenizer is not None:
        from sft_toolkit.teachers.rendering import TeacherTemplate

        template = TeacherTemplate(tokenizer)
    return HttpTeacher(teacher, timeouts, key=_api_key(api_key_file), template=template, streamed=streamed)


def _api_key(file: Path | None) -> str | None:
    """The key, from the file or the environment. Raises ToolkitError where the file holds none, or what is no key."""
    if file is None:
        where, key = KEY_VARIABLE, os.environ.get(KEY_VARIABLE, "").strip()
        if not key:
            return None
    else:
        where, key = str(file), _text_of(file).strip()
    if not (key and key.isascii() and key.isprintable()) or " " in key:
        raise ToolkitError(f"{where}: holds no key", "one line with the key and nothing else")
    return key


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise ToolkitError(f"{file}: cannot be read", "--api-key-file takes a text file with the key") from fault


def require_endpoint(teacher: str, model: str) -> None:
    parts = urlsplit(teacher)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--teacher {teacher.partition('@')[2] or teacher}: not a URL", "as in https://host/v1")
    if parts.username or parts.password or parts.query:
        raise UsageError("--teacher: a URL is no place for keys", f"use --api-key-file or {KEY_VARIABLE}")
    require_model(model)


def require_model(model: str) -> None:
    if not model:
        raise UsageError("--model is missing", "name the model as the endpoint does")
