<?php
// SPDX-License-Identifier: Apache-2.0
// The steps of README.md with php-amqp (the extension over rabbitmq-c).
declare(strict_types=1);

require_once __DIR__ . '/steps.php';

function connect(int $heartbeat): AMQPConnection
{
    $conn = new AMQPConnection(['host' => HOST, 'port' => PORT, 'login' => 'guest', 'password' => 'guest',
        'read_timeout' => 30, 'heartbeat' => $heartbeat]);
    $conn->connect();
    return $conn;
}

function queue(AMQPChannel $ch, string $name = WORK): AMQPQueue
{
    $queue = new AMQPQueue($ch);
    $queue->setName($name);
    $queue->setFlags(AMQP_DURABLE);
    return $queue;
}

/** Each count on a channel of its own: the library keeps a queue's flags, and passive is one. */
function count_of(AMQPConnection $conn): int
{
    $ch = new AMQPChannel($conn);
    $queue = queue($ch);
    $queue->setFlags(AMQP_PASSIVE);
    $count = $queue->declareQueue();
    $ch->close();
    return $count;
}

function facts(AMQPEnvelope $envelope): string
{
    return ($envelope->isRedelivery() ? 'again ' : 'first ') . $envelope->getBody();
}

/** Takes n messages more from a consumer, which is made by the first call and goes on after it. */
function take(AMQPQueue $queue, int $n, bool $first = false, int $flags = AMQP_NOPARAM): array
{
    $got = [];
    if ($first) {
        $queue->consume(null, $flags);
    }
    $queue->consume(function (AMQPEnvelope $envelope) use (&$got, $n): bool {
        $got[] = $envelope;
        return count($got) < $n;
    }, AMQP_JUST_CONSUME);
    return $got;
}

/** Publishes, in confirm mode, and waits until all are confirmed. */
function put(AMQPChannel $ch, array $bodies, array $props = [], string $key = WORK, int $flags = AMQP_NOPARAM): void
{
    $open = count($bodies);
    // Tags are ascending; an answer for several counts for all up to its own.
    static $confirmed = [];
    $id = spl_object_id($ch);
    $confirmed[$id] ??= 0;
    $target = $confirmed[$id] + $open;
    $ch->setConfirmCallback(function (int $tag, bool $multiple) use (&$confirmed, $id, $target): bool {
        $confirmed[$id] = $multiple ? $tag : $confirmed[$id] + 1;
        return $confirmed[$id] < $target;
    }, function (): bool {
        throw new Exception('a message was refused');
    });
    $exchange = new AMQPExchange($ch);
    foreach ($bodies as $body) {
        $exchange->publish($body, $key, $flags, $props);
    }
    $ch->waitForConfirm(30);
}

$conn = connect(60);
// The library reads what a channel is sent only while it waits on it: so one to publish, one to consume.
$out = new AMQPChannel($conn);
$other = connect(60);
$ch = new AMQPChannel($other);
$queue = queue($ch);
$queue->declareQueue();
ok('connect');

$out->confirmSelect();
$returned = [];
$out->setReturnCallback(function (int $code, string $text, string $exchange, string $key, AMQPBasicProperties $props,
    string $body) use (&$returned): bool {
    $returned[] = [$code, $text, $body];
    return true;
});
put($out, array_map(strval(...), range(0, 99)), ['delivery_mode' => 2], WORK, AMQP_MANDATORY);
same([count_of($conn), $returned], [100, []]);
ok('confirm');

put($out, ['lost'], [], PREFIX . 'nowhere', AMQP_MANDATORY);
same($returned, [[312, 'NO_ROUTE', 'lost']]);
ok('return');

// The prefetch that the library sets by itself, 3, would end this.
$ch->setPrefetchCount(0);
$all = take($queue, 100, true);
same(array_map(facts(...), $all), array_map(fn (int $i): string => "first $i", range(0, 99)));
for ($i = 0; $i < 50; $i++) {
    $queue->ack($all[$i]->getDeliveryTag());
}
$queue->ack($all[99]->getDeliveryTag(), AMQP_MULTIPLE);
$queue->cancel();
same(count_of($conn), 0);
ok('consume');

put($out, array_map(strval(...), range(0, 9)));
$ch->setPrefetchCount(3);
$few = take($queue, 3, true);
same(count_of($conn), 7);
$queue->ack($few[0]->getDeliveryTag());
$few = array_merge($few, take($queue, 1));
same(count_of($conn), 6);
for ($i = 1; $i < 10; $i++) {
    $queue->ack($few[$i]->getDeliveryTag());
    if (count($few) < 10) {
        $few = array_merge($few, take($queue, 1));
    }
}
same(array_map(facts(...), $few), array_map(fn (int $i): string => "first $i", range(0, 9)));
$queue->cancel();
$ch->setPrefetchCount(0);
same(count_of($conn), 0);
ok('prefetch');

put($out, ['a', 'b', 'c']);
$some = take($queue, 3, true);
same(array_map(facts(...), $some), ['first a', 'first b', 'first c']);
$queue->nack($some[2]->getDeliveryTag(), AMQP_MULTIPLE | AMQP_REQUEUE);
$some = take($queue, 3);
same(array_map(facts(...), $some), ['again a', 'again b', 'again c']);
$queue->reject($some[0]->getDeliveryTag());
$queue->reject($some[1]->getDeliveryTag(), AMQP_REQUEUE);
$again = take($queue, 1);
same(facts($again[0]), 'again b');
$queue->ack($again[0]->getDeliveryTag(), AMQP_MULTIPLE);
$queue->cancel();
same(count_of($conn), 0);
ok('nack');

