#!/usr/bin/env python3
"""The project's laws that a machine can check: `python3 test/lint/rules.py [--no-compile]`.

Each law is a function that yields (file, line, text). They look at code with comments and strings
blanked out, so prose may speak of what code may not do. Headers are also compiled alone, twice in one
unit. Files over 400 lines are listed, as a hint and not as an error.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = {".h", ".cc", ".cu", ".hip", ".c", ".def"}

# Folders of src/ from the top down. A file may include its own layer and those below it, and the
# folders of one layer must not form a cycle.
LAYERS = [["api"], ["ops"], ["comm"], ["select", "memory", "plugin"], ["topology", "bootstrap", "backend"], ["base"]]
LEVEL = {folder: level for level, folders in enumerate(LAYERS) for folder in folders}


def blank(text, strings=True):
    """`text` without comments (and strings), every line where it was."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"(\w*)\((?:.*?)\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''

    def replace(match):
        found = match.group(0)
        if not found.startswith("/") and not strings:
            return found
        return '""' if not found.startswith("/") and "\n" not in found else re.sub(r"[^\n]", " ", found)

    return re.sub(pattern, replace, text, flags=re.S)


class Source:
    def __init__(self, path):
        self.path = path
        self.name = path.relative_to(ROOT).as_posix()
        self.text = path.read_text()
        self.code = blank(self.text)
        self.parts = self.name.split("/")

    def under(self, *folders):
        return any(self.name == f or self.name.startswith(f.rstrip("/") + "/") for f in folders)

    def is_vendor(self):
        """The suffix (prefix in device/entry) says that a file belongs to one vendor, or to all of GPUs."""
        return bool(re.search(r"(_|\b)(cuda|hip|gpu)(_|\.|/)", self.name)) or self.path.suffix in (".cu", ".hip")

    def grep(self, pattern, text=None):
        for match in re.finditer(pattern, self.code if text is None else text, flags=re.M):
            yield match.string.count("\n", 0, match.start()) + 1, match


def find(sources, pattern, say, where, unless=lambda s: False):
    for source in sources:
        if where(source) and not unless(source):
            for line, match in source.grep(pattern):
                yield source.name, line, f"{match.group(0).strip()}: {say}"


def in_product(source):
    return source.under("src", "device")


def one_getenv(sources):
    return find(sources, r"\b(secure_)?getenv\b", "settings come from Config; getenv stands in src/base/config.cc only",
                in_product, lambda s: s.name == "src/base/config.cc")


def clean_guest(sources):
    yield from find(sources, r"(?<![\w.>])(?:\b(?:exit|_exit|_Exit|quick_exit|atexit)\s*\(|(?:std)?::(?:abort|terminate)\b)", "the library never ends its host",
                    in_product)
    yield from find(sources, r"\b(printf|puts|putchar|vprintf|perror)\s*\(|\bstd::(cout|cerr|clog)\b|\bstdout\b",
                    "the library never prints", in_product)
    yield from find(sources, r"\b(signal|sigaction)\s*\(", "the library installs no signal handler", in_product)
    yield from find(sources, r"\bthrow\b(?!\s*\()", "we throw nothing", in_product)
    yield from find(sources, r"\batomic_thread_fence\b", "TSan does not see fences: release stores and acquire loads", in_product,
                    lambda s: s.is_vendor())


def close_on_exec(sources):
    opening = r"\b(socket|accept4?|memfd_create|eventfd|epoll_create1?|pipe2?|timerfd_create|inotify_init1?|socketpair|open|openat|fopen)\s*\("
    for source in sources:
        if not in_product(source):
            continue
        code = blank(source.text, strings=False)
        for line, match in source.grep(r"(?:(?<![\w.>:])|(?<=[^\w]::))" + opening, code):
            statement = re.split(r"[;{}]", code[match.start():match.start() + 600])[0]
            if match.group(1).startswith("open") and "O_" not in statement:
                continue  # a function of ours
            closes = "CLOEXEC" in statement or (match.group(1) == "fopen" and re.search(r'"[rwab+]*e"', statement))
            if not closes:
                yield source.name, line, f"{match.group(1)}: descriptors are CLOEXEC"
        for line, match in source.grep(r"(?<!\w)::(send|sendmsg)\s*\(|(?<![\w:.>])(send|sendmsg)\s*\(\s*\w*(fd|socket)", code):
            statement = re.split(r"[;{}]", code[match.start():match.start() + 600])[0]
            if "MSG_NOSIGNAL" not in statement:
                yield source.name, line, "send: MSG_NOSIGNAL"


HOST_DEVICE_MARK = "device/layout/limits.h"  # what host and kernels share carries the one mark of device compilers


def vendor_words(sources):
    words = r"\b(cuda[A-Z]\w+|hip[A-Z]\w+|cu(Mem|Multicast|Device|Ctx|Stream|Launch)[A-Z]\w*|__CUDA\w*|__HIP\w*|__nv_\w+|rsmi_\w+|nvml[A-Z]\w+)"
    yield from find(sources, words, "vendor names stand in src/backend and device/dialect only", in_product,
                    lambda s: s.under("src/backend", "device/dialect", HOST_DEVICE_MARK) or s.is_vendor())
    yield from find(sources, r"(\b_mm\d*_\w+|\b__builtin_ia32_\w+|\b(__)?asm(__)?\b\s*(volatile|\())",
                    "asm and intrinsics stand in device/dialect only", in_product,
                    lambda s: s.under("device/dialect", "device/algo/special"))
    yield from find(sources, r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*(__CUDA|__HIP|__NVCC|__AMDGCN|__GFX)", "#if on a vendor stands in device/dialect only",
                    in_product, lambda s: s.under("device/dialect", HOST_DEVICE_MARK))


def one_kernel_source(sources):
    """What CUDA has, HIP has: each word of the dialect, each entry file."""
    names = {s.name for s in sources}
    for name in sorted(names):
        twin = re.sub(r"^device/dialect/(\w+)_cuda\.h$", r"device/dialect/\1_hip.h", name)
        twin = re.sub(r"^device/entry/cuda_(\w+)\.(cu$|h$)", lambda m: f"device/entry/hip_{m[1]}.{'hip' if m[2] == 'cu' else 'h'}", twin)
        if twin not in names:
            yield name, 1, f"has no {twin}"


def unfinished(sources):
    for source in sources:
        for line, match in source.grep(r"\b(TODO|FIXME|XXX|HACK)\b", source.text):
            yield source.name, line, f"{match.group(0)}: finish it, or say it in an issue"


def layers(sources):
    edges = {}
    for source in sources:
        if not source.under("src", "device", "tools", "plugins"):
            continue
        for line, match in source.grep(r'^\s*#\s*include\s+"([^"]+)"', blank(source.text, strings=False)):
            target = match.group(1)
            folder = target.split("/")[0]
            if source.parts[0] == "device":
                if folder != "device":
                    yield source.name, line, f"device/ includes nothing from outside, but {target}"
            elif source.parts[0] in ("tools", "plugins"):
                if folder in LEVEL or folder in ("src", "device"):
                    yield source.name, line, f"{source.parts[0]}/ uses include/ only, but {target}"
            elif folder in LEVEL:
                own = source.parts[1]
                if LEVEL[folder] < LEVEL[own]:
                    yield source.name, line, f"{own} must not include {target}: it lies above"
                elif folder != own:
                    edges.setdefault(own, {}).setdefault(folder, (source.name, line))
            elif folder == "device":
                if source.parts[1] != "backend" and not target.startswith(("device/layout/", "device/types/")):
                    yield source.name, line, f"{source.parts[1]} must not include {target}"
            elif (ROOT / "src" / source.parts[1] / target).exists():
                yield source.name, line, f"include paths begin at src/: {source.parts[1]}/{target}"
    for one in edges:
        for other in edges[one]:
            if one < other and one in edges.get(other, {}):
                yield *edges[one][other], f"{one} and {other} include each other"


def head_prose(sources):
    for source in sources:
        first = source.text.lstrip().splitlines()[0] if source.text.strip() else ""
        told_in_header = source.path.suffix == ".cc" and source.path.with_suffix(".h").exists()
        if source.under("src", "device", "include", "tools", "plugins") and not told_in_header and not first.startswith(("//", "/*")):
            yield source.name, 1, "a file begins with prose: what it is for, who calls it, what it keeps"


def variables_in_readme(_):
    table, readme = ROOT / "src/base/config.def", ROOT / "README.md"
    if not table.exists() or not readme.exists():
        return
    known = readme.read_text()
    for line, text in enumerate(table.read_text().splitlines(), 1):
        match = re.match(r"FCCL_VARIABLE\(\w+,\s*\w+,\s*(\w+),", text)
        if match and f"FCCL_{match.group(1)}" not in known:
            yield "src/base/config.def", line, f"FCCL_{match.group(1)} is missing in README.md"


def compiles_alone(sources):
    headers = [s for s in sources if s.path.suffix == ".h" and not s.is_vendor() and
               (in_product(s) or s.under("include") or s.under("test/harness"))]
    compiler = os.environ.get("CXX", "g++")
    with tempfile.TemporaryDirectory() as folder:
        generated = Path(folder) / "base/version.h"
        subprocess.run(["cmake", f"-DSOURCE={ROOT}", "-DVERSION=0", f"-DHEADER={generated}", "-P",
                        ROOT / "tools/cmake/write_version.cmake"], check=True, capture_output=True)

        def compile_one(source):
            name = source.name
            for prefix in ("src/", "include/", "test/"):
                name = name.removeprefix(prefix)
            flags = "-std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Werror -march=x86-64-v3 -maes -mpclmul".split()
            if os.uname().machine != "x86_64":
                flags = flags[:-3]
            command = [compiler, *flags, "-DFCCL_CPU_LEVEL=v3", "-DFCCL_HAVE_CPU_v3=1", f"-I{ROOT}/include", f"-I{ROOT}/src",
                       f"-I{ROOT}", f"-I{ROOT}/test", f"-I{folder}", "-x", "c++", "-"]
            return source, subprocess.run(command, input=f'#include "{name}"\n#include "{name}"\n', text=True,
                                          capture_output=True, timeout=120)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for source, done in pool.map(compile_one, headers):
                if done.returncode != 0:
                    yield source.name, 1, "does not compile alone: " + "\n    ".join(done.stderr.splitlines()[:6])


LAWS = [one_getenv, clean_guest, close_on_exec, vendor_words, one_kernel_source, unfinished, layers, head_prose, variables_in_readme]


def main():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True, capture_output=True, check=True)
    paths = [ROOT / name for name in listed.stdout.splitlines()]
    sources = [Source(p) for p in paths if p.suffix in SUFFIXES and p.is_file()]
    laws = LAWS + ([] if "--no-compile" in sys.argv else [compiles_alone])
    broken = [(law, *finding) for law in laws for finding in law(sources)]
    for law, name, line, text in broken:
        print(f"{name}:{line}: [{law.__name__}] {text}")
    for source in sorted(sources, key=lambda s: -s.text.count("\n")):
        if source.text.count("\n") > 400:
            print(f"note: {source.name} has {source.text.count(chr(10))} lines: look for the second idea in it")
    print(f"lint: {len(sources)} files, {len(laws)} laws, {len(broken)} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
