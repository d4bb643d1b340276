<?php
// SPDX-License-Identifier: Apache-2.0
// The steps of README.md with php-amqplib.
declare(strict_types=1);

require_once 'PhpAmqpLib/autoload.php';
require_once __DIR__ . '/steps.php';

use PhpAmqpLib\Channel\AMQPChannel;
use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Exception\AMQPBasicCancelException;
use PhpAmqpLib\Exception\AMQPConnectionClosedException;
use PhpAmqpLib\Exception\AMQPHeartbeatMissedException;
use PhpAmqpLib\Exception\AMQPIOException;
use PhpAmqpLib\Exception\AMQPProtocolChannelException;
use PhpAmqpLib\Exception\AMQPTimeoutException;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPArray;
use PhpAmqpLib\Wire\AMQPDecimal;
use PhpAmqpLib\Wire\AMQPTable;

function connect(int $heartbeat): AMQPStreamConnection
{
    return new AMQPStreamConnection(HOST, PORT, 'guest', 'guest', '/', false, 'PLAIN', null, 'en_US', 5.0,
        30.0, null, false, $heartbeat);
}

function count_of(AMQPChannel $ch): int
{
    return $ch->queue_declare(WORK, true)[1];
}

function put(AMQPChannel $ch, string $body, array $props = []): void
{
    $ch->basic_publish(new AMQPMessage($body, $props), '', WORK);
    $ch->wait_for_pending_acks(30);
}

/** A consumer that keeps its messages. */
class Collector
{
    public array $got = [];
    public string $tag;

    public function __construct(private AMQPChannel $ch, bool $noAck = false, string $queue = WORK)
    {
        $this->tag = $ch->basic_consume($queue, '', false, $noAck, false, false,
            function (AMQPMessage $message): void {
                $this->got[] = $message;
            });
    }

    public function await(int $n): array
    {
        while (count($this->got) < $n) {
            $this->ch->wait(null, false, 30);
        }
        same(count($this->got), $n);
        return $this->got;
    }

    public function facts(int $i): string
    {
        return ($this->got[$i]->isRedelivered() ? 'again ' : 'first ') . $this->got[$i]->getBody();
    }

    public function cancel(): void
    {
        $this->ch->basic_cancel($this->tag);
    }
}

$conn = connect(60);
$ch = $conn->channel();
$ch->queue_declare(WORK, false, true, false, false);
same($conn->getServerProperties()['product'][1], 'RabbitMQ');
ok('connect');

$returned = [];
$ch->set_return_listener(function (int $code, string $text, string $exchange, string $key, AMQPMessage $message)
    use (&$returned): void {
    $returned[] = [$code, $text, $message->getBody()];
});
$acked = 0;
$ch->set_ack_handler(function () use (&$acked): void {
    $acked++;
});
$ch->confirm_select();
for ($i = 0; $i < 100; $i++) {
    $ch->basic_publish(new AMQPMessage("$i", ['delivery_mode' => 2]), '', WORK, true);
}
$ch->wait_for_pending_acks_returns(30);
same([$acked, count_of($ch), $returned], [100, 100, []]);
ok('confirm');

$ch->basic_publish(new AMQPMessage('lost'), '', PREFIX . 'nowhere', true);
$ch->wait_for_pending_acks_returns(30);
same($returned, [[312, 'NO_ROUTE', 'lost']]);
ok('return');

$all = new Collector($ch);
$all->await(100);
for ($i = 0; $i < 100; $i++) {
    same($all->facts($i), "first $i");
}
for ($i = 0; $i < 50; $i++) {
    $all->got[$i]->ack();
}
$all->got[99]->ack(true);
$all->cancel();
same(count_of($ch), 0);
ok('consume');

for ($i = 0; $i < 10; $i++) {
    put($ch, "$i");
}
$ch->basic_qos(0, 3, false);
$few = new Collector($ch);
$few->await(3);
same(count_of($ch), 7);
$few->await(3);
$few->got[0]->ack();
$few->await(4);
same(count_of($ch), 6);
$few->await(4);
for ($i = 1; $i < 10; $i++) {
    $few->await(max($i + 1, count($few->got)));
    $few->got[$i]->ack();
}
$few->cancel();
$ch->basic_qos(0, 0, false);
same(count_of($ch), 0);
ok('prefetch');

foreach (['a', 'b', 'c'] as $body) {
    put($ch, $body);
}
$some = new Collector($ch);
$some->await(3);
same([$some->facts(0), $some->facts(1), $some->facts(2)], ['first a', 'first b', 'first c']);
$some->got[2]->nack(true, true);
$some->await(6);
same([$some->facts(3), $some->facts(4), $some->facts(5)], ['again a', 'again b', 'again c']);
$some->got[3]->reject(false);
$some->got[4]->reject(true);
$some->await(7);
same($some->facts(6), 'again b');
$some->got[6]->ack(true);
$some->cancel();
same(count_of($ch), 0);
ok('nack');

put($ch, 'one');
put($ch, 'two');
$one = $ch->basic_get(WORK);
same([$one->getBody(), $one->getMessageCount(), $one->isRedelivered(), $one->getRoutingKey()],
    ['one', 1, false, WORK]);
$one->ack();
same($ch->basic_get(WORK, true)->getBody(), 'two');
same($ch->basic_get(WORK), null);
ok('get');

