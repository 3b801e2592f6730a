"""Parameters of a tool as a flat object, as xLAM and others write them, brought to a JSON Schema.

{"city": {"type": "str", "description": "City"}, "unit": {"type": "str, optional", "default": "C"}}
"""

from __future__ import annotations

import re
from typing import Any

_OPTIONAL = re.compile(r"optional\b|.*(?:[,(|]\s*(?:optional|none|default)\b|\bor\s+none\b)", re.IGNORECASE)
_SAYS_WHETHER_REQUIRED = "required"


def is_flat(parameters: Any) -> bool:
    """Whether every value is an object and the whole no schema: there `type` is text and `properties` hold schemas."""
    if not isinstance(parameters, dict) or not parameters:
        return False
    if not all(isinstance(value, dict) for value in parameters.values()):
        return False
    properties = parameters.get("properties")
    is_schema = properties is not None and not isinstance(properties.get("type"), str)
    return not is_schema and not any(name.startswith("$") for name in parameters)


def as_schema(parameters: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of flat parameters, their types as they are written.

    Required is what its own flag says, or else what has no default and is not optional by its type.
    """
    required = [name for name, declared in parameters.items() if _is_required(declared)]
    return {"type": "object", "properties": {**parameters}, "required": required}


def _is_required(declared: dict[str, Any]) -> bool:
    flag = declared.get(_SAYS_WHETHER_REQUIRED)
    if isinstance(flag, bool):
        return flag
    written = declared.get("type")
    return "default" not in declared and not (isinstance(written, str) and _OPTIONAL.match(written.strip()))
