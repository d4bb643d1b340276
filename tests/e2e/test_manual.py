"""contrib/manual: what is made of tables is current, links lead somewhere, and commands and settings in it exist."""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess
import sys

import pytest

from node import BINARY, TOP, clean_env, hermes

MANUAL = TOP / "contrib/manual"
CHAPTERS = sorted(MANUAL.glob("*.md"))
BY_HAND = [file for file in CHAPTERS if "This chapter is made by" not in file.read_text()]


def test_lists_are_current():
    done = subprocess.run([sys.executable, str(MANUAL / "make.py"), str(BINARY)], env=clean_env(), capture_output=True,
                          text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr + "run contrib/manual/make.py --write"


def test_every_setting_is_in_the_list():
    """As the program itself has them, not as the script that made the list read them."""
    keys = re.findall(r"^([a-z_]+\.[a-z_]+) ", hermes("server", "--check").stdout, re.M)
    text = (MANUAL / "settings.md").read_text()
    assert len(keys) > 50
    assert [key for key in keys if "| `%s` |" % key not in text] == []


def test_chapters_are_in_the_contents():
    contents = (MANUAL / "README.md").read_text()
    assert [file.name for file in CHAPTERS if file.name != "README.md" and "](%s)" % file.name not in contents] == []


def anchors(file):
    """As they are made of headings."""
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-")
            for line in re.findall(r"^#+ (.*)$", file.read_text(), re.M)}


@pytest.mark.parametrize("file", CHAPTERS + [TOP / "SECURITY.md"], ids=lambda file: file.stem)
def test_links(file):
    for target in re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", file.read_text(), flags=re.S)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        to = (file.parent / path).resolve() if path else file
        assert to.exists(), target
        assert not anchor or anchor in anchors(to), target


@pytest.mark.parametrize("file", BY_HAND, ids=lambda file: file.stem)
def test_settings_that_are_spoken_of(file):
    keys = set(re.findall(r"^\| `([a-z_]+\.[a-z_]+)` ", (MANUAL / "settings.md").read_text(), re.M))
    sections = {key.split(".")[0] for key in keys}
    text = file.read_text()
    if file.stem.startswith("moving"):      # what stands first in a row is RabbitMQ's
        text = re.sub(r"^\|[^|]*\|", "|", text, flags=re.M)
    for name in re.findall(r"`([a-z_]+\.[a-z_]+)(?:`|:)", text):
        if name.split(".")[0] in sections and pathlib.Path(name).suffix not in (".yml", ".pem", ".json", ".log"):
            assert name in keys, name


@pytest.mark.parametrize("file", BY_HAND, ids=lambda file: file.stem)
def test_commands_that_are_spoken_of(file):
    """Each line that calls hermes names a command, and options that it has."""
    text = file.read_text()
    for line in re.findall(r"^    (?:sudo (?:-u hermes )?)?hermes ([a-z-]+.*)$", text, re.M) + \
            re.findall(r"`hermes ([a-z-]+[^`]*)`", text.replace("\n", " ")):
        words = line.split("#")[0].split("|")[0].split("<")[0].split()
        done = hermes("help", words[0])
        assert done.returncode == 0, line
        for option in re.findall(r"(?<= )--[a-z][a-z-]*", line.split(" #")[0]):
            assert re.search(r"^\s+(?:-\w,)?\s*%s\b" % option, done.stdout, re.M), (line, option)


def test_settings_as_yaml(tmp_path):
    """Blocks of settings are such."""
    file = tmp_path / "hermes.yml"
    count = 0
    for chapter in BY_HAND:
        for block in re.findall(r"^```yaml\n(.*?)^```", chapter.read_text(), re.M | re.S):
            text = re.sub(r"^ *#.*\n", "", block, flags=re.M)
            file.write_text(text)
            done = hermes("server", "--check", "-c", file, env={"APP_PASSWORD": "x", "ADMIN_PASSWORD": "y"})
            # certificates of the examples are not there
            wrong = [line for line in done.stderr.splitlines() if ".pem" not in line and "the settings cannot" not in line]
            assert wrong == [], (chapter.name, block, wrong)
            count += 1
    assert count >= 4
