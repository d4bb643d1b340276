# SPDX-License-Identifier: Apache-2.0
# The steps of README.md with bunny. Its connections come back by themselves.
require "bunny"
require "logger"

$stdout.sync = true
HOST, PORT = ARGV[0], ARGV[1].to_i
PREFIX = "clients.ruby.#{Process.pid}.".freeze
WORK = "#{PREFIX}work".freeze
REPLY_TO = "amq.rabbitmq.reply-to".freeze

def ok(name)
  puts "ok #{name}"
end

def ask(what)
  puts what
end

def same(got, wanted)
  raise "got #{got.inspect[0, 2000]}, wanted #{wanted.inspect[0, 2000]}" unless got == wanted
end

def wait_for
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
  until yield
    raise "waited 30 s in vain" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    sleep 0.005
  end
end

def connect(heartbeat, **options)
  Bunny.new(host: HOST, port: PORT, username: "guest", password: "guest", heartbeat: heartbeat,
            network_recovery_interval: 0.05, logger: Logger.new(IO::NULL), **options).start
end

def count(ch)
  ch.queue_declare(WORK, passive: true).message_count
end

# A consumer that keeps what comes as [redelivered, body, delivery tag, properties].
class Collector
  attr_reader :got, :tag

  def initialize(channel, queue = WORK, no_ack: false, &on_cancellation)
    @got = []
    @channel = channel
    consumer = Bunny::Consumer.new(channel, queue, channel.generate_consumer_tag, no_ack)
    consumer.on_delivery { |info, props, body| @got << [info.redelivered, body, info.delivery_tag, props] }
    consumer.on_cancellation(&on_cancellation) if on_cancellation
    @tag = consumer.consumer_tag
    channel.basic_consume_with(consumer)
  end

  def await(count)
    wait_for { @got.size >= count }
    same(@got.size, count)
    @got
  end

  def cancel
    @channel.basic_cancel(@tag)
  end
end

def facts(deliveries)
  deliveries.map { |redelivered, body| [redelivered, body.force_encoding("UTF-8")] }
end

HEADERS = {
  "bool" => true, "no" => false, "int" => -7, "least" => -(1 << 63), "double" => -0.1, "text" => "Grüße ☃",
  "empty" => "", "nothing" => nil, "time" => Time.at(1_709_209_815), "list" => [1, "two", [3], { "four" => 4 }],
  "table" => { "a" => { "b" => { "c" => "deep" } }, "e" => {} }
}.freeze

conn = connect(60)
ch = conn.create_channel
ch.queue_declare(WORK, durable: true)
same(conn.server_properties["product"], "RabbitMQ")
ok "connect"

exchange = ch.default_exchange
returned = []
exchange.on_return { |info, _props, body| returned << [info.reply_code, info.reply_text, body] }
ch.confirm_select
100.times { |i| exchange.publish(i.to_s, routing_key: WORK, persistent: true, mandatory: true) }
same(ch.wait_for_confirms, true)
same([count(ch), returned.size], [100, 0])
ok "confirm"

exchange.publish("lost", routing_key: "#{PREFIX}nowhere", mandatory: true)
same(ch.wait_for_confirms, true)
wait_for { returned.size == 1 }
same(returned, [[312, "NO_ROUTE", "lost"]])
ok "return"

all = Collector.new(ch)
all.await(100)
same(facts(all.got), (0...100).map { |i| [false, i.to_s] })
all.got[0, 50].each { |delivery| ch.ack(delivery[2]) }
ch.ack(all.got[99][2], true)
all.cancel
same(count(ch), 0)
ok "consume"

10.times { |i| exchange.publish(i.to_s, routing_key: WORK) }
ch.wait_for_confirms
ch.prefetch(3)
few = Collector.new(ch)
few.await(3)
same(count(ch), 7)
few.await(3)
ch.ack(few.got[0][2])
few.await(4)
same(count(ch), 6)
few.await(4)
(1...10).each do |i|
  wait_for { few.got.size > i }
  ch.ack(few.got[i][2])
end
few.cancel
ch.prefetch(0)
same(count(ch), 0)
ok "prefetch"

%w[a b c].each { |body| exchange.publish(body, routing_key: WORK) }
some = Collector.new(ch)
same(facts(some.await(3)), [[false, "a"], [false, "b"], [false, "c"]])
ch.nack(some.got[2][2], true, true)
same(facts(some.await(6)[3, 3]), [[true, "a"], [true, "b"], [true, "c"]])
ch.reject(some.got[3][2], false)
ch.reject(some.got[4][2], true)
same(facts(some.await(7)[6, 1]), [[true, "b"]])
ch.ack(some.got[6][2], true)
some.cancel
same(count(ch), 0)
ok "nack"

