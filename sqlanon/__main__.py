"""`python -m sqlanon`: the program, where its command is not on the path."""

from sqlanon.cli import main

if __name__ == "__main__":
    main()
