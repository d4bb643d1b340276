#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Orders go out and come in, and go on when the node is started again or another takes its place.

    orders.py [HOST:PORT[,HOST:PORT...] [COUNT]]        apt-get install python3-pika
"""
import sys
import time

import pika
import pika.exceptions

ADDRESSES = sys.argv[1] if len(sys.argv) > 1 else "localhost:5672"
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 100
QUEUE = "orders.python"


def connect():
    """The first node of the list that answers, tried again until there is one."""
    account = pika.PlainCredentials("guest", "guest")
    nodes = [pika.ConnectionParameters(*address.rsplit(":", 1), credentials=account, heartbeat=10)
             for address in ADDRESSES.split(",")]
    while True:
        try:
            return pika.BlockingConnection(nodes)
        except pika.exceptions.AMQPConnectionError:
            print("no node answers, trying again", flush=True)
            time.sleep(0.5)


class Orders:
    """What has to outlive a connection: how far we are."""

    def __init__(self):
        self.published = 0
        self.received = set()

    def on_order(self, channel, method, properties, body):
        """An order may come twice: after a lost connection, or because we published it again."""
        number = int(body)
        if number not in self.received:
            self.received.add(number)
            print("received", number, flush=True)
        channel.basic_ack(method.delivery_tag)

    def run(self):
        """On one connection, until all is done or the connection is lost."""
        connection = connect()
        channel = connection.channel()
        # Declared on every connection: the node may be a new one.
        channel.queue_declare(QUEUE, durable=True)
        channel.confirm_delivery()
        channel.basic_qos(prefetch_count=10)
        tag = channel.basic_consume(QUEUE, self.on_order)

        while COUNT not in self.received:
            if self.published < COUNT:
                # Returns when the node has the order. If it raises, the next connection sends it again.
                channel.basic_publish("", QUEUE, str(self.published + 1),
                                      pika.BasicProperties(delivery_mode=2), mandatory=True)
                self.published += 1
            connection.sleep(0.05)         # in which on_order is called

        channel.basic_cancel(tag)
        print("unsubscribed", flush=True)
        connection.close()


orders = Orders()
while True:
    try:
        orders.run()
        break
    except pika.exceptions.AMQPError as lost:       # the connection, or only its channel
        print("lost the connection: %r" % lost, flush=True)
