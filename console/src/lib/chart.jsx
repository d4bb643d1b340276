// SPDX-License-Identifier: Apache-2.0
// A chart over time: lines with a legend that says the values under the pointer.
import { useEffect, useRef, useState } from 'preact/hooks';
import { language, t } from '../i18n/index.js';
import { short } from './format.js';

/* What draws them comes when the rest of the first page is there. */
const library = () => import('uplot').then((m) => m.default);

const COLOURS = ['--c1', '--c2', '--c3', '--c4', '--c5', '--c6'];
/* Lines are told apart by more than their colour: dashes of the line, and the border of its mark in the legend. */
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [16, 4], [4, 4]];
const BORDERS = ['solid', 'dashed', 'dotted', 'double', 'groove', 'ridge'];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dark = matchMedia('(prefers-color-scheme: dark)');

/** The times of an axis, as exact as they are far apart (seconds). */
const clock = (ticks, apart) => ticks.map((v) => new Date(v * 1000).toLocaleTimeString(language(), {
	hour12: false, hour: '2-digit', minute: '2-digit', second: apart < 60 ? '2-digit' : undefined,
}));

function options(series, width, height, format) {
	const text = colour('--muted'), grid = colour('--line');
	const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: '11px system-ui' };
	return {
		width, height,
		legend: { live: true, markers: { width: 2, dash: (u, i) => BORDERS[(i - 1) % BORDERS.length] } },
		cursor: { points: { size: 5 } },
		hooks: { setCursor: [latest] },
		scales: { y: { range: (u, min, max) => [Math.min(0, min ?? 0), Math.max(max ?? 0, 1) * 1.05] } },
		axes: [{ ...axis, size: 30, space: 70, values: (u, ticks, at, space, apart) => clock(ticks, apart) }, { ...axis, size: 66, values: (u, ticks) => ticks.map((v) => format(v)) }],
		series: [
			{ label: t('tail.time'), value: (u, v) => (v === null ? '–' : new Date(v * 1000).toLocaleTimeString(language(), { hour12: false })) },
			...series.map((s, i) => ({ label: s.label, stroke: colour(COLOURS[i % COLOURS.length]), width: 1.5, dash: DASHES[i % DASHES.length], points: { show: false },
				value: (u, v) => (v === null || v === undefined ? '–' : format(v)) })),
		],
	};
}

/* Without a pointer over it the legend says the newest values. */
function latest(u) {
	if (u.cursor.idx === null || u.cursor.idx === undefined)
		u.setLegend({ idx: u.data[0].length - 1 }, false);
}

const isBare = (series) => series.every((s) => s.values.every((v) => v === null || v === undefined));

/** times: seconds since 1970; series: [{ label, values }], null where nothing is known; format: of a value. */
export function Chart({ title, times, series, format = short, height = 170 }) {
	const holder = useRef(), plot = useRef(), shown = useRef('');
	const [, setDark] = useState(dark.matches);
	const [uPlot, setLibrary] = useState(null), [failed, setFailed] = useState(false);
	useEffect(() => {
		let gone = false;
		requestAnimationFrame(() => setTimeout(() => library().then((l) => gone || setLibrary(() => l), () => gone || setFailed(true))));
		return () => {
			gone = true;
		};
	}, []);
	useEffect(() => {
		if (!uPlot)
			return;
		const data = [times, ...series.map((s) => s.values)];
		const is = JSON.stringify([series.map((s) => s.label), COLOURS.concat('--muted', '--line').map(colour), language()]);
		if (plot.current && shown.current === is) {
			plot.current.setData(data);
			latest(plot.current);
			return;
		}
		plot.current?.destroy();
		shown.current = is;
		plot.current = new uPlot(options(series, holder.current.clientWidth || 400, height, format), data, holder.current);
		latest(plot.current);
	});
	useEffect(() => {
		const watch = new ResizeObserver(() => {
			const width = holder.current.clientWidth;
			if (width && plot.current && plot.current.width !== width)
				plot.current.setSize({ width, height });
		});
		watch.observe(holder.current);
		const onDark = () => setDark(dark.matches);
		dark.addEventListener('change', onDark);
		return () => {
			watch.disconnect();
			dark.removeEventListener('change', onDark);
			plot.current?.destroy();
			plot.current = null;
		};
	}, []);
	return (
		<figure class="chart" aria-label={title}>
			<figcaption>{title}{isBare(series) && <span class="muted"> · {t('chart.none')}</span>}</figcaption>
			<div ref={holder} style={{ minHeight: height }}>{failed && <p class="muted">{t('chart.failed')}</p>}</div>
		</figure>
	);
}
