"""One chat template under given variables, with a tokenizer and all that was found out about both."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from sft_toolkit.chat.drafts import Drafter
from sft_toolkit.chat.effort_display import EffortDisplay
from sft_toolkit.chat.effort_sentences import EffortSentences
from sft_toolkit.chat.facts import TemplateFacts, template_facts
from sft_toolkit.chat.probe_words import DOCUMENTS
from sft_toolkit.chat.probes import Probes
from sft_toolkit.chat.template import ChatTemplate
from sft_toolkit.chat.tokens import ChatTokenizer
from sft_toolkit.chat.turn_probes import find_rules
from sft_toolkit.errors import ToolkitError


@dataclass(frozen=True, slots=True)
class FitOptions:
    """`train_empty_think`: an empty thinking block that a generation prompt would give is trained nonetheless.
    `tools_in_system`: where the template leaves out declared tools, they are written into the system prompt.
    `effort_sentences` state the effort of a record where the template does not.
    """

    train_empty_think: bool = False
    tools_in_system: bool = False
    effort_sentences: EffortSentences = field(default_factory=EffortSentences)


class Fit:
    """What a renderer needs to know of a template before it renders: about a tenth of a second of probing.

    Raises ToolkitError where the template cannot carry an exact mask.
    """

    def __init__(self, template: ChatTemplate, tokenizer: ChatTokenizer, options: FitOptions, for_tools: bool) -> None:
        """`for_tools`: the template renders only records that declare tools."""
        self.template = template
        self.tokenizer = tokenizer
        self.probes = _probes(template, for_tools)
        self.rules = find_rules(self.probes.probing, tokenizer.control_text.pattern, options.train_empty_think)
        self.effort = EffortDisplay(self.probes.probing, options.effort_sentences)
        self.drafter = Drafter(
            template,
            tokenizer.control_text,
            self.probes,
            self.rules,
            options.tools_in_system,
            options.effort_sentences,
        )

    @cached_property
    def facts(self) -> TemplateFacts:
        return template_facts(self.template, self.tokenizer, self.probes, self.rules)


def _probes(template: ChatTemplate, for_tools: bool) -> Probes:
    """A template that cannot do without documents (`rag`) is asked with one."""
    try:
        return Probes(template, for_tools)
    except ToolkitError:
        if "documents" not in template.reads:
            raise
        return Probes(template.with_variables({"documents": DOCUMENTS, **template.variables}), for_tools)
