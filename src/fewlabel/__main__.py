"""``python -m fewlabel``."""

from fewlabel.cli import main

if __name__ == "__main__":
    main()
