"""Adds up what contrib/test has run: JUnit files of pytest, logs of `make check`, steps of the script.

Usage: tally.py RESULTS-FOLDER SKIPS-FILE

Prints each failure and each skip without a listed reason, then "N passed, N failed" alone on a line.
Exit status: 0 if nothing failed, else 1.
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys
import xml.etree.ElementTree as ET

CHECKS = re.compile(r"Checks: (\d+), Failures: (\d+), Errors: (\d+)")


class Tally:
    def __init__(self, skips):
        self.skips = skips
        self.passed = self.failed = self.skipped = 0

    def fail(self, where, name, text, count=1):
        self.failed += count
        print("FAILED %s: %s%s" % (where, name, ": " + text if text else ""))

    def skip(self, where, name, text):
        if name in self.skips:
            self.skipped += 1
            print("skipped %s: %s: %s" % (where, name, self.skips[name]))
        else:
            self.fail(where, name, "skipped without a reason in tests/skips.txt: " + text)

    def junit(self, path):
        where = path.stem
        try:
            cases = list(ET.parse(path).iter("testcase"))
        except ET.ParseError as exc:
            self.fail(where, path.name, "not readable: %s" % exc)
            return
        if not cases:
            self.fail(where, path.name, "no test was run")
        for case in cases:
            name = "%s::%s" % (case.get("classname", "").replace(".", "/"), case.get("name"))
            bad = [e for e in case if e.tag in ("failure", "error")]
            skipped = case.find("skipped")
            if bad:
                self.fail(where, name, (bad[0].get("message") or "").split("\n")[0][:200])
            elif skipped is not None:
                self.skip(where, name, skipped.get("message") or "")
            else:
                self.passed += 1

    def program(self, where, trs):
        """One program of `make check`: its cases if it says how many, else the program as one."""
        name = str(trs.with_suffix("")).split("-check-")[-1].partition("/")[2]
        match = re.search(r"^:test-result: (\w+)", trs.read_text(errors="replace"), re.M)
        result = match.group(1) if match else "ERROR"
        log = trs.with_suffix(".log")
        text = log.read_text(errors="replace") if log.exists() else ""
        total = bad = 0
        for run, failures, errors in CHECKS.findall(text):
            total += int(run)
            bad += int(failures) + int(errors)
        if result == "SKIP":
            self.skip(where, name, "")
        elif result == "PASS" and bad == 0:
            self.passed += max(total, 1)
        else:
            bad = max(bad, 1)
            self.passed += max(total - bad, 0)
            self.fail(where, name, "%s, see %s" % (result, log), bad)

    def steps(self, path):
        for line in path.read_text().splitlines():
            result, _, name = line.partition(" ")
            if result == "pass":
                self.passed += 1
            else:
                self.fail("step", name, "see its log in %s" % path.parent)


def read_skips(path):
    skips = {}
    for line in pathlib.Path(path).read_text().splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            name, _, reason = line.partition(" ")
            if not reason.strip():
                sys.exit("%s: %s has no reason" % (path, name))
            skips[name] = reason.strip()
    return skips


def main():
    results = pathlib.Path(sys.argv[1])
    tally = Tally(read_skips(sys.argv[2]))
    for path in sorted(results.glob("*.xml")):
        tally.junit(path)
    for folder in sorted(results.glob("*-check-*")):
        if not folder.is_dir():
            continue
        programs = sorted(folder.rglob("*.trs"))
        if not programs:
            tally.fail(folder.name, "make check", "no test was run")
        for trs in programs:
            tally.program(folder.name, trs)
    if (results / "steps.txt").exists():
        tally.steps(results / "steps.txt")
    if tally.passed == 0 and tally.failed == 0:
        tally.fail("step", "everything", "nothing was run")
    if tally.skipped:
        print("%d skipped for a listed reason" % tally.skipped)
    print("%d passed, %d failed" % (tally.passed, tally.failed))
    return 0 if tally.failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
