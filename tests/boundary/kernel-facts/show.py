# SPDX-License-Identifier: Apache-2.0
# Shows a kernel fact that the simulation rests on, on the kernel that this runs on, under the name that it has in
# src/stop/simulation/facts.ts. As root on a lab host: `show.py NAME`, or `--list` for the names.

import sys

# Each of these brings its facts.
import cgroups  # noqa: F401
import killing  # noqa: F401
import reading  # noqa: F401
from bench import cgroup, clear, facts


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(facts))
        return
    show = facts.get(sys.argv[1] if len(sys.argv) == 2 else "")
    if show is None:
        raise SystemExit(f"usage: {sys.argv[0]} --list | NAME")
    clear()
    cgroup()
    try:
        show()
    finally:
        clear()
    print("so it is")


main()
