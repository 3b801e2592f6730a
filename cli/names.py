"""What options are called below cli/, where that differs from the parameter of the command."""

from __future__ import annotations

CLI_NAMES = {
    "quarantine": "on_error",
    "quarantine_file": "quarantine",
    "part": "shard",
    "shuffle": "no_shuffle",
    "failure_patterns": "failure_pattern",
    "unknown_tool_patterns": "unknown_tool_pattern",
    "invalid_arguments_patterns": "invalid_arguments_pattern",
    "compare": "ab",
    "instruction": "system",
    "template_variables": "template_variable",
}
"""Name of a library's option: name of the parameter of the command."""
