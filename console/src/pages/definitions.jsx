// SPDX-License-Identifier: Apache-2.0
// Definitions: all that is declared, to a file and from one. What an import would do is shown before it is done.
import { useState } from 'preact/hooks';
import { get, path, post } from '../api.js';
import { t } from '../i18n/index.js';
import { compare } from '../lib/difference.js';
import { number } from '../lib/format.js';
import { Badge, Card, Refused } from '../lib/parts.jsx';
import { Rows } from '../lib/table.jsx';
import { say } from '../lib/toast.jsx';
import { useSession } from '../session.js';
import { Changes } from './definitions_changes.jsx';

const where = (vhost) => (vhost === '' ? 'definitions' : path('definitions', vhost));

function Scope({ value, onChange, all, id }) {
	const { vhosts } = useSession();
	return (
		<label class="field" for={id}><span class="label">{t('definitions.scope')}</span>
			<select id={id} value={value} onChange={(e) => onChange(e.target.value)}>
				<option value="">{all}</option>
				{vhosts.map((v) => <option value={v}>{t('definitions.of_vhost', { name: v })}</option>)}
			</select>
		</label>
	);
}

/** hermes-VHOST-2026-01-31.json, with letters that any file may have. */
function fileName(vhost) {
	const words = ['hermes', vhost.replace(/[^\w.-]+/g, '_').replace(/^_+$/, ''), new Date().toISOString().slice(0, 10)];
	return words.filter(Boolean).join('-') + '.json';
}

function Export() {
	const [vhost, setVhost] = useState('');
	const file = fileName(vhost);
	return (
		<Card title={t('definitions.export')}>
			<p class="muted">{t('definitions.export.what')}</p>
			<Scope id="export-scope" value={vhost} onChange={setVhost} all={t('definitions.all')} />
			<a class="button primary" href={`api/${where(vhost)}?download=${encodeURIComponent(file)}`} download={file}>{t('definitions.download', { file })}</a>
		</Card>
	);
}

async function read(file) {
	let doc;
	try {
		doc = JSON.parse(await file.text());
	} catch (e) {
		throw new Error(t('form.json', { what: file.name, why: e.message }));
	}
	if (doc === null || typeof doc !== 'object' || Array.isArray(doc))
		throw new Error(t('form.object', { what: file.name }));
	return doc;
}

const look = async (doc, vhost) => compare(doc, await get(where(vhost)), vhost === '' ? undefined : vhost);

/** { imported, failed, errors: [{ object, reason }] }; what the node refused to look at is thrown. */
async function send(doc, vhost, total) {
	try {
		await post(where(vhost), doc);
		return { imported: total, failed: 0, errors: [] };
	} catch (e) {
		if (!Array.isArray(e.body?.errors))
			throw e;
		return e.body;
	}
}

/** How many objects are `what` ('added', 'changed'), but for those that stay as they are. */
const sum = (difference, what) => difference.kinds.reduce((n, k) => n + (what === 'changed' && k.kind.kept ? 0 : k[what].length), 0);
const count = (difference) => difference.kinds.reduce((sum, k) => sum + k.added.length + k.changed.length + k.same, 0);

/** What the last import did: one that brings another password for whoever runs it ends the login, and the page with it. */
let last = {};

function Import() {
	const session = useSession();
	const [vhost, setVhost] = useState('');
	const [state, setState] = useState({ report: last.who === session.name ? last.report : null }); // and doc, difference, error, busy
	const change = (more) => setState((old) => ({ ...old, ...more }));
	const attempt = async (fn) => {
		change({ busy: true, error: null });
		try {
			await fn();
		} catch (error) {
			change({ error });
		}
		change({ busy: false });
	};
	const choose = (e) => attempt(async () => {
		const file = e.target.files[0];
		setState({ busy: true });
		const doc = file && await read(file);
		if (doc)
			change({ doc, difference: await look(doc, vhost) });
	});
	const move = (to) => {
		setVhost(to);
		if (state.doc)
			attempt(async () => change({ report: null, difference: await look(state.doc, to) }));
	};
	const run = () => attempt(async () => {
		const report = await send(state.doc, vhost, count(state.difference));
		last = { who: session.name, report };
		change({ report });
		if (!report.failed)
			say(t('definitions.done', { n: number(report.imported) }));
		await session.reload();
		change({ difference: await look(state.doc, vhost) });
	});
	return (
		<Card title={t('definitions.import')} wide>
			<p class="muted">{t('definitions.import.what')}</p>
			<div class="fields">
				<label class="field"><span class="label">{t('definitions.file')}</span><input type="file" accept=".json,application/json" onChange={choose} /></label>
				<Scope id="import-scope" value={vhost} onChange={move} all={t('definitions.whole')} />
			</div>
			<Refused error={state.error} />
			{state.report && <Report report={state.report} />}
			{state.difference && <Preview difference={state.difference} run={run} busy={state.busy} />}
		</Card>
	);
}

const endsLogin = (difference, me) => difference.kinds.some((k) => k.kind.key === 'users' &&
	k.changed.some((c) => c.name[0] === me && (c.differs.password_hash || c.differs.password)));

function Preview({ difference, run, busy }) {
	const some = count(difference), { name: me } = useSession();
	return (
		<section aria-label={t('definitions.preview')}>
			{difference.homeless > 0 && <p class="refused" role="alert">{t('definitions.homeless', { n: number(difference.homeless) })}</p>}
			{endsLogin(difference, me) && <p><Badge kind="warn">{t('health.warn')}</Badge> {t('definitions.password')}</p>}
			{difference.left.length > 0 && <p><Badge kind="warn">{t('health.warn')}</Badge> {t('definitions.left', {
				kinds: difference.left.map((kind) => t('kind.' + kind)).join(', ') })}</p>}
			<Changes kinds={difference.kinds} />
			{some === 0 && <p class="muted">{t('definitions.nothing')}</p>}
			<footer class="bar"><span class="grow" /><button class="primary" disabled={busy || some === 0 || difference.homeless > 0} onClick={run}>
				{t('definitions.run', { n: number(some), new: number(sum(difference, 'added')), changed: number(sum(difference, 'changed')) })}</button></footer>
		</section>
	);
}

function Report({ report }) {
	const columns = [
		{ key: 'object', title: t('definitions.object') },
		{ key: 'reason', title: t('definitions.reason'), cell: (e) => <bdi class="name">{e.reason}</bdi> },
	];
	return (
		<section class="report" role="status" aria-label={t('definitions.report')}>
			<p><Badge kind={report.failed ? 'bad' : 'ok'}>{report.failed ? t('definitions.refused', { n: number(report.failed) }) : t('health.ok')}</Badge>{' '}
				{t('definitions.done', { n: number(report.imported) })}</p>
			{report.failed > 0 && <Rows columns={columns} rows={report.errors} label={t('definitions.report')} />}
			{report.failed > report.errors.length && <p class="muted">{t('definitions.more', { n: number(report.failed - report.errors.length) })}</p>}
		</section>
	);
}

export const Definitions = () => (
	<>
		<h1>{t('page.definitions')}</h1>
		<Export />
		<Import />
	</>
);
