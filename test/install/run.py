#!/usr/bin/env python3
"""Installs the build, moves the folder away, puts a wrong fccl on every search path behind it, and builds
a C program against the moved copy twice: with pkg-config and with find_package.

    run.py BUILD_FOLDER SCRATCH_FOLDER C_COMPILER
"""
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
build, scratch, compiler = Path(sys.argv[1]), Path(sys.argv[2]) / "scratch", sys.argv[3]
installed, moved, decoy = scratch / "first", scratch / "moved", scratch / "decoy"


def run(*command, **environment):
    done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **environment}, timeout=100)
    print("$", shlex.join(str(c) for c in command), done.stdout, sep="\n")
    assert done.returncode == 0, f"status {done.returncode}"
    return done.stdout


def plant_decoy():
    """An fccl of another version, in the places that are searched after the moved copy's."""
    for folder in ("lib/pkgconfig", "lib/cmake/fccl", "include/fccl"):
        (decoy / folder).mkdir(parents=True)
    (decoy / "include/fccl/fccl.h").write_text("#error the wrong fccl.h\n")
    (decoy / "lib/libfccl.so").write_text("not a library\n")
    (decoy / "lib/pkgconfig/fccl.pc").write_text(
        f"Name: fccl\nDescription: decoy\nVersion: 99\nLibs: -L{decoy}/lib -lfccl\nCflags: -I{decoy}/include\n")
    (decoy / "lib/cmake/fccl/fcclConfig.cmake").write_text('message(FATAL_ERROR "the wrong fcclConfig.cmake")\n')


def check(program):
    told = dict(line.split("=", 1) for line in run(program, LD_LIBRARY_PATH=f"{moved}/lib").splitlines())
    assert told["header"] == told["library"], told
    assert Path(told["file"]).resolve().is_relative_to(moved.resolve()), told


def main():
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    run("cmake", "--install", build, "--prefix", installed)
    for file in installed.rglob("*"):
        if file.is_file() and file.suffix in (".pc", ".cmake", ".h"):
            assert str(installed) not in file.read_text(), f"{file} holds the place where it was installed"
            assert str(build) not in file.read_text(), f"{file} holds the place where it was built"
    installed.rename(moved)
    plant_decoy()

    search = {"PKG_CONFIG_PATH": f"{moved}/lib/pkgconfig:{decoy}/lib/pkgconfig"}
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "fccl", **search))
    run(compiler, "-std=c99", HERE / "program/main.c", "-o", scratch / "by_pkg_config", *flags, "-ldl")
    check(scratch / "by_pkg_config")

    run("cmake", "-S", HERE / "program", "-B", scratch / "by_cmake", f"-DCMAKE_C_COMPILER={compiler}",
        f"-DCMAKE_PREFIX_PATH={moved};{decoy}")
    run("cmake", "--build", scratch / "by_cmake")
    check(scratch / "by_cmake/program")

    for tool in (moved / "bin").glob("fccl_*"):  # the tools find the library beside them
        needed = [line for line in run("ldd", tool).splitlines() if "libfccl" in line]
        assert needed and str(moved.resolve()) in str(Path(needed[0].split("=>")[1].split("(")[0].strip()).resolve()), needed
    shutil.rmtree(scratch)


main()
