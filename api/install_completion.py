"""The command ``dynactor --install-completion``, in its own file because its imports take 7 ms."""

from __future__ import annotations

from cyclopts.completion.install import create_install_completion_command

from dynactor.api.command_line import app

install_completion = create_install_completion_command(app.install_completion, add_to_startup=True)
