"""A view as one HTML file that needs nothing else: readable in light and dark, whatever the text holds."""

from __future__ import annotations

from collections.abc import Iterator

import jinja2

from sft_toolkit.reporting.view import Piece, View
from sft_toolkit.visible import one_line, visible

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{ view.title | one_line }}</title>
<style>
:root { color-scheme: light dark; --text: #1c1f23; --page: #fff; --quiet: #69707a; --line: #d9dde2;
  --loss: #d3f2d8; --loss-rule: #2f9e44; --masked: #b35c00 }
@media (prefers-color-scheme: dark) { :root { --text: #dfe3e8; --page: #16181b; --quiet: #8b939e; --line: #363b42;
  --loss: #17492a; --loss-rule: #51cf66; --masked: #ffb454 } }
body { margin: 2rem auto; padding: 0 1rem; max-width: 60rem; color: var(--text); background: var(--page);
  font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.3rem; overflow-wrap: anywhere }
h2 { font-size: .95rem; margin: 0 0 .3rem; overflow-wrap: anywhere }
h2 small { font-size: 1em; font-weight: normal; color: var(--quiet) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1.2rem; margin: 0 }
dt { color: var(--quiet) }
dd { margin: 0; overflow-wrap: anywhere }
section { border-left: 3px solid var(--line); padding-left: .9rem; margin: 1.4rem 0 }
section.trained { border-color: var(--loss-rule) }
section.masked { border-color: var(--masked) }
.masked small, .warning { color: var(--masked) }
pre { margin: 0; font: 13px/1.55 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere }
mark { color: inherit; background: var(--loss); border-radius: 2px }
.annotation { color: var(--quiet) }
.apart > * { box-shadow: inset 1px 0 var(--quiet) }
</style>
<h1>{{ view.title | one_line }}</h1>
<dl>
{% for name, value in view.facts %}
<dt>{{ name }}<dd>{{ value | one_line }}
{% endfor %}
</dl>
{% for warning in view.warnings %}
<p class="warning">warning: {{ warning }}</p>
{% endfor %}
<p><mark>marked text</mark> carries loss{% if view.tokens_apart %}; a line begins each token{% endif %}</p>
{% for section in view.sections %}
<section class="{{ section.standing }}">
<h2>{{ section.title | one_line }} <small>{% for remark in section.remarks %}· {{ remark }} {% endfor %}</small></h2>
<pre{% if view.tokens_apart %} class="apart"{% endif %}>
{% for piece in section.pieces %}{% set tag = "mark" if piece.trained else "span" -%}
<{{ tag }}{% if piece.annotation %} class="annotation"{% endif %}>{{ piece | shown(view.tokens_apart) }}</{{ tag }}>
{%- endfor %}
</pre>
</section>
{% endfor %}
</html>
"""


def html_page(view: View) -> Iterator[str]:
    """The page, in parts."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True)
    environment.filters.update(one_line=one_line, shown=_shown)
    return environment.from_string(_PAGE).generate(view=view)


def _shown(piece: Piece, tokens_apart: bool) -> str:
    """Line breaks that carry loss, or are tokens, are seen."""
    text = visible(piece.text)
    return text.replace("\n", "↵\n") if piece.trained or tokens_apart else text
