"""One chat template under given variables, with a tokenizer and all that was found out about both."""

from __future__ import annotations

from functools import cached_property

from sft_toolkit.chat.drafts import Drafter
from sft_toolkit.chat.facts import TemplateFacts, template_facts
from sft_toolkit.chat.probes import Probes
from sft_toolkit.chat.template import ChatTemplate
from sft_toolkit.chat.tokens import ChatTokenizer
from sft_toolkit.chat.turn_probes import find_rules


class Fit:
    """What a renderer needs to know of a template before it renders: about a tenth of a second of probing.

    Raises ToolkitError where the template cannot carry an exact mask.
    """

    def __init__(self, template: ChatTemplate, tokenizer: ChatTokenizer, train_empty_think: bool) -> None:
        self.template = template
        self.tokenizer = tokenizer
        self.probes = Probes(template)
        self.rules = find_rules(self.probes.probing, tokenizer.control_text.pattern, train_empty_think)
        self.drafter = Drafter(template, tokenizer.control_text, self.probes, self.rules)

    @cached_property
    def facts(self) -> TemplateFacts:
        return template_facts(self.template, self.tokenizer, self.probes, self.rules)
