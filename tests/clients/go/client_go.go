// SPDX-License-Identifier: Apache-2.0

// The steps of README.md with amqp091-go.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const replyTo = "amq.rabbitmq.reply-to"

var (
	prefix = fmt.Sprintf("clients.go.%d.", os.Getpid())
	work   = prefix + "work"
	ctx    = context.Background()
)

func ok(name string) { fmt.Println("ok " + name) }

func ask(what string) { fmt.Println(what) }

func fail(format string, args ...interface{}) { panic(fmt.Sprintf(format, args...)) }

func check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func same(got, wanted interface{}) {
	if !reflect.DeepEqual(got, wanted) {
		fail("got %#v, wanted %#v", got, wanted)
	}
}

func connect(heartbeat time.Duration) (*amqp.Connection, chan *amqp.Error) {
	url := fmt.Sprintf("amqp://guest:guest@%s:%s/", os.Args[1], os.Args[2])
	config := amqp.Config{Heartbeat: heartbeat}
	if ca := os.Getenv("CLIENTS_CA"); ca != "" {
		pem, err := os.ReadFile(ca)
		check(err)
		config.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		same(config.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem), true)
		url = strings.Replace(url, "amqp:", "amqps:", 1)
	}
	conn, err := amqp.DialConfig(url, config)
	check(err)
	return conn, conn.NotifyClose(make(chan *amqp.Error, 1))
}

func channel(conn *amqp.Connection) *amqp.Channel {
	ch, err := conn.Channel()
	check(err)
	return ch
}

func count(ch *amqp.Channel, queue string) int {
	q, err := ch.QueueInspect(queue)
	check(err)
	return q.Messages
}

// A publisher waits for its confirms, one for each message and in their order. It does not use
// PublishWithDeferredConfirm: version 1.5 registers what it waits for after it has written the message, and
// waits for ever when the confirm is there before that.
type publisher struct {
	*amqp.Channel
	confirmed chan amqp.Confirmation
	returned  chan amqp.Return
}

func confirming(ch *amqp.Channel) publisher {
	check(ch.Confirm(false))
	return publisher{ch, ch.NotifyPublish(make(chan amqp.Confirmation, 200)), ch.NotifyReturn(make(chan amqp.Return, 10))}
}

func (p publisher) send(key string, mandatory bool, msg amqp.Publishing) {
	check(p.PublishWithContext(ctx, "", key, mandatory, false, msg))
}

func (p publisher) await(n int) {
	for i := 0; i < n; i++ {
		select {
		case c, open := <-p.confirmed:
			if !open || !c.Ack {
				fail("a message was refused, or its channel was closed")
			}
		case <-time.After(30 * time.Second):
			fail("waited 30 s in vain for a confirm")
		}
	}
}

func (p publisher) put(msg amqp.Publishing) {
	p.send(work, false, msg)
	p.await(1)
}

func (p publisher) putText(body string) { p.put(amqp.Publishing{Body: []byte(body)}) }

func consume(ch *amqp.Channel, tag string, autoAck bool) <-chan amqp.Delivery {
	deliveries, err := ch.Consume(work, tag, autoAck, false, false, false, nil)
	check(err)
	return deliveries
}

func next(deliveries <-chan amqp.Delivery) amqp.Delivery {
	select {
	case d, open := <-deliveries:
		if !open {
			fail("the consumer has ended")
		}
		return d
	case <-time.After(30 * time.Second):
		fail("waited 30 s in vain")
	}
	return amqp.Delivery{}
}

func nothing(deliveries <-chan amqp.Delivery) {
	select {
	case d := <-deliveries:
		fail("too much came: %s", d.Body)
	default:
	}
}

func facts(d amqp.Delivery) string {
	if d.Redelivered {
		return "again " + string(d.Body)
	}
	return "first " + string(d.Body)
}

func declare(ch *amqp.Channel) {
	_, err := ch.QueueDeclare(work, true, false, false, false, nil)
	check(err)
}

func remove(ch *amqp.Channel) {
	_, err := ch.QueueDelete(work, false, false, false)
	check(err)
}

