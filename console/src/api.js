// SPDX-License-Identifier: Apache-2.0
// The HTTP API of the node: all that the console knows and does goes through here.

import { t } from './i18n/index.js';

/** What the node refused, or that it could not be reached (status 0). `reason` is for people; body: all that was said, if it was JSON. */
export class ApiError extends Error {
	constructor(status, reason, body) {
		super(reason);
		this.status = status;
		this.reason = reason;
		this.body = body;
	}
}

const listeners = new Set();
let reachable = true;

/** Calls fn({ reachable }) or fn({ expired: true }) when that changes; returns what takes it away again. */
export function onState(fn) {
	listeners.add(fn);
	return () => listeners.delete(fn);
}

function tell(state) {
	for (const fn of listeners)
		fn(state);
}

function setReachable(now) {
	if (now !== reachable) {
		reachable = now;
		tell({ reachable });
	}
}

/** A path below /api from pieces, each percent-encoded: path('queues', vhost, name). */
export function path(...pieces) {
	return pieces.map((p) => encodeURIComponent(p)).join('/');
}

/** ?a=1&b=2 of what is neither undefined, null nor ''; '' if nothing is left. */
export function query(params) {
	const pairs = Object.entries(params).filter(([, v]) => v !== undefined && v !== null && v !== '');
	return pairs.length ? '?' + new URLSearchParams(pairs.map(([k, v]) => [k, String(v)])) : '';
}

/* A node that takes a question and says nothing is not there either. */
const PATIENCE = 30000; // milliseconds

function within(signal) {
	const control = new AbortController(), timer = setTimeout(() => control.abort(), PATIENCE);
	const stop = () => control.abort();
	signal?.addEventListener('abort', stop);
	if (signal?.aborted)
		stop();
	return { signal: control.signal, done: () => { clearTimeout(timer); signal?.removeEventListener('abort', stop); } };
}

async function refusal(response) {
	try {
		const said = await response.json();
		return new ApiError(response.status, typeof said.reason === 'string' ? said.reason : JSON.stringify(said.reason ?? said.error ?? said), said);
	} catch {
		return new ApiError(response.status, `HTTP ${response.status} ${response.statusText}`);
	}
}

async function ask(method, where, { body, signal, headers } = {}) {
	let response;
	const limit = method === 'GET' ? within(signal) : null; // what changes something may take long
	try {
		response = await fetch('api/' + where, { method, signal: limit ? limit.signal : signal, credentials: 'same-origin',
			headers: { accept: 'application/json', ...headers }, body });
	} catch (e) {
		if (signal?.aborted)
			throw e;
		setReachable(false);
		throw new ApiError(0, t('unreachable'));
	} finally {
		limit?.done();
	}
	setReachable(true);
	if (response.ok)
		return response;
	const error = await refusal(response);
	/* What the login's rights do not allow has another reason, which is said. */
	if (response.status === 401 && where !== 'login' && (!error.body || /^login failed/i.test(error.reason)))
		tell({ expired: true });
	throw error;
}

const early = new Map();

/** Asks for it now: the first get() of the same gets the answer, within the next seconds. */
export function ahead(where) {
	const answer = get(where);
	early.set(where, answer);
	answer.catch(() => early.delete(where)); // such as 401: who logs in at once has to get another answer
	setTimeout(() => early.delete(where), 3000);
}

function taken(where) {
	const answer = early.get(where);
	early.delete(where);
	return answer;
}

async function json(response) {
	const text = await response.text();
	return text ? JSON.parse(text) : null;
}

const jsonHeaders = { 'content-type': 'application/json' };

export const get = async (where, options) => taken(where) ?? json(await ask('GET', where, options));
export const put = async (where, body = {}) => json(await ask('PUT', where, { body: JSON.stringify(body), headers: jsonHeaders }));
export const post = async (where, body = {}) => json(await ask('POST', where, { body: JSON.stringify(body), headers: jsonHeaders }));
export const del = async (where) => json(await ask('DELETE', where));

/** The cookie of the session comes with the answer; the password is kept nowhere. */
export function login(username, password) {
	early.clear(); // what was asked for by nobody, or by somebody else
	return ask('POST', 'login', { body: new URLSearchParams({ username, password }) });
}
export const logout = () => ask('DELETE', 'hermes/session');

/**
 * Server-sent events of a path: fn(name, data); returns what ends it. Beside the node's own there are `open`; `lost`, after which
 * the browser tries again; and `error` with an ApiError: it was refused and is over.
 */
export function events(where, fn) {
	const source = new EventSource('api/' + where), control = new AbortController();
	for (const name of ['message', 'left-out', 'end'])
		source.addEventListener(name, (e) => e.data && fn(name, JSON.parse(e.data)));
	source.onopen = () => fn('open', null);
	source.onerror = async () => {
		if (source.readyState !== EventSource.CLOSED) {
			fn('lost', null);
			return;
		}
		try { // an EventSource does not say why
			await ask('GET', where, { signal: control.signal, headers: { accept: 'text/event-stream' } });
			control.abort();
			fn('error', new ApiError(0, 'the node ended it'));
		} catch (error) {
			if (error.name !== 'AbortError')
				fn('error', error);
		}
	};
	return () => {
		source.close();
		control.abort();
	};
}
