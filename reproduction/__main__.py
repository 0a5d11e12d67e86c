"""``python -m reproduction table2 ...``: the paper's tables and figures."""

from reproduction.cli import main

if __name__ == "__main__":
    main()
