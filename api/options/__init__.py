"""The options of ``dynactor serve``: collected from the settings that they set, and checked."""
