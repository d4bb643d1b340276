#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The steps of README.md with AnyEvent::RabbitMQ.
use strict;
use warnings;
use utf8;

use AnyEvent;
use AnyEvent::RabbitMQ;
use Encode qw(encode_utf8);
use Net::AMQP::Value;

$| = 1;
my ($host, $port) = @ARGV;
my $prefix   = "clients.perl.$$.";
my $work     = "${prefix}work";
my $reply_to = 'amq.rabbitmq.reply-to';
my $lost;    # what the library said of the connection it was told to watch

sub ok  { print "ok $_[0]\n" }
sub ask { print "$_[0]\n" }

sub same {
    my ($got, $wanted) = map { ref $_ ? join('|', map { defined $_ ? "$_" : 'undef' } @$_) : $_ } @_;
    die "got $got, wanted $wanted\n" if $got ne $wanted;
}

# Calls METHOD of a connection or channel and returns what it succeeds with.
sub call {
    my ($object, $method, %args) = @_;
    my $done  = AnyEvent->condvar;
    my $timer = AnyEvent->timer(after => 30, cb => sub { $done->croak("$method: waited 30 s in vain") });
    $object->$method(
        %args,
        on_success => sub { $done->send(@_) },
        on_failure => sub { $done->croak("$method failed: " . reason(@_)) },
    );
    return $done->recv;
}

sub reason {
    my $why = $_[-1];
    return ref $why && $why->can('method_frame') ? $why->method_frame->reply_text : "$why";
}

sub wait_for {
    my ($condition) = @_;
    my $until = AnyEvent->time + 30;
    until ($condition->()) {
        die "waited 30 s in vain\n" if AnyEvent->time > $until;
        my $tick  = AnyEvent->condvar;
        my $timer = AnyEvent->timer(after => 0.005, cb => $tick);
        $tick->recv;
    }
}

sub connect_to {
    my ($heartbeat) = @_;
    $lost = undef;
    return call(
        AnyEvent::RabbitMQ->new, 'connect',
        host            => $host,
        port            => $port,
        user            => 'guest',
        pass            => 'guest',
        vhost           => '/',
        timeout         => 10,
        tune            => { heartbeat => $heartbeat },
        on_close        => sub { $lost = reason(@_) },
        on_read_failure => sub { },
    );
}

my (@returned, $channel_closed);

sub channel {
    my ($conn) = @_;
    return call(
        $conn, 'open_channel',
        on_close => sub { $channel_closed = $_[0]->method_frame },
    );
}

sub count_of {
    my ($ch) = @_;
    return call($ch, 'declare_queue', queue => $work, passive => 1)->method_frame->message_count;
}

# Publishes on a channel in confirm mode and waits for all confirms.
sub put {
    my ($ch, $bodies, %args) = @_;
    my $open = @$bodies;
    for my $body (@$bodies) {
        $ch->publish(
            exchange    => '',
            routing_key => $work,
            %args,
            body      => $body,
            header    => { %{ $args{header} || {} } },
            on_ack    => sub { $open-- },
            on_nack   => sub { die "a message was refused\n" },
            on_return => sub { push @returned, $_[0] },
        );
    }
    wait_for(sub { $open == 0 });
}

# A consumer that keeps what comes: each as { deliver, header, body } of the library.
sub collect {
    my ($ch, %args) = @_;
    my $self = { got => [], cancelled => 0 };
    my $frame = call(
        $ch, 'consume',
        queue      => $work,
        no_ack     => 0,
        %args,
        on_consume => sub { push @{ $self->{got} }, $_[0] },
        on_cancel  => sub { $self->{cancelled}++ },
    );
    $self->{tag} = $frame->method_frame->consumer_tag;
    return $self;
}

sub await {
    my ($consumer, $n) = @_;
    wait_for(sub { @{ $consumer->{got} } >= $n });
    same(scalar @{ $consumer->{got} }, $n);
    return @{ $consumer->{got} };
}

sub tag_of { $_[0]{deliver}->method_frame->delivery_tag }

sub facts {
    map { ($_->{deliver}->method_frame->redelivered ? 'again ' : 'first ') . $_->{body}->payload } @_;
}