exchange.publish("one", routing_key: WORK)
exchange.publish("two", routing_key: WORK)
ch.wait_for_confirms
info, _props, body = ch.basic_get(WORK, manual_ack: true)
same([info.redelivered, body, info.message_count, info.routing_key], [false, "one", 1, WORK])
ch.ack(info.delivery_tag)
same(ch.basic_get(WORK, manual_ack: false)[2], "two")
same(ch.basic_get(WORK), [nil, nil, nil])
ok "get"

props = {
  content_type: "text/plain", content_encoding: "utf-8", headers: HEADERS, delivery_mode: 2, priority: 9,
  correlation_id: "c" * 255, reply_to: "somewhere", expiration: "60000", message_id: "m-1",
  timestamp: 1_709_209_815, type: "kind", user_id: "guest", app_id: "steps", cluster_id: "cluster"
}
ch.basic_publish("x", "", WORK, props)
ch.wait_for_confirms
_info, back, = ch.basic_get(WORK, manual_ack: false)
back = back.to_hash
back[:headers]["text"].force_encoding("UTF-8")
same(back, props.merge(timestamp: Time.at(1_709_209_815)))
ok "properties"

big = (0..256).to_a.pack("C*") * (10 << 12)
big = big[0, 10 << 20]
large = Collector.new(ch, no_ack: true)
["", big, ""].each { |content| exchange.publish(content, routing_key: WORK) }
large.await(3)
same(large.got.map { |delivery| delivery[1].bytesize }, [0, 10 << 20, 0])
same(large.got[1][1].b == big.b, true)
large.cancel
ok "bodies"

# On a connection of its own: after a cut the library would open these channels again.
other = connect(60)
serving = other.create_channel
server = Bunny::Consumer.new(serving, WORK, "server", true)
server.on_delivery do |_info, request, question|
  serving.default_exchange.publish(question.upcase, routing_key: request.reply_to,
                                                    correlation_id: request.correlation_id)
end
serving.basic_consume_with(server)
asking = other.create_channel
replies = Collector.new(asking, REPLY_TO, no_ack: true)
asking.default_exchange.publish("question", routing_key: WORK, reply_to: REPLY_TO, correlation_id: "7")
replies.await(1)
same([replies.got[0][1], replies.got[0][3].correlation_id], %w[QUESTION 7])
asking.close
serving.close
ok "rpc"

none = Collector.new(ch)
none.cancel
exchange.publish("after", routing_key: WORK)
ch.wait_for_confirms
same([count(ch), none.got], [1, []])
cancelled = []
gone = Collector.new(other.create_channel) { |cancel| cancelled << cancel.consumer_tag }
ch.queue_delete(WORK)
wait_for { cancelled.any? }
same(cancelled, [gone.tag])
other.close
ok "cancel"

wrong = conn.create_channel
begin
  wrong.queue_declare("#{PREFIX}missing", passive: true)
  raise "a queue that does not exist was found"
rescue Bunny::NotFound => e
  same(e.channel_close.reply_code, 404)
  same(e.message.start_with?("NOT_FOUND - no queue '#{PREFIX}missing'"), true)
end
conn.create_channel.close
ok "error"

ch.queue_declare(WORK, durable: true)
exchange.publish("first", routing_key: WORK, persistent: true)
exchange.publish("second", routing_key: WORK, persistent: true)
ch.wait_for_confirms
both = Collector.new(ch)
both.await(2)
ch.ack(both.got[0][2])
same(count(ch), 0)
back = 0
conn.after_recovery_completed { back += 1 }
ask "cut"
wait_for { back == 1 }
same(facts(both.await(3)[2, 1]), [[true, "second"]])
ch.ack(both.got[2][2])
same(count(ch), 0)
ch.queue_delete(WORK)
ok "reconnect"

quiet = connect(2, recovery_completed: -> { back += 1 })
sleep 5
quiet.create_channel.close
back = 0
ask "freeze"
wait_for { back == 1 }          # it has seen that the connection is dead, and made another
quiet.close
ok "heartbeat"

conn = connect(60)
conn.create_channel.close
conn.close
ok "close"
exit! 0                         # the frozen connection would hold up an orderly end
