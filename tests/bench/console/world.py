"""What a large node holds: queues, exchanges, bindings, a backlog and dead letters. Declared over AMQP, many at a time."""
# SPDX-License-Identifier: Apache-2.0
import wire

PART = 1000
VHOSTS = 10             # beside "/", each with a fiftieth of the queues
EXCHANGES = 1000
LETTERS = 1000
WAIT = 120


def name(n):
    return "q%05d" % n


class Batch:
    """Frames of a channel, sent some thousand at a time; flush() returns when the node has done them."""

    def __init__(self, chan):
        self.chan, self.frames = chan, []

    def add(self, method, **args):
        self.frames.append(wire.enc_frame(wire.FRAME_METHOD, self.chan.number, wire.enc_method(method, **args)))
        if len(self.frames) >= PART:
            self.flush()

    def publish(self, exchange, key, body, **props):
        self.frames.append(self.chan.encode_publish(exchange, key, body, **props))
        if len(self.frames) >= PART:
            self.flush()

    def flush(self):
        self.chan.conn.send_raw(b"".join(self.frames))
        self.frames = []
        self.chan.send("basic.qos", prefetch_size=0, prefetch_count=0, global_=False)
        while self.chan.conn.next_event(self.chan.number, WAIT).name != "basic.qos-ok":
            pass


def arguments(n):
    """Of some queues, as they are met."""
    return [{}, {"x-max-length": 10000}, {"x-message-ttl": 3600000}, {"x-dead-letter-exchange": "dead"}][n % 4 if n % 10 == 0 else 0]


def declare(batch, first, end, exchange_of):
    """Queues: every second durable, each bound to one exchange."""
    for n in range(first, end):
        batch.add("queue.declare", queue=name(n), durable=n % 2 == 0, nowait=True, arguments=arguments(n))
        batch.add("queue.bind", queue=name(n), exchange=exchange_of(n), routing_key="key.%d.#" % n, nowait=True)
    batch.flush()


def make(node, queues):
    """All of it. The first tenth of the queues is kept empty, for those who load the node."""
    fiftieth = queues // 50
    batch = Batch(node.raw().channel())
    batch.add("exchange.declare", exchange="dead", type="fanout", durable=True, nowait=True)
    batch.add("queue.declare", queue="z letters", durable=True, nowait=True)
    batch.add("queue.bind", queue="z letters", exchange="dead", routing_key="", nowait=True)
    for n in range(EXCHANGES):
        batch.add("exchange.declare", exchange="x%04d" % n, type=("topic", "direct", "fanout")[n % 3], durable=True, nowait=True)
    own = queues - VHOSTS * fiftieth
    declare(batch, 0, own, lambda n: "x%04d" % (n % EXCHANGES))
    for n in range(own // 10, own, 7):
        for _ in range(1 + n % 5):
            batch.publish("", name(n), b"x" * (n % 300), delivery_mode=1 + n % 2)
    batch.add("queue.declare", queue="z dying", durable=True, nowait=True,
              arguments={"x-dead-letter-exchange": "dead", "x-message-ttl": 1})
    for n in range(LETTERS):
        batch.publish("", "z dying", b"letter %d" % n, delivery_mode=2)
    batch.flush()
    for v in range(VHOSTS):
        node.http("/api/vhosts/tenant-%d" % v, "PUT", {})
        node.http("/api/permissions/tenant-%d/guest" % v, "PUT", {"configure": ".*", "write": ".*", "read": ".*"})
        declare(Batch(node.raw(vhost="tenant-%d" % v).channel()), own + v * fiftieth, own + (v + 1) * fiftieth, lambda _: "amq.topic")
    node.abort_conns()
