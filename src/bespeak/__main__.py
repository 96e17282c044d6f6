"""`python -m bespeak` is the `bespeak` command."""

from bespeak.cli import main

if __name__ == "__main__":
    main()
