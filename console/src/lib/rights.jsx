// SPDX-License-Identifier: Apache-2.0
// What the permissions of the user allow: what they do not is not offered. The node decides in any case.
import { get, path, query } from '../api.js';
import { useSession } from '../session.js';
import { usePolled } from './hooks.js';

const EVERY = 60000; // milliseconds
const MOST = 500;    // vhosts
const NONE = { configure: false, write: false, read: false };

/** kind: 'queue' or 'exchange'; it need not be there. { configure, write, read }; nothing until it is known. */
export function useRights(vhost, kind, name) {
	const { data } = usePolled((signal) => get(path('hermes', 'rights', vhost, kind, name), { signal }), [vhost, kind, name], EVERY);
	return data ?? NONE;
}

/** Vhosts in which the user may declare something: those whose pattern is not empty. */
export function useDeclaring() {
	const { vhosts } = useSession();
	const { data } = usePolled((signal) => get('hermes/rights' + query({ pagination: true, page: 1, page_size: MOST }), { signal }), [], EVERY);
	const rows = data && new Map(data.items.map((row) => [row.vhost, row.configure]));
	return rows ? vhosts.filter((v) => !['', '^$'].includes(rows.get(v) ?? '')) : [];
}
