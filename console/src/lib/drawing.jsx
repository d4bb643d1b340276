// SPDX-License-Identifier: Apache-2.0
// A drawing of boxes in columns and lines between them. It is for the eyes: whoever draws says the same in words beside it.

const BOX = { width: 180, height: 34 }, GAP = { x: 140, y: 14 }, EDGE = 4, BELOW = 36, LEAST = 0.6 /* of its size, where there is no room */;
const NAME_MOST = 22, LABEL_MOST = 18; // in half widths of Chinese letters

const wide = (c) => (/[\u1100-\uffdc]|[^\u0000-\uffff]/u.test(c) ? 2 : 1);

/** So much of a text as there is room for. */
function cut(text, most) {
	let room = most, to = '';
	for (const c of text) {
		room -= wide(c);
		if (room < 0)
			return to + '…';
		to += c;
	}
	return text;
}

/** Where each box stands: columns side by side, each in the middle. */
function place(columns) {
	const height = (n) => n * BOX.height + Math.max(0, n - 1) * GAP.y;
	const tallest = Math.max(...columns.map((c) => height(c.length)));
	const at = {};
	columns.forEach((column, x) => column.forEach((box, y) => {
		at[box.key] = { column: x, x: EDGE + x * (BOX.width + GAP.x), y: EDGE + (tallest - height(column.length)) / 2 + y * (BOX.height + GAP.y) };
	}));
	return { at, width: columns.length * BOX.width + (columns.length - 1) * GAP.x + 2 * EDGE, height: tallest + 2 * EDGE };
}

/** Straight on to the next column; to any other, and back, below all boxes. */
function Line({ from, to, label, dashed, bottom }) {
	const next = to.column === from.column + 1;
	const x1 = from.x + BOX.width / (next ? 1 : 2), y1 = from.y + BOX.height / (next ? 2 : 1);
	const x2 = to.x + (next ? 0 : BOX.width / 2), y2 = to.y + BOX.height / (next ? 2 : 1), half = (x2 - x1) / 2;
	const path = next ? `M ${x1} ${y1} C ${x1 + half} ${y1} ${x2 - half} ${y2} ${x2 - 2} ${y2}`
		: `M ${x1} ${y1} C ${x1} ${bottom + 10} ${x2} ${bottom + 10} ${x2} ${y2 + 2}`;
	return (
		<g class={dashed ? 'line dashed' : 'line'}>
			<path d={path} marker-end="url(#arrow)" />
			{label && <text x={(x1 + x2) / 2} y={next ? (y1 + y2) / 2 - 4 : (y1 + y2 + 6 * bottom) / 8 + 4} text-anchor="middle">{cut(label, LABEL_MOST)}<title>{label}</title></text>}
		</g>
	);
}

/** With a link, for the mouse: by keyboard one goes through the words beside. */
function Box({ at, box }) {
	const inside = (
		<g class={'box ' + box.kind} transform={`translate(${at.x} ${at.y})`}>
			<title>{box.name}</title>
			<rect width={BOX.width} height={BOX.height} rx={box.kind === 'exchange' ? BOX.height / 2 : 4} />
			<text x={BOX.width / 2} y={BOX.height / 2 + 4.5} text-anchor="middle">{cut(box.name, NAME_MOST)}</text>
		</g>
	);
	return box.href ? <a href={box.href} tabIndex={-1}>{inside}</a> : inside;
}

/**
 * columns: [[{ key, name, kind: 'exchange', 'queue' or 'missing', href }], ...] from left to right; lines: [{ from, to, label,
 * dashed }] between keys.
 */
export function Drawing({ columns, lines, label }) {
	const { at, width, height: boxes } = place(columns);
	const height = boxes + (lines.some((l) => at[l.to].column !== at[l.from].column + 1) ? BELOW : 0);
	return (
		<div class="drawing">
			<svg role="img" aria-label={label} width={width} height={height} viewBox={`0 0 ${width} ${height}`} style={{ minWidth: width * LEAST }}>
				<defs>
					<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" /></marker>
				</defs>
				{lines.map((l) => <Line key={`${l.from}\n${l.to}`} from={at[l.from]} to={at[l.to]} label={l.label} dashed={l.dashed} bottom={boxes + BELOW} />)}
				{columns.flat().map((box) => <Box key={box.key} at={at[box.key]} box={box} />)}
			</svg>
		</div>
	);
}
