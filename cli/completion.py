"""`kolibri-sft completion`."""

from __future__ import annotations

from typing import Annotated

import typer

from sft_toolkit.choices import Shell
from sft_toolkit.cli.guard import guarded
from sft_toolkit.cli.options import Debug


@guarded
def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell that is to complete.")],
    debug: Debug = False,
) -> None:
    """Print what makes TAB complete in bash, zsh or fish.

    Commands, options, their choices, files and folders. The text is a table of its own: TAB starts no Python. Where it
    goes: bash: ~/.local/share/bash-completion/completions/kolibri-sft; zsh: a file _kolibri-sft in a folder of $fpath;
    fish: ~/.config/fish/completions/kolibri-sft.fish. Write it again after an upgrade.
    """
    from sft_toolkit.cli.completion_scripts import SCRIPTS, completed_commands

    print(SCRIPTS[shell](completed_commands()), end="")
