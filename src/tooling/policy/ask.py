# SPDX-License-Identifier: Apache-2.0
# Runs inside a tree (tree.ts): puts each question of a file to sesearch, which would otherwise read the whole policy again
# for each. Prints the question after "? ", then what sesearch prints.
import runpy
import shlex
import sys

import setools


class ReadPolicy(setools.SELinuxPolicy):
    """Reads its rules once, and not for each question."""

    rules = None

    def terules(self):
        if self.rules is None:
            self.rules = list(super().terules())
        return iter(self.rules)


policy = ReadPolicy(sys.argv[1])
setools.SELinuxPolicy = lambda *_path: policy
for question in open(sys.argv[2], encoding="ascii").read().splitlines():
    print("? " + question, flush=True)
    sys.argv = ["sesearch", *shlex.split(question)]
    try:
        runpy.run_path("/usr/bin/sesearch", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    sys.stdout.flush()
