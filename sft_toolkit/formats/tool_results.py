"""Results of tools inside messages, and what no text can stand for: pictures, sound, video, files."""

from __future__ import annotations

from typing import Any

from sft_toolkit.conversation import Message
from sft_toolkit.errors import RecordError
from sft_toolkit.formats.calls import call_id
from sft_toolkit.json_text import encode_text

MEDIA = ("image", "images", "video", "videos", "audio", "audios")
MEDIA_KEYS = frozenset({*MEDIA, "image_url", "input_image", "input_audio", "input_file", "file", "document"})
MEDIA_KEYS |= {"inlineData", "inline_data", "fileData", "file_data", "video_url", "audio_url"}
TEXT_TYPES = ("text", "input_text", "output_text")
BARE_TEXT_KEYS = frozenset({"text", "type", "thought", "thoughtSignature", "thought_signature"})


def refuse_media(kind: str | None, part: dict[str, Any], what: str) -> None:
    """Raises RecordError for a part, by its type or by a key that is not empty."""
    media = kind if kind in MEDIA_KEYS else next((key for key in held_in(part) if key in MEDIA_KEYS), None)
    if media is not None:
        reason = "image_part" if "image" in media else "unsupported_part"
        raise RecordError(reason, f"has a {what} of type {media}", "only text can be trained here: drop such records")


def held_in(part: dict[str, Any]) -> dict[str, Any]:
    """What a part holds: neither null nor an empty list or object."""
    return {key: value for key, value in part.items() if value is not None and value != [] and value != {}}


def result_message(held: dict[str, Any], content: Any, used: set[str]) -> Message:
    """A tool message; flags such as is_error and status stay with it."""
    identity = call_id(held)
    name = held.get("name")
    used = {*used, "call_id", "toolUseId", "tool_use_id", "id", *(("name",) if isinstance(name, str) else ())}
    return Message(
        role="tool",
        content=result_text(content),
        tool_call_id=identity,
        name=name if isinstance(name, str) and name else None,
        extra={key: value for key, value in held.items() if key not in used and value is not None},
    )


def result_text(content: Any) -> str | None:
    """What a tool returned, as text: text parts are joined, any other list or object is JSON text."""
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list) and content and all(isinstance(part, dict) for part in content):
        texts = [_text_of(part) for part in content]
        if all(text is not None for text in texts):
            return "".join(text for text in texts if text is not None)
    return encode_text(content)


def _text_of(part: dict[str, Any]) -> str | None:
    held = held_in(part)
    kind = held.get("type") if isinstance(held.get("type"), str) else None
    if kind in MEDIA_KEYS or len(held) == 1:
        refuse_media(kind, held, "result")
    if held.keys() == {"json"}:
        return encode_text(held["json"])
    is_text = isinstance(held.get("text"), str) and (kind in TEXT_TYPES or held.keys() <= BARE_TEXT_KEYS)
    return held["text"] if is_text else None
