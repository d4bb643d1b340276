// SPDX-License-Identifier: Apache-2.0

// Orders go out and come in, and go on when the node is started again or another takes its place.
//
//	go run orders.go [HOST:PORT[,HOST:PORT...] [COUNT]]
//
// With Debian's library: apt-get install golang-go golang-github-rabbitmq-amqp091-go-dev, and
// GO111MODULE=off GOPATH=/usr/share/gocode before the command.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const queue = "orders.go"

// connect returns a connection to the first node of the list that answers, and tries until there is one.
func connect(addresses []string) *amqp.Connection {
	for {
		for _, address := range addresses {
			conn, err := amqp.DialConfig("amqp://guest:guest@"+address+"/", amqp.Config{Heartbeat: 10 * time.Second})
			if err == nil {
				return conn
			}
		}
		fmt.Println("no node answers, trying again")
		time.Sleep(500 * time.Millisecond)
	}
}

// orders has what must outlive a connection: how far we are.
type orders struct {
	addresses []string
	count     int
	published int
	received  map[int]bool
}

// take handles one delivery. An order may come twice: after a lost connection, or because we published it
// again.
func (o *orders) take(d amqp.Delivery) error {
	number, err := strconv.Atoi(string(d.Body))
	if err != nil {
		return d.Reject(false)
	}
	if !o.received[number] {
		o.received[number] = true
		fmt.Println("received", number)
	}
	return d.Ack(false)
}

// publish sends the next order.
func (o *orders) publish(ch *amqp.Channel) error {
	return ch.PublishWithContext(context.Background(), "", queue, true, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, Body: []byte(strconv.Itoa(o.published + 1))})
}

// run works on one connection until all is done, or returns why it has ended.
func (o *orders) run() error {
	conn := connect(o.addresses)
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	// Declared on every connection: the node may be a new one.
	if _, err = ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
		return err
	}
	if err = ch.Confirm(false); err != nil {
		return err
	}
	confirmed := ch.NotifyPublish(make(chan amqp.Confirmation, 1))
	if err = ch.Qos(10, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume(queue, "orders", false, false, false, false, nil)
	if err != nil {
		return err
	}

	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	waiting := false // for a confirm
	for !o.received[o.count] {
		select {
		case <-pace.C:
			if !waiting && o.published < o.count {
				if err = o.publish(ch); err != nil {
					return err
				}
				waiting = true
			}
		case c, open := <-confirmed:
			// Without its confirm an order counts as not sent: the next connection sends it again.
			if !open {
				return errors.New("the channel was closed")
			}
			if c.Ack {
				o.published++
			}
			waiting = false
		case d, open := <-deliveries:
			if !open {
				return errors.New("the consumer has ended")
			}
			if err = o.take(d); err != nil {
				return err
			}
		}
	}
	if err = ch.Cancel("orders", false); err != nil {
		return err
	}
	fmt.Println("unsubscribed")
	return nil
}

func main() {
	o := &orders{addresses: []string{"localhost:5672"}, count: 100, received: map[int]bool{}}
	if len(os.Args) > 1 {
		o.addresses = strings.Split(os.Args[1], ",")
	}
	if len(os.Args) > 2 {
		o.count, _ = strconv.Atoi(os.Args[2])
	}
	for {
		err := o.run()
		if err == nil {
			return
		}
		fmt.Println("lost the connection:", err)
	}
}
