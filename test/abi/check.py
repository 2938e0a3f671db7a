#!/usr/bin/env python3
"""Checks of the binary interface; CTest calls each by its name.

    check.py symbols LIBRARY          the dynamic symbols equal symbols.txt
    check.py layout PROGRAM           what layout.c prints equals layout.txt
    check.py functions LIBRARY        each function of the headers is exported and the other way round
    check.py needs LIBRARY            soname, needed libraries, never unloaded
    check.py module LIBRARY           a backend module: one symbol, no driver, nothing of libfccl
    check.py level LEVEL OBJECTS      kernels compiled for a level define nothing outside its namespace
    check.py header NAME STANDARD CC  a public header compiles alone, twice, with all warnings

After a change that is meant, `check.py symbols LIBRARY --update` and `check.py layout PROGRAM --update`
rewrite the golden files; a line that goes or changes is a break and bumps the soname.
"""
import ctypes
import difflib
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"


def output(*command):
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


def exported(library):
    """name -> symbol version of each dynamic symbol that `library` defines."""
    symbols = {}
    for line in output("nm", "-D", "--defined-only", library).splitlines():
        kind, name = line.split()[-2:]
        name, _, version = name.partition("@@")
        if kind != "A":
            symbols[name] = version
    return symbols


def dynamic(library, tag):
    return re.findall(rf"\({tag}\).*?\[?([\w.+$/-]+)\]?$", output("readelf", "-dW", library), flags=re.M)


def compare(golden, text, update):
    path = HERE / golden
    if update:
        path.write_text(text)
        return []
    known = path.read_text() if path.exists() else ""
    return list(difflib.unified_diff(known.splitlines(), text.splitlines(), golden, "now", lineterm="", n=0))


def symbols(library, update=""):
    return compare("symbols.txt", "".join(f"{n}@{v}\n" for n, v in sorted(exported(library).items())), update)


def layout(program, update=""):
    return compare("layout.txt", output(program), update)


def functions(library):
    declared = set()
    for header in INCLUDE.glob("fccl/*.h"):
        code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        declared |= set(re.findall(r"^FCCL_API\b[^;{]*?\b(p?fccl\w+)\s*\(", code, flags=re.M))
    loaded = ctypes.CDLL(library)
    public = exported(library)
    wrong = [f"{name}: declared, but not found in the library" for name in sorted(declared) if not hasattr(loaded, name)]
    wrong += [f"{name}: exported, but in no header" for name in sorted(public)
              if name.removeprefix("p") not in declared and name not in declared]
    wrong += [f"{name}: has no alias p{name}" for name in sorted(public) if name.startswith("fccl") and "p" + name not in public]
    return wrong if declared else ["the headers declare no function"]


def only_needs(library, allowed):
    return [f"needs {name}" for name in dynamic(library, "NEEDED") if not re.match(allowed, name)]


def needs(library):
    wrong = only_needs(library, r"lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so|ld-linux")
    if dynamic(library, "SONAME") != ["libfccl.so.0"]:
        wrong.append(f"soname {dynamic(library, 'SONAME')}")
    if dynamic(library, "RUNPATH") + dynamic(library, "RPATH"):
        wrong.append("has a path of the machine that built it")
    if "NODELETE" not in output("readelf", "-dW", library):
        wrong.append("may be unloaded: link with -z nodelete")
    return wrong


def module(library):
    wrong = only_needs(library, r"lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so|ld-linux")
    if set(exported(library)) != {"fcclBackendModule"}:
        wrong.append(f"exports {sorted(exported(library))[:9]}")
    if "NODELETE" not in output("readelf", "-dW", library):
        wrong.append("may be unloaded: link with -z nodelete")
    return wrong


def level(name, objects):
    """A weak symbol of a v4 object that a v2 object also has may win at link time: an illegal instruction
    on an old CPU. So each must carry a namespace of the level, or the instruction set's (Highway)."""
    wrong = []
    spaces = [f"{len(space)}{space}" for space in (name, name + "_wide")]
    for path in objects.split(";"):
        for line in output("nm", "--defined-only", path).splitlines():
            kind, symbol = line.split()[-2:]
            mine = any(space in symbol for space in spaces) or re.search(r"\d+N_[A-Z0-9]+", symbol)
            if kind in "TDBRVWu" and not mine:
                wrong.append(f"{Path(path).name}: {kind} {symbol}")
    return wrong


def header(name, standard, compiler):
    plus = standard.startswith("c++")
    flags = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Wcast-qual -Werror -fsyntax-only".split()
    flags += ["-Wold-style-cast"] if plus else ["-Wstrict-prototypes", "-Wmissing-prototypes", "-Wc++-compat"]
    code = f"#include <fccl/{name}>\n#include <fccl/{name}>\n"
    if name == "fccl.h":  # the initialisers are code too
        code += "fcclConfig config = FCCL_CONFIG_INITIALIZER;\nfcclFusedArgs args = FCCL_FUSED_ARGS_INITIALIZER;\n"
    command = [compiler, f"-std={standard}", *flags, f"-I{INCLUDE}", "-x", "c++" if plus else "c", "-"]
    done = subprocess.run(command, input=code, text=True, capture_output=True)
    return done.stderr.splitlines() if done.returncode or done.stderr else []


def main():
    checks = {f.__name__: f for f in (symbols, layout, functions, needs, module, level, header)}
    if len(sys.argv) < 3 or sys.argv[1] not in checks:
        sys.exit(__doc__)
    wrong = checks[sys.argv[1]](*sys.argv[2:])
    print("\n".join(wrong) if wrong else "ok")
    sys.exit(1 if wrong else 0)


main()
