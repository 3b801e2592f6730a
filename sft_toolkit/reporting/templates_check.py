"""All templates of a tokenizer folder, each checked for the records that it renders."""

from __future__ import annotations

from dataclasses import replace

from sft_toolkit.chat import Renderer
from sft_toolkit.chat.template_files import DEFAULT, TOOL_USE
from sft_toolkit.reporting.findings import Finding, Level
from sft_toolkit.reporting.template_check import findings_of


def template_findings(renderer: Renderer) -> list[Finding]:
    """Findings in the order in which a person would ask.

    Of several templates, those that transformers takes unasked are checked, each under its name.
    """
    if len(renderer.templates) == 1:
        return findings_of(renderer)
    names = [name for name in (DEFAULT, TOOL_USE) if name in renderer.templates]
    findings = [_choice(sorted(renderer.templates), names)]
    for name in names:
        only = findings_of(renderer.narrowed(name), without_tools=name == DEFAULT and TOOL_USE in names)
        findings += [replace(finding, subject=f"{name}: {finding.subject}") for finding in only]
    return findings


def _choice(all_names: list[str], taken: list[str]) -> Finding:
    said = f"{', '.join(all_names)}: "
    if TOOL_USE in taken:
        said += f"{TOOL_USE} takes records that declare tools, "
    others = DEFAULT if DEFAULT in taken else "none"
    level: Level = "ok" if DEFAULT in taken else "warning"
    return Finding(level, "templates", f"{said}{others} takes all others", "`chat_template=NAME` takes one for all")
