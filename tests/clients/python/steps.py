"""What the Python programs share: arguments, the lines they print, the data of some steps."""
# SPDX-License-Identifier: Apache-2.0
import datetime
import decimal
import os
import sys

HOST, PORT = sys.argv[1], int(sys.argv[2])
PREFIX = "clients.%s.%d." % (os.path.basename(sys.argv[0]).partition(".")[0], os.getpid())
BIG = bytes(range(256)) * (40 << 10)        # 10 MiB
TIME = datetime.datetime(2024, 2, 29, 12, 30, 15)
HEADERS = {
    "bool": True,
    "no": False,
    "int": -7,
    "long": 1 << 40,
    "least": -(1 << 31),
    "text": "Grüße ☃",
    "empty": "",
    "nothing": None,
    "bytes": b"\x00\xff\x80",
    "decimal": decimal.Decimal("3.14"),
    "time": TIME,
    "list": [1, "two", [3], {"four": 4}],
    "table": {"a": {"b": {"c": "deep"}}, "e": {}},
}


def ok(name):
    print("ok", name, flush=True)


def ask(what):
    """Ask the driver for something to happen to the connection: `cut` or `freeze`."""
    print(what, flush=True)


def same(got, wanted):
    assert got == wanted, "got %r, wanted %r" % (got, wanted)
