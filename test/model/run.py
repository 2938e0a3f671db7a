#!/usr/bin/env python3
"""Checks a model of the protocols exhaustively with spin: every right configuration must hold in all
states, and every wrong variant must fail, or the model could not see the error it is there for.

    run.py MODEL [SCRATCH_FOLDER]     mailbox, flags or doorbell; ends with 77 without spin or gcc
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = 77
ONESHOT, HEADERS, TWOSHOT, BROADCAST = 1, 2, 4, 8  # kinds of calls of mailbox.pml; flags.pml has no HEADERS

# What is said, macros. ROWS, TILES and BLOCKS are the largest of a call; calls and grids are of all mixes.
RIGHT = {
    "mailbox": [
        ("2 ranks, 2 blocks, one-shot, calls for ever", "BLOCKS=2"),
        ("2 ranks, 2 blocks, one-shot and no rows, for ever", f"BLOCKS=2 ROWS=1 KINDS={ONESHOT + HEADERS}"),
        ("3 ranks, one-shot and no rows, for ever", f"RANKS=3 BLOCKS=1 ROWS=1 KINDS={ONESHOT + HEADERS}"),
        ("3 ranks, one-shot and two-shot, for ever", f"RANKS=3 BLOCKS=1 KINDS={ONESHOT + TWOSHOT}"),
        ("3 ranks, 2 blocks, one-shot of 2 rows, 4 calls", "RANKS=3 BLOCKS=2 CALLS=4 ALWAYS_ALL=1"),
        ("2 ranks, all kinds, 5 calls", f"BLOCKS=1 CALLS=5 KINDS={ONESHOT + HEADERS + TWOSHOT + BROADCAST}"),
        ("3 ranks, two-shot and broadcast, 5 calls", f"RANKS=3 BLOCKS=1 ROWS=1 CALLS=5 KINDS={TWOSHOT + BROADCAST}"),
        ("2 ranks, stores in flight, for ever", "BLOCKS=1 ROWS=1 IN_FLIGHT"),
        ("2 ranks, stores in flight, 5 calls", "BLOCKS=1 CALLS=5 IN_FLIGHT"),
        ("2 ranks, 2 blocks, stores in flight, 4 calls", "BLOCKS=2 ROWS=1 CALLS=4 IN_FLIGHT"),
        ("2 ranks, packs that tear, stores in flight, 4 calls", "BLOCKS=1 ROWS=1 WORDS=2 CALLS=4 IN_FLIGHT"),
        ("two generations are exactly tight", "BLOCKS=2 ROWS=1 GENS=2 SLACK=0"),
        ("two generations are exactly tight, stores in flight", "BLOCKS=1 GENS=2 SLACK=0 CALLS=4 IN_FLIGHT"),
    ],
    "flags": [
        ("2 ranks, 2 blocks, one-shot, 5 calls", "BLOCKS=2 CALLS=5"),
        ("3 ranks, one-shot, 4 calls", "RANKS=3 BLOCKS=1"),
        ("2 ranks, 2 blocks, all kinds, 3 calls", "BLOCKS=2 CALLS=3 KINDS=7"),
        ("2 ranks, all kinds, 5 calls", "BLOCKS=1 CALLS=5 KINDS=7"),
        ("3 ranks, two-shot and broadcast, 4 calls", "RANKS=3 BLOCKS=1 KINDS=6"),
        ("2 ranks, 2 blocks, stores in flight, 4 calls", "BLOCKS=2 IN_FLIGHT"),
        ("2 ranks, two-shot, stores in flight, 4 calls", "BLOCKS=1 KINDS=2 IN_FLIGHT"),
        ("3 ranks, roll call, 5 calls", "RANKS=3 BLOCKS=1 CALLS=5 KINDS=8"),
        ("2 ranks, 2 blocks, roll call and all others, 3 calls", "BLOCKS=2 CALLS=3 KINDS=15"),
        ("2 ranks, roll call and one-shot, stores in flight, 4 calls", "BLOCKS=1 TILES=1 KINDS=9 IN_FLIGHT"),
    ],
    "doorbell": [
        ("2 peers, 2 sleepers, 2 rounds", ""),
        ("1 peer, 2 sleepers, 4 rounds", "PEERS=1 ROUNDS=4"),
    ],
}
# What is wrong, macros, how it must fail.
RACE, STALE, STUCK = r"assertion violated .*==0\)", r"assertion violated", r"invalid end state"
WRONG = {
    "mailbox": [
        ("two generations, re-arms written back a launch later", "BLOCKS=1 GENS=2", RACE),
        ("the same, stores in flight", "BLOCKS=1 GENS=2 CALLS=5 IN_FLIGHT", f"{STUCK}|{STALE}"),
        ("one generation", "BLOCKS=1 GENS=1 SLACK=0", RACE),
        ("a forgotten re-arm", "BLOCKS=1 FORGOTTEN_REARM", RACE),
        ("a forgotten re-arm, stores in flight", "BLOCKS=1 CALLS=5 FORGOTTEN_REARM IN_FLIGHT", STALE),
        ("the line advances at the first block to enter", "BLOCKS=2 ADVANCE_FIRST", STALE),
        ("the base of a generation depends on the shape", "BLOCKS=1 BASE_FROM_SHAPE", RACE),
        ("one word stands for the pack", "BLOCKS=1 ROWS=1 WORDS=2 CALLS=4 FIRST_WORD_ONLY=1 IN_FLIGHT", STALE),
        ("two-shot: a rank without rows does not wait", f"RANKS=3 BLOCKS=1 NO_FINAL_WAIT KINDS={TWOSHOT}", RACE),
        ("broadcast: the root waits for nobody", f"RANKS=3 BLOCKS=1 CALLS=5 OPEN_BROADCAST KINDS={BROADCAST}", RACE),
    ],
    "flags": [
        ("one staging generation", "BLOCKS=1 STAGINGS=1", STALE),
        ("epochs compared with <, which breaks at the wrap", "BLOCKS=1 COMPARE_LESS", STALE),
        ("epochs compared with ==", "BLOCKS=1 COMPARE_EQUAL", STUCK),
        ("the arrival before the data", "BLOCKS=1 PUBLISH_FIRST", STALE),
        ("an arrival that is no release", "BLOCKS=1 NO_RELEASE IN_FLIGHT", STALE),
        ("the line advances at the first block to enter", "BLOCKS=2 ADVANCE_FIRST", STALE),
        ("a pad of a block instead of a tile", "BLOCKS=2 PAD_OF_BLOCK", f"{STALE}|{STUCK}"),
        ("two-shot: the second hop is read unasked", "BLOCKS=1 KINDS=2 NO_SECOND_WAIT", STALE),
        ("broadcast: the root waits for nobody", "RANKS=3 BLOCKS=1 KINDS=4 OPEN_BROADCAST", STALE),
        ("roll call: the result is told before it is there", "BLOCKS=1 KINDS=8 TOLD_FIRST", STALE),
        ("roll call: the count goes on", "RANKS=3 BLOCKS=1 KINDS=8 COUNT_GOES_ON", f"{STALE}|{STUCK}"),
    ],
    "doorbell": [
        ("sleepers are looked for before the ring", "SLEEPERS_FIRST", STUCK),
        ("the ring before the data", "RING_FIRST", STUCK),
        ("the data is looked at before the doorbell", "LOOK_FIRST", STUCK),
    ],
}
CHECKER = ["-O1", "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=1500"]
SEARCH = ["-m3000000", "-w22"]  # depth; bits of the table, which costs 8 bytes for each


def check(model, macros, folder):
    """All that spin says about the model under these macros."""
    flags = [f"-D{macro}" for macro in macros.split()]
    output = ""
    for command in (["spin", "-a", *flags, str(HERE / f"{model}.pml")], ["gcc", *CHECKER, "-o", "pan", "pan.c"],
                    ["nice", "-n", "5", "./pan", *SEARCH]):
        done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output += done.stdout
        if done.returncode != 0 or "error:" in done.stdout and command[0] == "spin":
            output += f"\n{command[0]} ended with {done.returncode}\n"
            break
    return output


def verdict(output):
    """What went wrong in the model, or "": all states hold. None: the search was not exhaustive."""
    found = re.search(r"^pan:\d+: (.*) \(at depth", output, re.M)
    if found:
        return found.group(1)
    complete = re.search(r"errors: 0\n", output) and not re.search(
        r"max search depth too small|MEMLIM|out of memory|not completed|ended with", output)
    return "" if complete else None


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in RIGHT:
        sys.exit(__doc__)
    model = sys.argv[1]
    missing = [tool for tool in ("spin", "gcc") if shutil.which(tool) is None]
    if missing:
        print(f"skipped: {' and '.join(missing)} not found (tools/setup.sh ci installs them)")
        sys.exit(SKIPPED)
    bad = 0
    cases = [(*case, None) for case in RIGHT[model]] + WRONG[model]
    for what, macros, how in cases:
        with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
            output = check(model, macros, folder)
            found = verdict(output)
            states = re.search(r"([\d.e+]+) states, stored", output)
            states = f"{float(states.group(1)):>9.0f} states" if states else " " * 16
            good = found == "" if how is None else bool(found) and re.search(how, found) is not None
            said = "holds" if found == "" else "not exhaustive" if found is None else f"fails: {found[:60]}"
            print(f"{'ok   ' if good else 'WRONG'} {'right' if how is None else 'wrong'}  {states}  {what}: {said}",
                  flush=True)
            if not good:
                bad += 1
                trail = subprocess.run(["spin", "-t", "-p", *[f"-D{m}" for m in macros.split()],
                                        str(HERE / f"{model}.pml")], cwd=folder, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout if found else output
                print("\n".join(trail.splitlines()[-60:]))
    sys.exit(1 if bad else 0)


main()
