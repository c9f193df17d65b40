"""``python -m dynactor``: the command line."""

from dynactor.api.command_line import main

if __name__ == "__main__":
    main()
