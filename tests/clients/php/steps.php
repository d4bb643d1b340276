<?php
// SPDX-License-Identifier: Apache-2.0
// What the PHP programs share: arguments, the lines they print, the data of some steps.
declare(strict_types=1);

error_reporting(E_ALL & ~E_DEPRECATED);
ini_set('memory_limit', '512M');

define('HOST', $argv[1]);
define('PORT', (int)$argv[2]);
define('PREFIX', 'clients.' . basename($argv[0], '.php') . '.' . getmypid() . '.');
define('WORK', PREFIX . 'work');
define('REPLY_TO', 'amq.rabbitmq.reply-to');

function ok(string $name): void
{
    echo "ok $name\n";
}

function ask(string $what): void
{
    echo "$what\n";
}

function same(mixed $got, mixed $wanted): void
{
    if ($got !== $wanted) {
        throw new Exception('got ' . var_export($got, true) . ', wanted ' . var_export($wanted, true));
    }
}

/** A value of a header in which two can be compared: objects as text, tables sorted by their keys. */
function plain(mixed $value): mixed
{
    if ($value instanceof DateTimeInterface) {
        return 'time ' . $value->getTimestamp();
    }
    if (is_object($value)) {
        return print_r($value, true);
    }
    if (is_array($value)) {
        $value = array_map(plain(...), $value);
        if (!array_is_list($value)) {
            ksort($value);
        }
    }
    return $value;
}

/** 10 MiB. */
function big(): string
{
    return substr(str_repeat(implode('', array_map(chr(...), range(0, 256))), 41 << 10), 0, 10 << 20);
}
