"""``python -m fewlabel``."""

from fewlabel.cli.app import main

if __name__ == "__main__":
    main()
