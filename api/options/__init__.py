"""The options of ``dynactor serve``, from the command line, the environment and a file."""
