"""contrib/examples: each goes on while its node is stopped, started, killed and started again."""
# SPDX-License-Identifier: Apache-2.0
import re
import signal
import subprocess

import pytest

from node import SLOW, TOP, clean_env, free_port, wait_for
from programs import EXAMPLES, JARS, JAVA, PYTHON, go_build, need, node_modules, once, python_module

COUNT = 40


def python(folder):
    once("pika", lambda: python_module("pika", "python3-pika"))
    return [PYTHON, str(EXAMPLES / "orders.py")], {}


def java(folder):
    need(("java", "default-jdk-headless"), (JARS[0], "librabbitmq-client-java"), (JARS[1], "libslf4j-java"))
    return JAVA + [str(EXAMPLES / "Orders.java")], {}


def go(folder):
    return [str(go_build(EXAMPLES / "orders.go", folder))], {}


def javascript(folder):
    modules = once("node_modules", lambda: node_modules(folder / "npm"))
    return ["node", str(EXAMPLES / "orders.js")], {"NODE_PATH": str(modules)}


@pytest.mark.parametrize("build", [python, java, go, javascript])
def test_survives_restarts(node, tmp_path, build):
    command, env = build(tmp_path / "build")
    this = node()
    output = tmp_path / "output"
    # The first node of its list never answers.
    addresses = "127.0.0.1:%d,127.0.0.1:%d" % (free_port(), this.port)
    with open(output, "w") as out:
        process = subprocess.Popen(command + [addresses, str(COUNT)], env=clean_env(env), stdout=out,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def received(number):
        def check():
            assert process.poll() in (None, 0), output.read_text()
            return re.search(r"^received %d$" % number, output.read_text(), re.M)

        wait_for(check, 30, "order %d of %s\n%s" % (number, build.__name__, output.read_text()))

    try:
        received(5)
        this.stop()
        this.start()
        received(15)
        this.stop(signal.SIGKILL, -signal.SIGKILL)
        this.start()
        received(COUNT)
        assert process.wait(10 * SLOW) == 0, output.read_text()
    finally:
        process.kill()
        process.wait()
    text = output.read_text()
    assert text.endswith("unsubscribed\n"), text
    numbers = [int(n) for n in re.findall(r"^received (\d+)$", text, re.M)]
    assert len(set(numbers)) == len(numbers), text
    assert len(numbers) == COUNT, text


def test_readme_names_all():
    text = (EXAMPLES / "README.md").read_text()
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    assert files == set(re.findall(r"\b[Oo]rders\.\w+", text)), "README.md and the folder differ"
    assert (TOP / "contrib/examples").is_dir()
