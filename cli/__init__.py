"""The command line. More than 20 modules, because each subcommand has its own, and so has each group of options."""
