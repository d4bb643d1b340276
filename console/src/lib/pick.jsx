// SPDX-License-Identifier: Apache-2.0
// A field for the name of something that is there already: the node is asked for names that fit while one types.
import { useEffect, useId, useState } from 'preact/hooks';
import { get, query } from '../api.js';
import { Text } from './form.jsx';

const PAUSE = 200; // milliseconds without a key
const MOST = 20;

/** where: the list of the API, path('queues', vhost). Any other name may be typed as well. */
export function Pick({ form, name, where, ...rest }) {
	const [found, setFound] = useState([]);
	const id = useId(), typed = form.values[name];
	useEffect(() => {
		const control = new AbortController();
		const timer = setTimeout(() => get(where + query({ page: 1, page_size: MOST, name: typed, columns: 'name', disable_stats: true, pagination: true }), { signal: control.signal })
			.then((list) => setFound(list.items.map((item) => item.name).filter(Boolean))).catch(() => {}), PAUSE);
		return () => {
			clearTimeout(timer);
			control.abort();
		};
	}, [where, typed]);
	return (
		<>
			<Text form={form} name={name} list={id} {...rest} />
			<datalist id={id}>{found.map((n) => <option key={n} value={n} />)}</datalist>
		</>
	);
}
