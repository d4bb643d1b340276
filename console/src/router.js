// SPDX-License-Identifier: Apache-2.0
// Routes live behind the # of the address: #/queues/%2F/orders?tab=messages. Nothing of them reaches the node.
import { useEffect, useState } from 'preact/hooks';

function parse() {
	const [where, params] = location.hash.replace(/^#\/?/, '').split('?');
	let pieces;
	try {
		pieces = where.split('/').filter(Boolean).map(decodeURIComponent);
	} catch {
		pieces = []; // a % that encodes nothing
	}
	return { hash: location.hash, pieces, params: Object.fromEntries(new URLSearchParams(params || '')) };
}

/** { pieces: ['queues', '/', 'orders'], params: { tab: 'messages' } }, as it changes. */
export function useRoute() {
	const [route, setRoute] = useState(parse);
	useEffect(() => {
		const on = () => setRoute((old) => (old.hash === location.hash ? old : parse()));
		addEventListener('hashchange', on);
		on(); // it may have changed since the first drawing
		return () => removeEventListener('hashchange', on);
	}, []);
	return route;
}

/** The address of a page: href('queues', vhost, name). */
export const href = (...pieces) => '#/' + pieces.map(encodeURIComponent).join('/');

export const go = (...pieces) => {
	location.hash = href(...pieces);
};

/** Replaces parameters of the address without a step in the history; null takes one away. */
export function setParams(changes) {
	const { pieces, params } = parse();
	const next = Object.entries({ ...params, ...changes }).filter(([, v]) => v !== null && v !== undefined && v !== '');
	const text = new URLSearchParams(next).toString();
	history.replaceState(null, '', href(...pieces) + (text ? '?' + text : ''));
	dispatchEvent(new HashChangeEvent('hashchange'));
}
