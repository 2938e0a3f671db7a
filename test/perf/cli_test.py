"""Tests of fccl_perf as a program, on CPU ranks: `cli_test.py path/to/fccl_perf`. Times are never judged.

One parser reads nccl-tests' documented layout (data/nccl_tests_all_reduce.txt) and our output.
"""

import csv
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom
from pathlib import Path

PERF = None
HERE = Path(__file__).resolve().parent
SCHEMA = HERE.parents[1] / "tools/fccl_perf/fccl_perf.schema.json"
SMALL = ["--backend", "cpu", "--np", "2", "--tokens", "1,3", "--hidden", "64", "-n", "4", "-w", "1"]
LAUNCHERS = ("OMPI_", "PMI_", "PMIX_", "SLURM_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "FCCL_")


def environment(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(LAUNCHERS)}
    clean.update(more)
    return clean


def run(*words, expect=0, env=None, timeout=120):
    done = subprocess.run([PERF, *words], capture_output=True, text=True, timeout=timeout, env=env or environment())
    if expect is not None and done.returncode != expect:
        raise AssertionError(f"{words}: status {done.returncode}, {expect} expected\n{done.stdout}\n{done.stderr}")
    return done


def parse_table(text):
    """What a script that reads nccl-tests would do: columns by the header, rows, footer."""
    header = next(line for line in text.splitlines() if re.match(r"#\s+size\s+count\s+type", line))
    units = text.splitlines()[text.splitlines().index(header) + 1]
    rows = []
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        words = line.split()
        rows.append({"size": int(words[0]), "count": int(words[1]), "type": words[2], "redop": words[3], "root": int(words[4]),
                     "out": [float(w) for w in words[5:9]], "in": [float(w) for w in words[9:13]], "columns": len(words)})
    wrong = re.search(r"^# Out of bounds values : (\d+) (OK|FAILED)$", text, re.M)
    average = re.search(r"^# Avg bus bandwidth    : (\S+) ", text, re.M)
    return {"columns": header.split()[1:], "header": header, "units": units, "rows": rows, "wrong": wrong.groups(),
            "average": float(average.group(1))}


def validate(schema, value, where="$"):
    """Enough of JSON Schema for ours: type, required, properties, items, enum, additionalProperties."""
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    allowed = schema.get("type")
    if allowed:
        names = allowed if isinstance(allowed, list) else [allowed]
        fits = any(
            isinstance(value, (int, float)) and not isinstance(value, bool) and (name == "number" or float(value).is_integer())
            if name in ("number", "integer") else isinstance(value, kinds[name]) for name in names)
        assert fits, f"{where}: {value!r} is not {allowed}"
    if "enum" in schema:
        assert value in schema["enum"], f"{where}: {value!r}"
    if isinstance(value, dict):
        for key in schema.get("required", []):
            assert key in value, f"{where}: no {key}"
        for key, one in value.items():
            known = schema.get("properties", {})
            if key in known:
                validate(known[key], one, f"{where}.{key}")
            else:
                assert schema.get("additionalProperties", True), f"{where}: {key} is not in the schema"
    if isinstance(value, list) and "items" in schema:
        for i, one in enumerate(value):
            validate(schema["items"], one, f"{where}[{i}]")


class Base(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)


class NcclTestsLayout(Base):
    def test_one_parser_reads_both(self):
        golden = parse_table((HERE / "data/nccl_tests_all_reduce.txt").read_text())
        ours = parse_table(run("--op", "all_reduce", "-b", "8", "-e", "512", "-f", "8", "-c", "1", "--np", "2", "--backend", "cpu",
                               "-n", "3", "-w", "1").stdout)
        self.assertEqual((ours["header"], ours["units"]), (golden["header"], golden["units"]))
        self.assertEqual(ours["columns"], golden["columns"])
        for mine, theirs in zip(ours["rows"], golden["rows"], strict=True):
            for key in ("size", "count", "type", "redop", "root", "columns"):
                self.assertEqual(mine[key], theirs[key])
            self.assertEqual(mine["out"][3], 0)
        self.assertEqual(ours["wrong"], golden["wrong"])
        self.assertGreater(ours["average"], 0)

    def test_lines_have_the_widths_of_nccl_tests(self):
        golden = [line for line in (HERE / "data/nccl_tests_all_reduce.txt").read_text().splitlines() if line[:1] == " "]
        out = run("--op", "all_reduce", "-b", "8", "-e", "512", "-f", "8", "--np", "2", "--backend", "cpu", "-n", "2").stdout
        ours = [line for line in out.splitlines() if line[:1] == " "]
        self.assertEqual([len(line) for line in ours], [len(line) for line in golden])

    def test_the_program_name_picks_the_operation(self):
        link = self.folder / "all_gather_perf"
        link.symlink_to(PERF)
        done = subprocess.run([link, "-b", "64", "-e", "64", "--np", "2", "--backend", "cpu", "-n", "2"], capture_output=True,
                              text=True, env=environment(), timeout=60)
        self.assertIn("all_gather_perf", done.stdout)
        self.assertEqual(parse_table(done.stdout)["rows"][0]["redop"], "none")

    def test_all_operations_types_and_reductions(self):
        for op, more in (("all_reduce", ["-o", "all"]), ("reduce_scatter", []), ("all_gather", []), ("broadcast", ["-r", "all"])):
            table = parse_table(run("--op", op, "-b", "256", "-e", "1K", "-f", "4", "-d", "all", "--np", "3", "--backend", "cpu", "-n",
                                    "2", "-w", "0", *more).stdout)
            self.assertEqual(table["wrong"], ("0", "OK"))
            self.assertEqual({row["type"] for row in table["rows"]}, {"float", "half", "bfloat16"})
            factor = {"all_reduce": 5, "broadcast": 3}.get(op, 1)
            self.assertEqual(len(table["rows"]), 2 * 3 * factor)

    def test_no_check_says_so_and_timestamps_are_added(self):
        out = run("--op", "all_reduce", "-b", "64", "-e", "64", "-c", "0", "-S", "1", "--np", "2", "--backend", "cpu", "-n", "2").stdout
        line = next(line for line in out.splitlines() if line[:1] == " ")
        self.assertEqual(line.split()[8], "N/A")
        self.assertRegex(line, r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
        self.assertIn("timestamp", out)
        out = run("--op", "all_reduce", "-b", "64", "-e", "64", "-C", "1", "-M", "1", "-N", "2", "--np", "2", "--backend", "cpu", "-n", "2").stdout
        self.assertIn("cputime", out)
        self.assertIn("# Memory", out)
        self.assertEqual(len([line for line in out.splitlines() if line[:1] == " "]), 2)


class Usage(Base):
    def test_a_wrong_value_is_one_line_and_status_2(self):
        for words in (["-a", "7"], ["--op", "dance"], ["-n", "0"], ["--backend", "tpu"], ["--nonsense"], ["-b", "9z"]):
            done = run(*words, expect=2)
            self.assertEqual(done.stdout, "")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertTrue(done.stderr.startswith("fccl_perf: "))

    def test_answers_without_a_run(self):
        self.assertIn("--tokens", run("--help").stdout)
        self.assertIn("library", run("--version").stdout)
        self.assertIn("llama3-70b", run("--list-models").stdout)
        manual = self.folder / "fccl_perf.1"
        manual.write_text(run("--print", "man").stdout)
        if shutil.which("man"):
            done = subprocess.run(["man", "--warnings", "-l", manual], capture_output=True, text=True, env=environment(MANPAGER="cat"))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        script = self.folder / "completion.bash"
        script.write_text(run("--print", "completion").stdout)
        asked = f"source {script}; COMP_WORDS=(fccl_perf --op all_); COMP_CWORD=2; _fccl_perf; echo ${{COMPREPLY[@]}}"
        words = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(words, ["all_reduce", "all_gather"])

    def test_stderr_is_silent_when_it_is_no_terminal(self):
        self.assertEqual(run(*SMALL).stderr, "")


class Fused(Base):
    def rows(self, *words):
        file = self.folder / "run.json"
        run(*SMALL, "--json", str(file), *words)
        return json.loads(file.read_text())

    def test_epilogue_options_are_checked_right(self):
        for words in (["--no-residual"], ["--no-residual-out"], ["--bias", "--weight-f32", "--weight-offset", "1"],
                      ["--numerics", "as_unfused"], ["--row-sharded"], ["-u", "1"], ["-R", "2"], ["--allreduce-out"],
                      ["--weight-stable", "--inputs-stable"]):
            data = self.rows("-d", "f32,f16,bf16", "-c", "2", *words)
            self.assertEqual(data["out_of_bounds"], {"count": 0, "okay": True}, words)
            self.assertEqual(len(data["results"]), 2 * 3 * 2)
        self.assertEqual({row["unalign"] for row in self.rows("-u", "3")["results"]}, {3})

    def test_methods(self):
        self.assertEqual(self.rows("-G", "5")["results"][0]["method"], "batch")
        self.assertEqual(self.rows("-G", "5")["results"][0]["time_us"]["samples"], 5)
        for words in (["--cold"], ["--gap", "20"], ["--skew", "0,200"], ["-z", "1"]):
            data = self.rows(*words)
            self.assertEqual(data["config"]["method"], "spaced")
        self.assertGreater(self.rows("--seconds", "0.05")["results"][0]["time_us"]["samples"], 4)
        many = self.rows("-n", "100", "--tokens", "1")["results"][0]["time_us"]
        self.assertIsNotNone(many["p99"])
        self.assertIsNone(self.rows("-n", "99", "--tokens", "1")["results"][0]["time_us"]["p99"])

    def test_skew_is_seen_by_the_rank_that_is_early(self):
        early = self.rows("--skew", "0,20000", "-a", "0")["results"][0]["time_us"]["max"]
        self.assertGreater(early, 5000)

    def test_presets_and_bytes_make_shapes(self):
        file = self.folder / "m.json"
        run("--model", "gpt-oss-20b", "--backend", "cpu", "--np", "2", "-n", "1", "-w", "0", "-c", "0", "--rotate", "1", "--json", str(file))
        data = json.loads(file.read_text())
        self.assertEqual({row["hidden"] for row in data["results"]}, {2880})
        run("--hidden", "64", "-b", "128", "-e", "1K", "-f", "2", "--backend", "cpu", "--np", "2", "-n", "1", "--json", str(file))
        self.assertEqual([row["tokens"] for row in json.loads(file.read_text())["results"][::2]], [1, 2, 4, 8])

    def test_threads_and_processes(self):
        for words in (["-t", "3"], ["-g", "3"], ["--np", "2", "-t", "2"]):
            data_file = self.folder / "t.json"
            run("--backend", "cpu", *words, "--tokens", "2", "--hidden", "64", "-n", "2", "--json", str(data_file))
            data = json.loads(data_file.read_text())
            self.assertEqual(len(data["devices"]), 4 if "--np" in words else 3)
            self.assertEqual(len({one["pid"] for one in data["devices"]}), 2 if "--np" in words else 1)


class Faults(Base):
    def test_each_injected_fault_is_found_and_named(self):
        for fault, text in (("flip", "norm_out row 0 column 0"), ("nan", "nan"), ("unwritten", "norm_out row 0"),
                            ("canary", "outside the buffer"), ("input", "changed its input")):
            done = run(*SMALL, "--tokens", "1", "--in-place", "no", "--inject", fault + ":1", expect=1)
            self.assertIn("# Out of bounds values : 1 FAILED", done.stdout)
            self.assertIn("rank 1", done.stdout)
            self.assertIn(text, done.stdout)
            if fault == "flip":
                self.assertRegex(done.stdout, r"got \S+ \(0x[0-9a-f]+\), true is \S+, tolerance 1 ulp")

    def test_a_rank_that_skips_a_call_is_the_laggard(self):
        done = run("--backend", "cpu", "--np", "3", "--tokens", "1", "--hidden", "64", "--inject", "skip:1", "-T", "1", expect=1)
        report = json.loads(next(line for line in done.stderr.splitlines() if line.startswith("{")))
        self.assertEqual(report["schema"], "fccl_perf.failure")
        self.assertEqual(report["laggard"], 1)
        self.assertEqual([rank["last_started"] for rank in report["ranks"]], [1, 0, 1])
        self.assertIn("rank 1", done.stderr)


class Files(Base):
    def test_json_csv_and_plots(self):
        paths = {name: self.folder / ("run." + name) for name in ("json", "csv", "svg", "png", "html")}
        env = environment(FCCL_DEBUG="INFO")
        plots = ["html"] + (["svg", "png"] if shutil.which("gnuplot") else [])
        done = run(*SMALL, "--vs", "unfused", "--rounds", "3", "--json", str(paths["json"]), "--csv", str(paths["csv"]), "--plot",
                   ",".join(str(paths[name]) for name in plots), env=env)
        self.assertIn("# vs unfused:", done.stdout)
        data = json.loads(paths["json"].read_text())
        validate(json.loads(SCHEMA.read_text()), data)
        self.assertEqual((data["schema"], data["schema_version"]), ("fccl_perf", 1))
        keys = [(r["op"], r["size"], r["type"], r["algorithm"], r["in_place"], r["method"]) for r in data["results"]]
        self.assertEqual(len(set(keys)), len(keys))
        self.assertEqual(data["config"]["order"], "alternating")
        self.assertEqual(data["results"][0]["peers"][0]["name"], "unfused")
        with open(paths["csv"], newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), len(data["results"]))
        self.assertEqual([int(row["tokens"]) for row in rows], [r["tokens"] for r in data["results"]])
        self.assertGreater(float(rows[0]["unfused_ratio"]), 0)
        page = paths["html"].read_text()
        self.assertNotRegex(page, r"(src|href)=")
        panels = json.loads(re.search(r'id="panels">(.*?)</script>', page, re.S).group(1))
        self.assertEqual(len(panels), 3)
        self.assertEqual({curve["name"] for curve in panels[0]["curves"]}, {"fused 64 bfloat16", "unfused 64 bfloat16"})
        if "svg" in plots:
            xml.dom.minidom.parse(str(paths["svg"]))
            self.assertEqual(paths["png"].read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_json_on_stdout_is_nothing_but_json(self):
        json.loads(run(*SMALL, "--json", "-").stdout)

    def test_compare_tells_regressions(self):
        old = self.folder / "old.json"
        run(*SMALL, "-n", "30", "--json", str(old))
        data = json.loads(old.read_text())
        for row in data["results"]:
            row["time_us"]["p50"] *= 1000
        old.write_text(json.dumps(data))
        self.assertIn("faster", run(*SMALL, "--compare", str(old), expect=0).stdout)
        for row in data["results"]:
            row["time_us"]["p50"] /= 1e6
            row["noise"] = 0
        data["results"].pop()
        old.write_text(json.dumps(data))
        done = run(*SMALL, "--compare", str(old), expect=1)
        self.assertIn("3 slower, 0 faster, 0 the same, 1 new", done.stdout)
        for text in ("{}", "not json", '{"schema":"fccl_perf","schema_version":99}'):
            old.write_text(text)
            self.assertIn("--compare", run(*SMALL, "--compare", str(old), expect=1).stderr)

    def test_a_file_that_cannot_be_written_is_said(self):
        self.assertIn("cannot write", run(*SMALL, "--csv", str(self.folder / "no/such/file.csv"), expect=1).stderr)

    def test_tune_writes_what_the_library_loads(self):
        file = self.folder / "costs.txt"
        run("--backend", "cpu", "--np", "2", "--tokens", "1,16,64", "--hidden", "256", "-n", "5", "-w", "1", "--tune", str(file))
        lines = file.read_text().splitlines()
        self.assertEqual(lines[0], "fccl-tuner 1")
        self.assertGreaterEqual(len([line for line in lines if line and line[0] not in "#f"]), 3)
        run(*SMALL, env=environment(FCCL_TUNER_FILE=str(file)))


class ForeignLaunchers(Base):
    def launch(self, names, ranks=2, words=(), **more):
        children = []
        for rank in range(ranks):
            values = {names[0]: str(rank), names[1]: str(ranks), names[2]: str(rank), **more}
            children.append(subprocess.Popen([PERF, "--backend", "cpu", "--tokens", "2", "--hidden", "64", "-n", "3", *words],
                                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**values)))
        done = [child.communicate(timeout=120) for child in children]
        self.assertEqual([child.returncode for child in children], [0] * ranks, done)
        self.assertIn("Out of bounds values : 0 OK", done[0][0])
        for out, err in done[1:]:
            self.assertEqual((out, err), ("", ""))

    def test_open_mpi_with_an_id_file(self):
        file = self.folder / "id"
        self.launch(("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"), words=("--id-file", str(file)))
        self.assertFalse(file.exists())

    def test_torchrun_and_srun_without_one(self):
        self.launch(("RANK", "WORLD_SIZE", "LOCAL_RANK"), ranks=3, MASTER_PORT="29500")
        self.launch(("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"), SLURM_STEP_ID="0", SLURM_JOB_ID="17")

    def test_fixed_rendezvous_with_a_secret_file(self):
        secret = self.folder / "secret"
        secret.write_bytes(os.urandom(48))
        secret.chmod(0o600)
        self.launch(("RANK", "WORLD_SIZE", "LOCAL_RANK"), FCCL_COMM_ID="127.0.0.1:%d" % (20000 + os.getpid() % 20000),
                    FCCL_COMM_SECRET_FILE=str(secret))

    def test_threads_under_a_launcher(self):
        self.launch(("RANK", "WORLD_SIZE", "LOCAL_RANK"), words=("-t", "2"), MASTER_PORT="1")

    def test_an_id_file_that_others_can_read_is_refused(self):
        file = self.folder / "id"
        file.write_bytes(bytes(128))
        file.chmod(0o644)
        done = run("--id-file", str(file), "--backend", "cpu", "--tokens", "1", "--hidden", "64", expect=1,
                   env=environment(RANK="1", WORLD_SIZE="2", LOCAL_RANK="1"))
        self.assertIn("0600", done.stderr)
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o644)


if __name__ == "__main__":
    PERF = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