func confirms(p publisher) {
	for i := 0; i < 100; i++ {
		p.send(work, true, amqp.Publishing{Body: []byte(fmt.Sprint(i)), DeliveryMode: amqp.Persistent})
	}
	p.await(100)
	same([]int{count(p.Channel, work), len(p.returned)}, []int{100, 0})
	ok("confirm")

	p.send(prefix+"nowhere", true, amqp.Publishing{Body: []byte("lost")})
	p.await(1)
	back := <-p.returned
	same([]interface{}{int(back.ReplyCode), back.ReplyText, string(back.Body)}, []interface{}{312, "NO_ROUTE", "lost"})
	ok("return")
}

func consumers(p publisher) {
	ch := p.Channel
	deliveries := consume(ch, "all", false)
	for i := 0; i < 100; i++ {
		d := next(deliveries)
		same(facts(d), fmt.Sprintf("first %d", i))
		if i < 50 || i == 99 {
			check(d.Ack(i == 99))
		}
	}
	check(ch.Cancel("all", false))
	same(count(ch, work), 0)
	ok("consume")

	for i := 0; i < 10; i++ {
		p.putText(fmt.Sprint(i))
	}
	check(ch.Qos(3, 0, false))
	deliveries = consume(ch, "few", false)
	held := []amqp.Delivery{next(deliveries), next(deliveries), next(deliveries)}
	same(count(ch, work), 7)
	nothing(deliveries)
	check(held[0].Ack(false))
	held = append(held, next(deliveries))
	same(count(ch, work), 6)
	nothing(deliveries)
	for i := 1; i < 10; i++ {
		if i >= len(held) {
			held = append(held, next(deliveries))
		}
		check(held[i].Ack(false))
	}
	check(ch.Cancel("few", false))
	check(ch.Qos(0, 0, false))
	same(count(ch, work), 0)
	ok("prefetch")

	for _, body := range []string{"a", "b", "c"} {
		p.putText(body)
	}
	deliveries = consume(ch, "some", false)
	same(facts(next(deliveries))+facts(next(deliveries)), "first afirst b")
	c := next(deliveries)
	same(facts(c), "first c")
	check(c.Nack(true, true))
	a, b, c := next(deliveries), next(deliveries), next(deliveries)
	same(facts(a)+facts(b)+facts(c), "again aagain bagain c")
	check(a.Reject(false))
	check(b.Reject(true))
	b = next(deliveries)
	same(facts(b), "again b")
	check(b.Ack(true))
	check(ch.Cancel("some", false))
	same(count(ch, work), 0)
	ok("nack")

	p.putText("one")
	p.putText("two")
	one, found, err := ch.Get(work, false)
	check(err)
	same([]interface{}{found, facts(one), int(one.MessageCount), one.RoutingKey},
		[]interface{}{true, "first one", 1, work})
	check(one.Ack(false))
	two, _, err := ch.Get(work, true)
	check(err)
	same(facts(two), "first two")
	_, found, err = ch.Get(work, false)
	check(err)
	same(found, false)
	ok("get")
}

func contents(p publisher) {
	ch := p.Channel
	at := time.Unix(1709209815, 0)
	headers := amqp.Table{
		"bool": true, "no": false, "unsigned": byte(200), "byte": int8(-7), "short": int16(-300),
		"int": int32(-1 << 31), "long": int64(-1 << 63), "float": float32(1.5), "double": -0.1,
		"decimal": amqp.Decimal{Scale: 2, Value: 314}, "text": "Grüße ☃", "empty": "", "nothing": nil,
		"time": at, "bytes": []byte{0, 255, 128},
		"list":  []interface{}{int32(1), "two", []interface{}{int32(3)}, amqp.Table{"four": int32(4)}},
		"table": amqp.Table{"a": amqp.Table{"b": amqp.Table{"c": "deep"}}, "e": amqp.Table{}},
	}
	sent := amqp.Publishing{
		Headers: headers, ContentType: "text/plain", ContentEncoding: "utf-8", DeliveryMode: amqp.Persistent,
		Priority: 9, CorrelationId: strings.Repeat("c", 255), ReplyTo: "somewhere", Expiration: "60000",
		MessageId: "m-1", Timestamp: at, Type: "kind", UserId: "guest", AppId: "steps", Body: []byte("x"),
	}
	p.put(sent)
	d, _, err := ch.Get(work, true)
	check(err)
	same(d.Headers, headers)
	same(amqp.Publishing{
		Headers: headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding,
		DeliveryMode: d.DeliveryMode, Priority: d.Priority, CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo,
		Expiration: d.Expiration, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, UserId: d.UserId,
		AppId: d.AppId, Body: d.Body,
	}, sent)
	ok("properties")

	big := make([]byte, 10<<20)
	for i := range big {
		big[i] = byte(i ^ i>>8)
	}
	deliveries := consume(ch, "large", true)
	for _, body := range [][]byte{{}, big, {}} {
		p.put(amqp.Publishing{Body: body})
	}
	same(len(next(deliveries).Body), 0)
	same(bytes.Equal(next(deliveries).Body, big), true)
	same(len(next(deliveries).Body), 0)
	check(ch.Cancel("large", false))
	ok("bodies")
}

