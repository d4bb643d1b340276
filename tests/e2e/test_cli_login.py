"""Who logs in, without a password on the command line; what each command says without a node and of itself."""
# SPDX-License-Identifier: Apache-2.0
import re
import shlex

import pytest

from node import TOP, free_port, hermes
from shell import at_terminal, broker, cli      # noqa: F401 (fixtures)

COMMANDS = re.findall(r'\{ \.name = "([a-z-]+)", \.run = ', re.sub(r"\s+", " ", (TOP / "src/cli/commands.c").read_text()))


@pytest.fixture(scope="module")
def account(broker):
    """A user with a queue of her own."""
    env = {"HERMES_URL": broker.http_url, "HERMES_AMQP": "amqp://127.0.0.1:%d" % broker.port}
    hermes("user", "add", "ops", "--tags", "administrator", "--password-stdin", stdin="se cret ü", env=env)
    hermes("permission", "set", "ops", ".*", ".*", ".*", env=env)
    hermes("declare", "queue", "mine", env=env)
    return env


WAYS = [["list", "users"], ["publish", "--key", "mine", "--body", "x"], ["get", "mine"]]


@pytest.mark.parametrize("words", WAYS, ids=lambda w: w[0])
def test_ways_to_say_the_password(broker, account, words, tmp_path):
    file = tmp_path / "password"
    file.write_text("se cret ü\nsecond line\n")
    fill = ["publish", "--key", "mine", "--body", "x", "--count", "9"]
    assert hermes(*fill, env=account).returncode == 0
    ops = {**account, "HERMES_USER": "ops"}
    for more, env in [(["--user", "ops", "--password-file", file], account), (["--password-file", file], ops),
                      ([], {**ops, "HERMES_PASSWORD": "se cret ü"}), ([], {**ops, "HERMES_PASSWORD_FILE": str(file)}),
                      # the command line above the environment
                      (["--password-file", file], {**ops, "HERMES_PASSWORD": "wrong"}),
                      (["--password", "se cret ü"], {**ops, "HERMES_PASSWORD_FILE": "/nowhere"})]:
        done = hermes(*words, *more, env=env)
        assert done.returncode == 0, (more, done.stderr)
    status, said = at_terminal(broker, words + ["--user", "ops"], [(b"Password of 'ops': ", "se cret ü\n".encode())], account)
    assert status == 0 and b"cret" not in said
    status, said = at_terminal(broker, words + ["--user", "ops"], [(b"Password of 'ops': ", b"\n")], account)
    assert status == 1 and b"ops" in said
    status, said = at_terminal(broker, words + ["--user", "ops"], [(b"Password of 'ops': ", b"\x03")], account)
    assert status == 1 and b"no password was typed" in said


@pytest.mark.parametrize("words", WAYS, ids=lambda w: w[0])
def test_passwords_that_are_none(account, words, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("")
    for more, status, said in [
            (["--password-file", tmp_path / "none"], 1, "cannot read %s: No such file or directory" % (tmp_path / "none")),
            (["--password-file", empty], 1, "has no line of at most 4096 bytes with the password"),
            (["--password-file", empty, "--password", "x"], 2, "--password and --password-file do not go together"),
            ([], 1, "see --user")]:
        done = hermes(*words, "--user", "ops", *more, env=account)
        assert done.returncode == status and said in done.stderr, done.stderr


@pytest.mark.parametrize("words", [["add", "new", "--password", "x"], ["passwd", "guest", "--password", "x"],
                                   ["add", "new", "--new-password", "x", "--user", "nobody"]], ids=" ".join)
def test_the_caller_is_not_taken_for_the_new_account(account, words):
    said = hermes("user", *words, env=account)
    who = words[words.index("--user") + 1] if "--user" in words else "guest"
    assert said.returncode == 1
    assert "refused user '%s', as whom this command logs in" % who in said.stderr, said.stderr
    for name in ("--user", "--password-file", "HERMES_USER", "HERMES_PASSWORD", "about is --new-password"):
        assert name in said.stderr, said.stderr
    said = hermes("list", "users", "--password", "x", env=account).stderr
    assert "as whom this command logs in" in said and "--new-password" not in said


def test_a_terminal_is_asked_once_for_several_requests(broker, account):
    status, said = at_terminal(broker, ["user", "set", "ops", "--tags", "administrator,own", "--max-channels", "100",
                                        "--user", "ops"], [(b"Password of 'ops': ", "se cret ü\n".encode())], account)
    assert status == 0 and said.count(b"Password") == 1


def test_an_address_with_a_user_stands_above_the_environment(broker, account):
    other = {**account, "HERMES_USER": "nobody", "HERMES_PASSWORD": "wrong"}
    with_login = broker.http_url.replace("http://", "http://guest:guest@")
    assert hermes("list", "users", "--url", with_login, env=other).returncode == 0
    assert "user 'nobody'" in hermes("list", "users", "--url", broker.http_url, env=other).stderr
    assert "user 'nobody'" in hermes("list", "users", env={**other, "HERMES_URL": with_login}).stderr
    assert "user 'ops'" in hermes("list", "users", "--url", with_login, "--user", "ops", env=other).stderr


def test_an_address_needs_no_scheme(broker, account):
    for words, port in ((["list", "users", "--url"], broker.management_port),
                        (["publish", "-k", "mine", "-b", "x", "--amqp"], broker.port)):
        assert hermes(*words, "127.0.0.1:%d" % port).returncode == 0
        assert hermes(*words, "guest:guest@127.0.0.1:%d" % port).returncode == 0
        done = hermes(*words, "guest:wrong@127.0.0.1:%d" % port, env={"HERMES_PASSWORD": "guest"})
        assert done.returncode == 1 and "refused" in done.stderr.lower()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    for words in ([command, "--help"], [command, "-h"], ["help", command]):
        done = hermes(*words)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("hermes %s: " % command)
    done = hermes(command, "--frobnicate")
    assert done.returncode == 2 and "unknown option '--frobnicate'" in done.stderr


def test_help_of_a_verb():
    assert hermes("help", "user", "add").stdout == hermes("help", "user").stdout


#: each command that talks to a node
LINES = """status
list queues
publish --key a --body b
get q
declare queue q
declare exchange x
delete queue q
delete exchange x
delete connection c
bind x q
unbind x q
purge q
queue pause q
queue resume q
move a b
replay q
jobs
jobs cancel 1
user list
user add u --no-password
user set u --tags a
user passwd u --no-password
user delete u
vhost list
vhost add v
vhost set v --tags a
vhost delete v
permission list
permission set u a b c
permission set u a b --topic --exchange x
permission delete u
policy list
policy set p a -s max-length=1
policy delete p
parameter list
parameter set a b --global
parameter delete a b
export
snapshot d"""


@pytest.mark.parametrize("line", LINES.split("\n") + ["import -"])
def test_without_a_node(line):
    words, port = shlex.split(line), free_port()
    address = ["--amqp", "amqp://127.0.0.1:%d" % port] if words[0] in ("publish", "get") else ["--url", "http://127.0.0.1:%d" % port]
    done = hermes(*words, *address, stdin="{}")
    assert done.returncode == 1 and done.stdout == ""
    assert re.fullmatch(r"hermes %s: cannot reach 127\.0\.0\.1( port |:)%d\b.*is the node running\?.*\n" % (words[0], port),
                        done.stderr)


def test_a_name_that_is_not_known():
    for words in (["status", "--url", "http://node.invalid"], ["get", "q", "--amqp", "amqp://node.invalid"]):
        done = hermes(*words)
        assert done.returncode == 1 and "cannot reach node.invalid" in done.stderr and "running" not in done.stderr
