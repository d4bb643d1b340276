"""The programs of this folder: what they need, how they are built and called, what they leave out."""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import subprocess
import threading

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "contrib" / "examples"
STEPS = ("connect confirm return consume prefetch nack get properties bodies rpc cancel error reconnect heartbeat"
         " close").split()
JARS = ["/usr/share/java/%s.jar" % jar for jar in ("amqp-client", "slf4j-api", "slf4j-nop")]
#: programs end soon: no time for the second compiler; and no file of shared classes that another writes
JAVA = ["java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", ":".join(JARS)]
PYTHON = "/usr/bin/python3"

lock = threading.Lock()
made = {}


def once(what, make):
    """The result of make(), which is called once in a run, whoever comes first."""
    with lock:
        if what not in made:
            made[what] = make()
        return made[what]


def need(*things):
    """A package that is missing is a failure, with its name."""
    for command, package in things:
        if not (shutil.which(command) or pathlib.Path(command).exists()):
            raise AssertionError("%s is missing (Debian: %s)" % (command, package))


def call(*command, **kw):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, **kw)
    if done.returncode:
        raise AssertionError("%s failed:\n%s%s" % (" ".join(map(str, command)), done.stdout, done.stderr))
    return done.stdout


def python_module(module, package):
    try:
        call(PYTHON, "-c", "import " + module)
    except AssertionError as exc:
        raise AssertionError("Python module %s is missing (Debian: %s)\n%s" % (module, package, exc)) from None


def go_build(source, folder):
    """A binary in `folder`. The cache is beside it: the packages of the language come compiled."""
    need(("go", "golang-go"),
         ("/usr/share/gocode/src/github.com/rabbitmq/amqp091-go", "golang-github-rabbitmq-amqp091-go-dev"))
    folder.mkdir(parents=True, exist_ok=True)
    binary = folder / source.stem
    call("go", "build", "-o", binary, source,
         env=dict(os.environ, GO111MODULE="off", GOPATH="/usr/share/gocode", GOFLAGS="",
                  GOCACHE=str(folder / "cache")))
    return binary


def node_modules(folder):
    """A folder with the packages of the lock file in it."""
    need(("node", "nodejs"), ("npm", "npm"))
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / "node" / name, folder)
    call("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", cwd=folder)
    return folder / "node_modules"


class Program:
    def __init__(self, *without):
        self.without = without          # steps that the library cannot do: README.md says why
        self.env = {"PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}

    def build(self, folder):
        """The command, without host and port."""
        raise NotImplementedError


class PythonProgram(Program):
    def __init__(self, module, package, source):
        super().__init__()
        self.module, self.package, self.source = module, package, source

    def build(self, folder):
        once(self.module, lambda: python_module(self.module, self.package))
        return [PYTHON, str(HERE / "python" / self.source)]


class CProgram(Program):
    def build(self, folder):
        def make():
            need(("gcc", "gcc"), ("/usr/include/amqp.h", "librabbitmq-dev"))
            folder.mkdir(parents=True, exist_ok=True)
            call("gcc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-o", folder / "client",
                 HERE / "c" / "client_rabbitmq_c.c", "-lrabbitmq")
            return folder / "client"

        return [str(once("c", make))]


class ShellProgram(Program):
    def build(self, folder):
        need(("amqp-publish", "amqp-tools"))
        return ["bash", str(HERE / "shell" / "client_amqp_tools.sh")]


class JavaProgram(Program):
    def build(self, folder):
        def make():
            need(("javac", "default-jdk-headless"), (JARS[0], "librabbitmq-client-java"), (JARS[1], "libslf4j-java"))
            folder.mkdir(parents=True, exist_ok=True)
            call("javac", "-cp", ":".join(JARS), "-d", folder, HERE / "java" / "ClientJava.java")
            return folder

        return JAVA[:-1] + [":".join(JARS + [str(once("java", make))]), "ClientJava"]


class GoProgram(Program):
    def build(self, folder):
        return [str(once("go", lambda: go_build(HERE / "go" / "client_go.go", folder)))]


class NodeProgram(Program):
    def __init__(self, source):
        super().__init__()
        self.source = source

    def build(self, folder):
        modules = once("node_modules", lambda: node_modules(folder / "npm"))
        self.env = dict(self.env, NODE_PATH=str(modules))
        return ["node", str(HERE / "node" / self.source)]


class RubyProgram(Program):
    def build(self, folder):
        need(("ruby", "ruby"))
        once("bunny", lambda: call("ruby", "-e", "require 'bunny'"))
        return ["ruby", str(HERE / "ruby" / "client_bunny.rb")]


class PhpProgram(Program):
    def __init__(self, check, source):
        super().__init__()
        self.check, self.source = check, source

    def build(self, folder):
        need(("php", "php-cli"))
        once(self.source, lambda: call("php", "-r", self.check))
        return ["php", str(HERE / "php" / self.source)]


class PerlProgram(Program):
    def build(self, folder):
        need(("perl", "perl"))
        once("perl", lambda: call("perl", "-MAnyEvent::RabbitMQ", "-e", "1"))
        return ["perl", str(HERE / "perl" / "client_anyevent.pl")]


#: the slowest first
PROGRAMS = {
    "java": JavaProgram(),
    "pika": PythonProgram("pika", "python3-pika", "client_pika.py"),
    "aio-pika": PythonProgram("aio_pika", "python3-aio-pika", "client_aio_pika.py"),
    "kombu": PythonProgram("kombu", "python3-kombu", "client_kombu.py"),
    "amqplib": NodeProgram("client_amqplib.js"),
    "cloudamqp": NodeProgram("client_cloudamqp.js"),
    "php-amqplib": PhpProgram("exit(@include('PhpAmqpLib/autoload.php') ? 0 : 1);", "client_php_amqplib.php"),
    "php-amqp": PhpProgram("exit(extension_loaded('amqp') ? 0 : 1);", "client_php_amqp.php"),
    "perl": PerlProgram(),
    "bunny": RubyProgram(),
    "go": GoProgram(),
    "rabbitmq-c": CProgram(),
    "amqp-tools": ShellProgram("confirm", "return", "nack", "rpc", "cancel", "error", "heartbeat"),
}
#: those that are also tried over TLS, one of each language that has a stack of its own
TLS = ("java", "amqplib", "pika", "go")
