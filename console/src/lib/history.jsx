// SPDX-License-Identifier: Apache-2.0
// What a node, vhost, queue or connection did over a time, from api/hermes/history.
import { get } from '../api.js';
import { t } from '../i18n/index.js';
import { Chart } from './chart.jsx';
import { bytes, rate, short } from './format.js';
import { useKept, usePolled } from './hooks.js';
import { Refused, Tabs } from './parts.jsx';

export const RANGES = ['minute', '10m', 'hour', 'day'];

/** The times of a history's samples, in seconds; its answer is { from_ms, step_ms, samples: { name: [...] } }. */
function timesOf(history) {
	const some = Object.values(history.samples)[0] ?? [];
	return some.map((_, i) => (history.from_ms + i * history.step_ms) / 1000);
}

/**
 * path: below api/hermes/history; charts: [{ title, lines: ['publish', ...], unit: 'rate' | 'bytes' | 'count' }]. Lines that
 * the node does not have are left out.
 */
export function Histories({ path, charts }) {
	const [range, setRange] = useKept('range', '10m');
	const where = `hermes/history/${path}?range=${range}`;
	const { data, error } = usePolled((signal) => get(where, { signal }), [where]);
	const formats = { rate, bytes, count: short };
	return (
		<section class="histories">
			<Tabs choices={RANGES.map((r) => [r, t('range.' + r)])} value={range} onChange={setRange} />
			<Refused error={error} />
			<div class="charts">
				{data && charts.map((c) => (
					<Chart key={c.title} title={c.title} times={timesOf(data)} format={formats[c.unit]}
						series={c.lines.filter((l) => data.samples[l]).map((l) => ({ label: t('line.' + l), values: data.samples[l] }))} />
				))}
			</div>
		</section>
	);
}
