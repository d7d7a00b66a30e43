# SPDX-License-Identifier: Apache-2.0
"""python -m vernier: the command `vernier`."""
import os
import sys

from ._library import command_path


def main() -> None:
    path = command_path()
    try:
        os.execvp(path, ["vernier", *sys.argv[1:]])
    except OSError as why:
        sys.exit(f"python -m vernier: {path} cannot be run: {why.strerror}; it needs a wheel that carries the "
                 "command, or the command in $PATH")


if __name__ == "__main__":
    main()
