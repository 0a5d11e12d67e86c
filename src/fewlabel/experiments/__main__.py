"""``python -m fewlabel.experiments table2 ...``: the same as ``fewlabel reproduce``."""

from fewlabel.experiments.cli import main

if __name__ == "__main__":
    main()
