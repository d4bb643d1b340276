"""The tables in the code and what is written about them: no key, command or route without its text."""
# SPDX-License-Identifier: Apache-2.0
import re

import pytest

from node import TOP



def source(path):
    """The text of a file with its blanks made one each, so that its layout does not matter."""
    return re.sub(r"\s+", " ", (TOP / path).read_text())


KEYS = re.findall(r'\b(?:CFG|LATER)\( ?"([a-z_]+\.[a-z_]+)"', source("src/base/config.c"))
COMMANDS = re.findall(r'\{ \.name = "([a-z-]+)", \.run = ', source("src/cli/commands.c"))
OPTIONS = sorted(set(re.findall(r'\{ \.name = "([a-z-]+)", \.(?:letter|value|text|repeats|env)\b',
                                source("src/cli/commands.c"))))
MANUAL = (TOP / "man/hermes.1").read_text().replace("\\-", "-")
SAMPLE = (TOP / "etc/hermes.yml").read_text()
README = (TOP / "README.md").read_text()


def test_the_tables_were_found():
    assert len(KEYS) > 40
    assert len(COMMANDS) >= 6
    assert len(OPTIONS) > 20


@pytest.mark.parametrize("key", KEYS)
def test_key_is_in_the_manual(key):
    assert re.search(r"^\.B %s$" % re.escape(key), MANUAL, re.M)


@pytest.mark.parametrize("key", KEYS)
def test_key_is_in_the_sample(key):
    section, name = key.split(".")
    block = re.search(r"^(?:# )?%s:(?:.*\n)(?:(?:#? +|# +).*\n|$)*" % section, SAMPLE, re.M)
    assert block and re.search(r"\b%s:" % name, block.group(0)), key


@pytest.mark.parametrize("command", COMMANDS)
def test_command_is_in_the_manual(command):
    assert re.search(r"^\.SS hermes %s$" % command, MANUAL, re.M)


@pytest.mark.parametrize("option", OPTIONS)
def test_option_is_in_the_manual(option):
    assert re.search(r"--%s\b" % option, MANUAL)


def test_links_in_the_readme():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (TOP / target).exists(), target
    for path in re.findall(r"^\| `([\w/.]+)`", README, re.M):
        assert (TOP / path).exists(), path
