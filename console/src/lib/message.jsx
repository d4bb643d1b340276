// SPDX-License-Identifier: Apache-2.0
// A message: where it came from, its properties, and its body as text, JSON or hex.
import { useState } from 'preact/hooks';
import { t } from '../i18n/index.js';
import { bytes } from './format.js';
import { Facts, Name, Tabs, Value } from './parts.jsx';

const HEX_MOST = 4096; // bytes shown
const binary = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

/** The bytes of a message of the API: payload, payload_encoding "string" or "base64". */
export const bodyOf = (m) => (m.payload_encoding === 'base64' ? binary(m.payload) : new TextEncoder().encode(m.payload));

function asText(body) {
	try {
		return new TextDecoder('utf-8', { fatal: true }).decode(body);
	} catch {
		return null;
	}
}

function asJson(text) {
	try {
		return text === null ? null : JSON.stringify(JSON.parse(text), null, 2);
	} catch {
		return null;
	}
}

function asHex(body) {
	const lines = [];
	for (let i = 0; i < Math.min(body.length, HEX_MOST); i += 16) {
		const row = [...body.subarray(i, i + 16)];
		lines.push(i.toString(16).padStart(6, '0') + '  ' + row.map((b) => b.toString(16).padStart(2, '0')).join(' ').padEnd(48) + ' ' +
			row.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : '.')).join(''));
	}
	return lines.join('\n') + (body.length > HEX_MOST ? '\n…' : '');
}

function download(body, name) {
	const link = document.createElement('a');
	link.href = URL.createObjectURL(new Blob([body]));
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function Body({ message }) {
	const body = bodyOf(message), text = asText(body), json = asJson(text);
	const [as, setAs] = useState(json !== null ? 'json' : text !== null ? 'text' : 'hex');
	const choices = [['text', t('body.text')], ['json', 'JSON'], ['hex', t('body.hex')]].filter(([key]) => key === 'hex' ||
		(key === 'text' ? text !== null : json !== null));
	const cut = message.payload_bytes > body.length;
	return (
		<div class="body">
			<div class="bar">
				<Tabs choices={choices} value={as} onChange={setAs} />
				<span class="muted">{cut ? t('body.cut', { shown: bytes(body.length), all: bytes(message.payload_bytes) }) : bytes(body.length)}</span>
				<span class="grow" />
				<button class="small" onClick={() => download(body, 'message.' + (json !== null ? 'json' : text !== null ? 'txt' : 'bin'))}>{t('download')}</button>
			</div>
			<pre dir="auto">{as === 'hex' ? asHex(body) : as === 'json' ? json : text}</pre>
		</div>
	);
}

export function Message({ message, children }) {
	const { headers, ...properties } = message.properties ?? {};
	return (
		<article class="card message">
			<Facts rows={[
				[t('exchange'), <Name>{message.exchange === '' ? t('exchange.default') : message.exchange}</Name>],
				[t('routing_key'), <Name>{message.routing_key}</Name>],
				[t('redelivered'), message.redelivered === undefined ? null : message.redelivered ? t('yes') : t('no')],
				[t('properties'), Object.keys(properties).length ? <Value of={properties} /> : null],
				[t('headers'), headers && Object.keys(headers).length ? <Value of={headers} /> : null],
			]} />
			<Body message={message} />
			{children}
		</article>
	);
}