AnyEvent::RabbitMQ->new->load_xml_spec;
my $conn = connect_to(60);
my $ch   = channel($conn);
call($ch, 'declare_queue', queue => $work, durable => 1);
same($conn->server_properties->{product}, 'RabbitMQ');
ok 'connect';

call($ch, 'confirm');
put($ch, [0 .. 99], mandatory => 1, header => { delivery_mode => 2 });
same([count_of($ch), scalar @returned], [100, 0]);
ok 'confirm';

put($ch, ['lost'], mandatory => 1, routing_key => "${prefix}nowhere");
same(scalar @returned, 1);
my $return = $returned[0]->method_frame;
same([$return->reply_code, $return->reply_text, $return->routing_key], [312, 'NO_ROUTE', "${prefix}nowhere"]);
ok 'return';

# An unset prefetch would do; qos of this library sets 1 if it is not told.
my $all = collect($ch);
my @got = await($all, 100);
same([facts(@got)], [map { "first $_" } 0 .. 99]);
$ch->ack(delivery_tag => tag_of($_)) for @got[0 .. 49];
$ch->ack(delivery_tag => tag_of($got[99]), multiple => 1);
call($ch, 'cancel', consumer_tag => $all->{tag});
same(count_of($ch), 0);
ok 'consume';

put($ch, [0 .. 9]);
call($ch, 'qos', prefetch_count => 3);
my $few = collect($ch);
@got = await($few, 3);
same(count_of($ch), 7);
await($few, 3);
$ch->ack(delivery_tag => tag_of($got[0]));
await($few, 4);
same(count_of($ch), 6);
await($few, 4);
for my $i (1 .. 9) {
    wait_for(sub { @{ $few->{got} } > $i });
    $ch->ack(delivery_tag => tag_of($few->{got}[$i]));
}
call($ch, 'cancel', consumer_tag => $few->{tag});
call($ch, 'qos', prefetch_count => 0);
same(count_of($ch), 0);
ok 'prefetch';

# The library has no nack: reject, one by one.
put($ch, ['a', 'b', 'c']);
my $some = collect($ch);
@got = await($some, 3);
same([facts(@got)], ['first a', 'first b', 'first c']);
$ch->reject(delivery_tag => tag_of($_), requeue => 1) for @got;
@got = (await($some, 6))[3 .. 5];
same([facts(@got)], ['again a', 'again b', 'again c']);
$ch->reject(delivery_tag => tag_of($got[0]), requeue => 0);
$ch->reject(delivery_tag => tag_of($got[1]), requeue => 1);
my $again = (await($some, 7))[6];
same([facts($again)], ['again b']);
$ch->ack(delivery_tag => tag_of($again), multiple => 1);
call($ch, 'cancel', consumer_tag => $some->{tag});
same(count_of($ch), 0);
ok 'nack';

put($ch, ['one', 'two']);
my $one = call($ch, 'get', queue => $work, no_ack => 0);
my $frame = $one->{ok}->method_frame;
same([$one->{body}->payload, $frame->message_count, $frame->redelivered, $frame->routing_key],
    ['one', 1, 0, $work]);
$ch->ack(delivery_tag => $frame->delivery_tag);
same(call($ch, 'get', queue => $work, no_ack => 1)->{body}->payload, 'two');
same(exists call($ch, 'get', queue => $work, no_ack => 0)->{empty}, 1);
ok 'get';

