// SPDX-License-Identifier: Apache-2.0
// Tables. ServerTable asks the node for one page, sorted and searched there; Rows shows what is there already.
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, query } from '../api.js';
import { t } from '../i18n/index.js';
import { setParams, useRoute } from '../router.js';
import { number } from './format.js';
import { useKept, usePolled } from './hooks.js';

const SIZES = [25, 50, 100, 500];

/**
 * columns: [{ key, title, cell: (row) => node, sort: 'field of the API', number: true, narrow: true, needs: ['fields'] }].
 * A column without `cell` shows row[key] as text.
 */
export function Rows({ columns, rows, empty, sort, desc, onSort, rowKey, label }) {
	return (
		<div class="scroll">
			<table aria-label={label}>
				<thead>
					<tr>{columns.map((c) => <Head key={c.key} column={c} sort={sort} desc={desc} onSort={onSort} />)}</tr>
				</thead>
				<tbody>
					{rows.length === 0 && <tr><td class="empty" colSpan={columns.length}>{empty ?? t('table.empty')}</td></tr>}
					{rows.map((row, i) => (
						<tr key={rowKey ? rowKey(row) : i}>
							{columns.map((c) => (
								<td key={c.key} class={c.number ? 'number' : c.narrow ? 'narrow' : ''}>{c.cell ? c.cell(row) : <bdi>{row[c.key]}</bdi>}</td>
							))}
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}

function Head({ column, sort, desc, onSort }) {
	const cls = column.number ? 'number' : '';
	if (!column.sort || !onSort)
		return <th scope="col" class={cls}>{column.title}</th>;
	const active = sort === column.sort;
	return (
		<th scope="col" class={cls} aria-sort={active ? (desc ? 'descending' : 'ascending') : 'none'}>
			<button class="sort" onClick={() => onSort(column.sort, active ? !desc : !!column.number)}>
				{column.title}{active ? (desc ? ' ↓' : ' ↑') : ''}
			</button>
		</th>
	);
}

/** Text that is told to fn when typing has paused. */
export function Search({ value, onInput }) {
	const ref = useRef(), timer = useRef();
	const [text, setText] = useState(value);
	useEffect(() => setText(value), [value]);
	useEffect(() => {
		const key = (e) => {
			if (e.key === '/' && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
				e.preventDefault();
				ref.current.focus();
			}
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	}, []);
	const input = (e) => {
		setText(e.target.value);
		clearTimeout(timer.current);
		timer.current = setTimeout(() => onInput(e.target.value), 250);
	};
	return <input ref={ref} type="search" value={text} placeholder={t('table.search')} aria-label={t('table.search')} onInput={input} />;
}

/**
 * name: of the address' parameters and of what the browser keeps; path: of the list, below api/. The page, the search and
 * the order stand in the address. `columns` (of again(), if it is a function) names the fields to ask for: each column's
 * `needs`, else its key. A list that RabbitMQ gives as a whole comes in pages as well, where the node has it so.
 */
export function ServerTable({ name, path, columns, sort: firstSort, desc: firstDesc = false, fields = [], empty, rowKey, tools, every, map }) {
	const { params } = useRoute();
	const [size, setSize] = useKept(name + '.rows', 50);
	const page = Math.max(1, parseInt(params.page, 10) || 1);
	const sort = params.sort ?? firstSort, desc = params.sort ? params.desc === '1' : firstDesc;
	const search = params.search ?? '';
	const latest = useRef();
	const shown = typeof columns === 'function' ? columns(() => latest.current()) : columns;
	const wanted = [...new Set([...fields, ...shown.flatMap((c) => c.needs ?? [c.key])])].join(',');
	const where = path + query({ page, page_size: size, sort, sort_reverse: desc ? 'true' : undefined, name: search,
		pagination: true, columns: wanted });
	const { data, error, again } = usePolled(async (signal) => paged(await get(where, { signal }), page, size, search), [where], every);
	latest.current = again;
	useEffect(() => {
		if (page > 1 && error?.status === 400 && /out of range/.test(error.reason))
			setParams({ page: page - 1 }); // what was on the last page is gone
	}, [error]);
	const rows = data ? (map ? data.items.map(map) : data.items) : [];
	const pages = data ? Math.max(1, data.page_count) : 1;
	return (
		<section class="listing">
			<div class="bar">
				<Search value={search} onInput={(v) => setParams({ search: v, page: null })} />
				<span class="count">{data ? counted(data) : t('loading')}</span>
				<span class="grow" />
				{tools && tools(again)}
			</div>
			{error && <p class="refused" role="alert">{error.reason ?? error.message}</p>}
			{data && <Rows columns={shown} rows={rows} empty={search ? t('table.nothing', { search }) : empty} sort={sort} desc={desc}
				rowKey={rowKey} label={name} onSort={(s, d) => setParams({ sort: s, desc: d ? '1' : '0', page: null })} />}
			<div class="bar pages">
				<button disabled={page <= 1} onClick={() => setParams({ page: page - 1 })}>{t('table.previous')}</button>
				<span>{t('table.page', { page: number(page), pages: number(pages) })}</span>
				<button disabled={page >= pages} onClick={() => setParams({ page: page + 1 })}>{t('table.next')}</button>
				<label class="inline">{t('table.rows')}
					<select value={size} onChange={(e) => { setSize(Number(e.target.value)); setParams({ page: null }); }}>
						{SIZES.map((n) => <option value={n}>{n}</option>)}
					</select>
				</label>
			</div>
		</section>
	);
}

const texts = (row) => Object.values(row).filter((v) => typeof v === 'string').join('\n').toLowerCase();

/** Lists that the node does not page: all of it is there, and is searched here in all its texts. */
function paged(data, page, size, search) {
	if (!Array.isArray(data))
		return data;
	const found = search ? data.filter((row) => texts(row).includes(search.toLowerCase())) : data;
	return { items: found.slice((page - 1) * size, page * size), page_count: Math.ceil(found.length / size), total_count: data.length,
		filtered_count: found.length };
}

const counted = (data) => (data.filtered_count === data.total_count
	? t('table.total', { total: number(data.total_count) })
	: t('table.filtered', { found: number(data.filtered_count), total: number(data.total_count) }));
