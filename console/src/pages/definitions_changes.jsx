// SPDX-License-Identifier: Apache-2.0
// What an import would do: how many of each kind, and which.
import { t } from '../i18n/index.js';
import { number } from '../lib/format.js';
import { Badge, Value } from '../lib/parts.jsx';
import { Rows } from '../lib/table.jsx';

const MOST = 200; // objects of a kind that are named

const SECRET = ['password', 'password_hash']; // that they differ is enough

const count = (n, kind) => (n ? <Badge kind={kind}>{number(n)}</Badge> : <span class="muted">0</span>);

const columns = () => [
	{ key: 'kind', title: t('definitions.kind'), cell: (k) => t('kind.' + k.kind.key) },
	{ key: 'added', title: t('definitions.new'), number: true, cell: (k) => count(k.added.length, 'ok') },
	{ key: 'changed', title: t('definitions.changed'), number: true, cell: (k) => (k.kind.kept ? <span class="muted">–</span> : count(k.changed.length, 'warn')) },
	{ key: 'kept', title: t('definitions.kept'), number: true, cell: (k) => (k.kind.kept ? count(k.changed.length, 'warn') : <span class="muted">–</span>) },
	{ key: 'same', title: t('definitions.same'), number: true, cell: (k) => number(k.same) },
	{ key: 'only', title: t('definitions.only'), number: true, cell: (k) => number(k.only) },
];

/** kinds: as compare() of lib/difference.js gives them. */
export const Changes = ({ kinds }) => (
	<>
		<Rows columns={columns()} rows={kinds} label={t('definitions.preview')} rowKey={(k) => k.kind.key} />
		{kinds.filter((k) => k.added.length || k.changed.length).map((k) => (
			<details key={k.kind.key} open={k.added.length + k.changed.length <= 20}>
				<summary>{t('kind.' + k.kind.key)}: {summary(k)}</summary>
				<ul class="changes">
					{k.changed.slice(0, MOST).map((c) => <Changed key={c.name.join('\n')} change={c} kept={k.kind.kept} />)}
					{k.added.slice(0, MOST).map((a) => <li key={a.name.join('\n') + JSON.stringify(a.now)}><Badge kind="ok">{t('definitions.new')}</Badge> <Names of={a.name} /></li>)}
				</ul>
				{Math.max(k.added.length, k.changed.length) > MOST && <p class="muted">{t('definitions.named', { n: number(MOST) })}</p>}
			</details>
		))}
	</>
);

const summary = (k) => [
	k.added.length && `${number(k.added.length)} ${t('definitions.new')}`,
	k.changed.length && `${number(k.changed.length)} ${t(k.kind.kept ? 'definitions.kept' : 'definitions.changed')}`,
].filter(Boolean).join(', ');

/** vhost, name, ...: the pieces that make up the name of an object. */
const Names = ({ of }) => of.map((piece, i) => <>{i > 0 && <span class="muted"> › </span>}<bdi class="name">{String(piece) || t('empty_name')}</bdi></>);

function Changed({ change, kept }) {
	return (
		<li>
			<Badge kind="warn">{t(kept ? 'definitions.kept' : 'definitions.changed')}</Badge> <Names of={change.name} />
			<dl class="differs">
				{Object.entries(change.differs).map(([field, [was, now]]) => (
					<div key={field}>
						<dt><code>{field}</code></dt>
						{SECRET.includes(field) ? <dd>{t('definitions.differs')}</dd> : (
							<>
								<dd><span class="muted">{t('definitions.was')}</span> <Value of={was ?? null} /></dd>
								<dd><span class="muted">{t(kept ? 'definitions.kept.now' : 'definitions.now')}</span> <Value of={now} /></dd>
							</>
						)}
					</div>
				))}
			</dl>
		</li>
	);
}