func rpc(conn *amqp.Connection) {
	serving := channel(conn)
	requests := consume(serving, "server", true)
	go func() {
		for d := range requests {
			check(serving.PublishWithContext(ctx, "", d.ReplyTo, false, false, amqp.Publishing{
				CorrelationId: d.CorrelationId, Body: bytes.ToUpper(d.Body)}))
		}
	}()
	asking := channel(conn)
	replies, err := asking.Consume(replyTo, "", true, false, false, false, nil)
	check(err)
	check(asking.PublishWithContext(ctx, "", work, false, false, amqp.Publishing{
		ReplyTo: replyTo, CorrelationId: "7", Body: []byte("question")}))
	answer := next(replies)
	same([]string{string(answer.Body), answer.CorrelationId}, []string{"QUESTION", "7"})
	check(asking.Close())
	check(serving.Close())
	ok("rpc")
}

func endings(conn *amqp.Connection, p publisher) {
	ch := p.Channel
	none := consume(ch, "none", false)
	check(ch.Cancel("none", false))
	p.putText("after")
	same(count(ch, work), 1)
	if d, open := <-none; open {
		fail("a cancelled consumer got %s", d.Body)
	}
	cancelled := ch.NotifyCancel(make(chan string, 1))
	consume(ch, "gone", false)
	remove(ch)
	same(<-cancelled, "gone")
	ok("cancel")

	wrong := channel(conn)
	_, err := wrong.QueueInspect(prefix + "missing")
	failure, is := err.(*amqp.Error)
	if !is {
		fail("a queue that does not exist was found, or: %v", err)
	}
	same([]interface{}{failure.Code, failure.Server}, []interface{}{404, true})
	if !strings.HasPrefix(failure.Reason, "NOT_FOUND - no queue '"+prefix+"missing'") {
		fail("%s", failure.Reason)
	}
	check(channel(conn).Close())
	ok("error")
}

func reconnect(p publisher, lost chan *amqp.Error) {
	ch := p.Channel
	declare(ch)
	p.put(amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("first")})
	p.put(amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("second")})
	deliveries := consume(ch, "before", false)
	check(next(deliveries).Ack(false))
	next(deliveries)
	same(count(ch, work), 0)
	ask("cut")
	if err := <-lost; err == nil {
		fail("the connection was closed in peace")
	}
	conn, _ := connect(time.Minute)
	ch = channel(conn)
	second := next(consume(ch, "after", false))
	same(facts(second), "again second")
	check(second.Ack(false))
	same(count(ch, work), 0)
	remove(ch)
	check(conn.Close())
	ok("reconnect")
}

func main() {
	conn, lost := connect(time.Minute)
	ch := channel(conn)
	declare(ch)
	same(conn.Properties["product"], "RabbitMQ")
	ok("connect")

	p := confirming(ch)
	confirms(p)
	consumers(p)
	contents(p)
	rpc(conn)
	endings(conn, p)
	reconnect(p, lost)

	quiet, lost := connect(2 * time.Second)
	time.Sleep(5 * time.Second)
	check(channel(quiet).Close())
	ask("freeze")
	if err := <-lost; err == nil {
		fail("the connection was closed in peace")
	}
	ok("heartbeat")

	conn, _ = connect(time.Minute)
	check(channel(conn).Close())
	check(conn.Close())
	ok("close")
}