# No empty value: the library writes one, but cannot read it.
my %headers = (
    true => Net::AMQP::Value::true, false => Net::AMQP::Value::false, int => Net::AMQP::Value::Integer->new(-7),
    text => encode_utf8('Grüße ☃'), empty => '', time => Net::AMQP::Value::Timestamp->new(1709209815),
    list => ['one', 'two', ['three']], table => { a => { b => 'deep' }, e => {} },
);
my %props = (
    content_type => 'text/plain', content_encoding => 'utf-8', delivery_mode => 2, priority => 9,
    correlation_id => 'c' x 255, reply_to => 'somewhere', expiration => '60000', message_id => 'm-1',
    timestamp => 1709209815, type => 'kind', user_id => 'guest', app_id => 'steps',
);
put($ch, ['x'], header => { %props, headers => { %headers } });
my $header = call($ch, 'get', queue => $work)->{header};
same("$_ " . $header->$_, "$_ $props{$_}") for sort keys %props;
my $back = $header->headers;
delete $back->{_ar_return};    # by it the library finds the callback of a message that is returned
same([sort keys %$back], [sort keys %headers]);
same("$_ $back->{$_}", "$_ $headers{$_}") for qw(int text empty time);
same([$back->{true} ? 1 : 0, $back->{false} ? 1 : 0], [1, 0]);
same([@{ $back->{list} }[0, 1], $back->{list}[2][0]], ['one', 'two', 'three']);
same([$back->{table}{a}{b}, scalar keys %{ $back->{table}{e} }], ['deep', 0]);
ok 'properties';

my $big = substr(join('', map { chr } 0 .. 250) x 42000, 0, 10 << 20);
my $large = collect($ch, no_ack => 1);
put($ch, ['', $big, '']);
@got = await($large, 3);
same([map { $_->{body} ? length $_->{body}->payload : 0 } @got], [0, 10 << 20, 0]);
same($got[1]{body}->payload eq $big, 1);
call($ch, 'cancel', consumer_tag => $large->{tag});
ok 'bodies';

my $serving = channel($conn);
my $server  = call(
    $serving, 'consume',
    queue      => $work,
    no_ack     => 1,
    on_consume => sub {
        my ($request) = @_;
        $serving->publish(
            exchange    => '',
            routing_key => $request->{header}->reply_to,
            header      => { correlation_id => $request->{header}->correlation_id },
            body        => uc $request->{body}->payload,
        );
    },
);
my $asking  = channel($conn);
my $replies = collect($asking, queue => $reply_to, no_ack => 1);
$asking->publish(
    exchange    => '',
    routing_key => $work,
    header      => { reply_to => $reply_to, correlation_id => '7' },
    body        => 'question',
);
my ($answer) = await($replies, 1);
same([$answer->{body}->payload, $answer->{header}->correlation_id], ['QUESTION', 7]);
call($asking,  'close');
call($serving, 'close');
ok 'rpc';

my $none = collect($ch);
call($ch, 'cancel', consumer_tag => $none->{tag});
put($ch, ['after']);
same([count_of($ch), scalar @{ $none->{got} }], [1, 0]);
my $gone = collect($ch);
call($ch, 'delete_queue', queue => $work);
wait_for(sub { $gone->{cancelled} });
ok 'cancel';

my $wrong = channel($conn);
eval { call($wrong, 'declare_queue', queue => "${prefix}missing", passive => 1) };
wait_for(sub { $channel_closed });
same($channel_closed->reply_code, 404);
same(index($channel_closed->reply_text, "NOT_FOUND - no queue '${prefix}missing'"), 0);
call(channel($conn), 'close');
ok 'error';

call($ch, 'declare_queue', queue => $work, durable => 1);
put($ch, ['first', 'second'], header => { delivery_mode => 2 });
my $before = collect($ch);
@got = await($before, 2);
$ch->ack(delivery_tag => tag_of($got[0]));
same(count_of($ch), 0);
ask 'cut';
wait_for(sub { defined $lost });
$conn = connect_to(60);
$ch   = channel($conn);
my $after = collect($ch);
@got = await($after, 1);
same([facts(@got)], ['again second']);
$ch->ack(delivery_tag => tag_of($got[0]));
same(count_of($ch), 0);
call($ch, 'delete_queue', queue => $work);
call($conn, 'close');
ok 'reconnect';

my $quiet = connect_to(2);
my $pause = AnyEvent->time + 5;
wait_for(sub { AnyEvent->time > $pause });
call(channel($quiet), 'close');
same(defined $lost ? $lost : 'open', 'open');
ask 'freeze';
wait_for(sub { defined $lost });
same($lost, 'Heartbeat lost');
ok 'heartbeat';

$conn = connect_to(60);
call(channel($conn), 'close');
call($conn, 'close');
ok 'close';
