#!/usr/bin/env python3
"""Reads what hip_check.sh compiled: `hip_check.py [--version 22] BUILD < PLAN`, a line of PLAN is
"architecture entry". Every finding is an error; the closing lines tell what was seen.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys

# Kernels of one entry file. k0: seven algorithms, for two and for any number of ranks; others: those
# that carry the load, for 2, 4 and 8 ranks; collectives: five operations by two protocols.
EXPECTED = {"k0": 14, "k1": 7, "k2": 7, "k4": 7, "collective": 10}
THREADS = {"k1": 1024}
ANY_RANKS = re.compile(r"(7Lamport|2LL)ELi0E")  # holds a pack of each of the most ranks: in scratch

NEAREST_EVEN = {"round_mode_32": "0", "round_mode_16_64": "0", "denorm_mode_32": "3", "denorm_mode_16_64": "3"}


def notes_of(tool, path):
    """{kernel: {key: value}} of the code object's metadata."""
    kernels, fields = {}, {}
    text = subprocess.run([tool, "--notes", path], check=True, capture_output=True, text=True).stdout
    for line in text.split("amdhsa.kernels:")[-1].splitlines():
        if line.startswith("  - "):
            fields = {}
        found = re.match(r"^ {2}[- ] \.(\w+): +(\S+)$", line)
        if found:
            fields[found.group(1)] = found.group(2)
            if found.group(1) == "name":
                kernels[found.group(2)] = fields
    return kernels


def code_of(tool, path):
    """{kernel: [instruction, ...]}"""
    code, instructions = {}, None
    command = [tool, "-d", "--no-show-raw-insn", "--no-leading-addr", path]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        head = re.match(r"^(?:[0-9a-f]+ )?<(.*)>:$", line)
        if head:
            instructions = code.setdefault(head.group(1), [])
        elif instructions is not None and line.strip():
            instructions.append(re.sub(r"\s*//.*", "", line).strip())
    return code


def modes_of(tool, path):
    """{kernel: the words of its descriptor on rounding and subnormals}"""
    modes, kernel = collections.defaultdict(dict), None
    command = [tool, "-D", "-j", ".rodata", path]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        words = line.split()
        if words[:1] == [".amdhsa_kernel"]:
            kernel = words[1]
        elif kernel and re.match(r"\.amdhsa_float_(round|denorm)_mode_", line.strip()):
            modes[kernel][words[0].removeprefix(".amdhsa_float_")] = words[1]
    return modes


def scope_of(instruction):
    bits = instruction.split()
    return "system" if "sc0" in bits and "sc1" in bits else "half" if "sc0" in bits or "sc1" in bits else "plain"


def longest_poll(instructions):
    """Most 8-byte polls with no wait and no branch between them."""
    most = run = 0
    for instruction in instructions:
        opcode = instruction.split()[0]
        if (opcode, scope_of(instruction)) == ("global_load_dwordx2", "system"):
            run += 1
            most = max(most, run)
        elif "vmcnt" in instruction or opcode.startswith("s_cbranch"):
            run = 0
    return most


def count(instructions):
    """How often each kind of access is there: (opcode, scope)."""
    seen = collections.Counter(longest_poll=longest_poll(instructions))
    for at, instruction in enumerate(instructions):
        opcode = instruction.split()[0]
        scope = scope_of(instruction)
        seen[opcode.split("_")[0]] += 1
        seen[opcode, scope] += 1
        if opcode.startswith("global_atomic") and "sc1" not in instruction.split():
            seen["narrow atomic"] += 1
        if opcode.startswith(("global_load", "global_store")) and scope == "half":
            seen["half a scope"] += 1
        # Assembly: the two cycles in which the registers of a wide store must not change.
        if (opcode, scope) == ("global_store_dwordx4", "system") and instructions[at + 1:at + 2] != ["s_nop 1"]:
            seen["store without its two cycles"] += 1
    return seen


def findings(rows, name, notes, mode, seen):
    if mode != NEAREST_EVEN:
        yield f"the mode of arithmetic is {mode}"
    if notes["wavefront_size"] != "64" or notes["max_flat_workgroup_size"] != str(THREADS.get(rows, 512)):
        yield "waves of 64 and the blocks of device/entry/gpu_shape.h"
    if notes["vgpr_spill_count"] != "0":
        yield f"{notes['vgpr_spill_count']} vector registers are spilled"
    scratch = int(notes["private_segment_fixed_size"])
    if scratch > 0 and not ANY_RANKS.search(name):
        yield f"{scratch} bytes of scratch"
    if notes.get("uses_dynamic_stack") == "true" or seen["s_swappc_b64", "plain"]:
        yield "a call: everything is inlined"
    for what, opcode, scope in (("16-byte stores to peers", "global_store_dwordx4", "system"),
                                ("8-byte polls", "global_load_dwordx2", "system"),
                                ("16-byte loads of rows", "global_load_dwordx4", "plain"),
                                ("16-byte stores of rows", "global_store_dwordx4", "plain"),
                                ("clocks", "s_memrealtime", "plain"), ("pauses", "s_sleep", "plain")):
        if not seen[opcode, scope]:
            yield f"no {what} ({opcode}, {scope})"
    for what in ("half a scope", "narrow atomic", "store without its two cycles", "flat"):
        if seen[what]:
            yield f"{what}: {seen[what]}"
    if any(opcode[0] == "buffer_inv" for opcode in seen if isinstance(opcode, tuple)):
        yield "a cache is invalidated"
    ranks = re.search(r"7LamportELi([48])E", name)
    if ranks and seen["longest_poll"] < 2 * int(ranks.group(1)):
        yield f"a poll has {seen['longest_poll']} loads under way, not two of each rank"
    written_back = sum(n for opcode, n in seen.items() if opcode[0] == "buffer_wbl2")
    if written_back != 1:
        yield f"caches are written back in {written_back} places, not in one"


def check(version, build, arch, entry):
    rows = entry.split("_")[-1] if entry.startswith("hip_norm") else "collective"
    path = f"{build}/{arch}/{entry}.o"
    notes = notes_of(f"llvm-readelf-{version}", path)
    code = code_of(f"llvm-objdump-{version}", path)
    modes = modes_of(f"llvm-objdump-{version}", path)
    found = []
    if len(notes) != EXPECTED[rows]:
        found.append(f"{path}: {len(notes)} kernels, not {EXPECTED[rows]}")
    for name, fields in notes.items():
        told = findings(rows, name, fields, modes[name], count(code[name]))
        found += [f"{path}: {name}: {text}" for text in told]
    return arch, notes, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", default="22")
    parser.add_argument("build")
    options = parser.parse_args()
    plan = [line.split() for line in sys.stdin]
    kernels, broken = collections.defaultdict(list), []
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        done = [pool.submit(check, options.version, options.build, *job) for job in plan]
        for arch, notes, found in (future.result() for future in done):
            kernels[arch] += notes.values()
            broken += found
    for text in broken:
        print(text)
    for arch, all_notes in sorted(kernels.items()):
        most = max(int(n["vgpr_count"]) for n in all_notes)
        scratch = sum(n["private_segment_fixed_size"] != "0" for n in all_notes)
        print(f"hip_check: {arch}: {len(all_notes)} kernels, at most {most} vector registers, none spilled; "
              f"{scratch} for any number of ranks use scratch")
    print(f"hip_check: {len(broken)} findings")
    return 1 if broken or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