$headers = new AMQPTable([
    'bool' => true, 'no' => false, 'int' => -7, 'long' => 1 << 40, 'text' => 'Grüße ☃', 'empty' => '',
    'nothing' => null, 'decimal' => new AMQPDecimal(314, 2), 'time' => new DateTime('@1709209815'),
    'list' => [1, 'two', [3]], 'table' => ['a' => ['b' => ['c' => 'deep']], 'e' => new AMQPTable()],
]);
$headers->set('byte', -7, AMQPTable::T_INT_SHORTSHORT);
$headers->set('unsigned byte', 200, AMQPTable::T_INT_SHORTSHORT_U);
$headers->set('short', -300, AMQPTable::T_INT_SHORT);
$headers->set('bytes', "\0\xff\x80", AMQPTable::T_BYTES);
$props = [
    'content_type' => 'text/plain', 'content_encoding' => 'utf-8', 'delivery_mode' => 2, 'priority' => 9,
    'correlation_id' => str_repeat('c', 255), 'reply_to' => 'somewhere', 'expiration' => '60000',
    'message_id' => 'm-1', 'timestamp' => 1709209815, 'type' => 'kind', 'user_id' => 'guest', 'app_id' => 'steps',
    'cluster_id' => 'cluster',
];
put($ch, 'x', $props + ['application_headers' => $headers]);
$back = $ch->basic_get(WORK, true)->get_properties();
same(plain($back['application_headers']->getNativeData()), plain($headers->getNativeData()));
unset($back['application_headers']);
ksort($back);
ksort($props);
same($back, $props);
ok('properties');

$large = new Collector($ch, true);
$big = big();
foreach (['', $big, ''] as $body) {
    put($ch, $body);
}
$large->await(3);
same([$large->got[0]->getBody(), $large->got[2]->getBody()], ['', '']);
same($large->got[1]->getBody() === $big, true);
$large->cancel();
ok('bodies');

$serving = $conn->channel();
$serving->basic_consume(WORK, '', false, true, false, false, function (AMQPMessage $request) use ($serving): void {
    $serving->basic_publish(new AMQPMessage(strtoupper($request->getBody()),
        ['correlation_id' => $request->get('correlation_id')]), '', $request->get('reply_to'));
});
$asking = $conn->channel();
$replies = new Collector($asking, true, REPLY_TO);
$asking->basic_publish(new AMQPMessage('question', ['reply_to' => REPLY_TO, 'correlation_id' => '7']), '', WORK);
$serving->wait(null, false, 30);
$replies->await(1);
same([$replies->got[0]->getBody(), $replies->got[0]->get('correlation_id')], ['QUESTION', '7']);
$asking->close();
$serving->close();
ok('rpc');

$none = new Collector($ch);
$none->cancel();
put($ch, 'after');
same([count_of($ch), $none->got], [1, []]);
$gone = new Collector($ch);
$gone->await(1);
$other = $conn->channel();
$other->queue_delete(WORK);
try {
    $ch->wait(null, false, 30);
    throw new Exception('no one said that the queue is gone');
} catch (AMQPBasicCancelException $e) {
    same($e->consumerTag, $gone->tag);
}
$other->close();
ok('cancel');

$wrong = $conn->channel();
try {
    $wrong->queue_declare(PREFIX . 'missing', true);
    throw new Exception('a queue that does not exist was found');
} catch (AMQPProtocolChannelException $e) {
    same($e->amqp_reply_code, 404);
    same(str_starts_with($e->amqp_reply_text, "NOT_FOUND - no queue '" . PREFIX . "missing'"), true);
}
$conn->channel()->close();
ok('error');

$ch->queue_declare(WORK, false, true, false, false);
put($ch, 'first', ['delivery_mode' => 2]);
put($ch, 'second', ['delivery_mode' => 2]);
$before = new Collector($ch);
$before->await(2);
$before->got[0]->ack();
same(count_of($ch), 0);
ask('cut');
try {
    $ch->wait(null, false, 30);
    throw new Exception('the connection was not lost');
} catch (AMQPConnectionClosedException | AMQPIOException $e) {
}
$conn = connect(60);
$ch = $conn->channel();
$after = new Collector($ch);
$after->await(1);
same($after->facts(0), 'again second');
$after->got[0]->ack();
same(count_of($ch), 0);
$ch->queue_delete(WORK);
$conn->close();
ok('reconnect');

$quiet = connect(2);
$quiet->set_close_on_destruct(false);
$idle = $quiet->channel();
for ($until = microtime(true) + 5; microtime(true) < $until;) {
    try {
        $idle->wait(null, false, 1);
    } catch (AMQPTimeoutException $e) {
        $quiet->checkHeartBeat();
    }
}
$idle->close();
$idle = $quiet->channel();
ask('freeze');
try {
    for ($until = microtime(true) + 30; microtime(true) < $until;) {
        try {
            $idle->wait(null, false, 1);
        } catch (AMQPTimeoutException $e) {
            $quiet->checkHeartBeat();
        }
    }
    throw new Exception('the connection was not lost');
} catch (AMQPHeartbeatMissedException $e) {
}
ok('heartbeat');

$conn = connect(60);
$conn->channel()->close();
$conn->close();
ok('close');