put($out, ['one', 'two']);
$one = $queue->get();
same([facts($one), $one->getRoutingKey()], ['first one', WORK]);
$queue->ack($one->getDeliveryTag());
same(facts($queue->get(AMQP_AUTOACK)), 'first two');
same($queue->get(), false);
ok('get');

$headers = [
    'bool' => true, 'no' => false, 'int' => -7, 'least' => PHP_INT_MIN, 'double' => -0.1, 'text' => 'Grüße ☃',
    'empty' => '', 'nothing' => null, 'decimal' => new AMQPDecimal(2, 314), 'time' => new AMQPTimestamp(1709209815),
    'list' => ['one', 'two'],          // of strings only: the library leaves out all else in a list
    'table' => ['a' => ['b' => ['c' => 'deep']]],
];
put($out, ['x'], [
    'content_type' => 'text/plain', 'content_encoding' => 'utf-8', 'delivery_mode' => 2, 'priority' => 9,
    'correlation_id' => str_repeat('c', 255), 'reply_to' => 'somewhere', 'expiration' => '60000',
    'message_id' => 'm-1', 'timestamp' => 1709209815, 'type' => 'kind', 'user_id' => 'guest', 'app_id' => 'steps',
    'headers' => $headers,
]);
$back = $queue->get(AMQP_AUTOACK);
same(plain($back->getHeaders()), plain($headers));
same([$back->getContentType(), $back->getContentEncoding(), $back->getDeliveryMode(), $back->getPriority()],
    ['text/plain', 'utf-8', 2, 9]);
same([$back->getCorrelationId(), $back->getReplyTo(), $back->getExpiration(), $back->getMessageId()],
    [str_repeat('c', 255), 'somewhere', '60000', 'm-1']);
same([(int)(string)$back->getTimestamp(), $back->getType(), $back->getUserId(), $back->getAppId()],
    [1709209815, 'kind', 'guest', 'steps']);
ok('properties');

$big = big();
put($out, ['', $big, '']);
$large = take($queue, 3, true, AMQP_AUTOACK);
same([(string)$large[0]->getBody(), (string)$large[2]->getBody()], ['', '']);      // false is its way to say empty
same($large[1]->getBody() === $big, true);
$queue->cancel();
ok('bodies');

$asking = new AMQPChannel(connect(60));
$replies = queue($asking, REPLY_TO);
$replies->consume(null, AMQP_AUTOACK);
(new AMQPExchange($asking))->publish('question', WORK, AMQP_NOPARAM,
    ['reply_to' => REPLY_TO, 'correlation_id' => '7']);
$request = take($queue, 1, true, AMQP_AUTOACK)[0];
put($out, [strtoupper($request->getBody())], ['correlation_id' => $request->getCorrelationId()],
    $request->getReplyTo());
$answer = take($replies, 1)[0];
same([$answer->getBody(), $answer->getCorrelationId()], ['QUESTION', '7']);
$queue->cancel();
$asking->getConnection()->disconnect();
ok('rpc');

$queue->consume(null);
$queue->cancel();
put($out, ['after']);
same(count_of($conn), 1);
$queue->purge();
ok('cancel');

try {
    $wrong = new AMQPChannel($other);
    $missing = queue($wrong, PREFIX . 'missing');
    $missing->setFlags(AMQP_PASSIVE);
    $missing->declareQueue();
    throw new Exception('a queue that does not exist was found');
} catch (AMQPQueueException $e) {
    same($e->getCode(), 404);
    same(str_contains($e->getMessage(), "NOT_FOUND - no queue '" . PREFIX . "missing'"), true);
}
(new AMQPChannel($other))->close();
ok('error');

put($out, ['first', 'second'], ['delivery_mode' => 2]);
$both = take($queue, 2, true);
$queue->ack($both[0]->getDeliveryTag());
same(count_of($conn), 0);
ask('cut');
try {
    take($queue, 1);
    throw new Exception('the connection was not lost');
} catch (AMQPException $e) {
}
$conn->disconnect();
$other->reconnect();
$ch = new AMQPChannel($other);
$ch->setPrefetchCount(0);
$queue = queue($ch);
$again = take($queue, 1, true);
same(facts($again[0]), 'again second');
$queue->ack($again[0]->getDeliveryTag());
$queue->cancel();
same(count_of($other), 0);
$queue->delete();
ok('reconnect');

$quiet = connect(2);
$idle = new AMQPChannel($quiet);
$own = new AMQPQueue($idle);
$own->setFlags(AMQP_EXCLUSIVE);
$own->declareQueue();
$quiet->setReadTimeout(5);
$own->consume(null);
try {
    take($own, 1);
} catch (AMQPQueueException $e) {
    same($e->getMessage(), 'Consumer timeout exceed');
}
$quiet->setReadTimeout(30);
ask('freeze');
$from = microtime(true);
try {
    take($own, 1);
    throw new Exception('the connection was not lost');
} catch (AMQPException $e) {
    same([str_contains($e->getMessage(), 'heartbeat'), microtime(true) - $from < 20], [true, true]);
}
ok('heartbeat');

$conn = connect(60);
(new AMQPChannel($conn))->close();
$conn->disconnect();
ok('close');
ask('cut');         // else the end of the program waits for the frozen connections
