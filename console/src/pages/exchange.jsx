// SPDX-License-Identifier: Apache-2.0
// One exchange: what it is, where a message would go from it, what is bound to what, and a message to send.
import { del, get, path } from '../api.js';
import { t } from '../i18n/index.js';
import { Destroy } from '../lib/dialog.jsx';
import { DEFAULT, ExchangeFeatures, isPredeclared } from '../lib/exchange.jsx';
import { number, rate } from '../lib/format.js';
import { usePolled } from '../lib/hooks.js';
import { Badge, Card, Facts, Name, Refused, Tabs, Value } from '../lib/parts.jsx';
import { Publish } from '../lib/publish.jsx';
import { Tail } from '../lib/tail.jsx';
import { useRights } from '../lib/rights.jsx';
import { say } from '../lib/toast.jsx';
import { go, setParams, useRoute } from '../router.js';
import { ExchangeBindings } from './bindings.jsx';
import { Route } from './exchange_route.jsx';

const TABS = ['state', 'route', 'bindings', 'inbound', 'live', 'publish'];

/* Those of another tab's list, but for the tab. */
const goTab = (tab) => setParams({ tab, page: null, search: null, sort: null, desc: null, key: null });

export function Exchange({ args: [vhost, inAddress] }) {
	const { params } = useRoute();
	const { data: x, error, again } = usePolled((signal) => get(path('exchanges', vhost, inAddress), { signal }), [vhost, inAddress]);
	const name = inAddress === DEFAULT ? '' : inAddress;
	const may = useRights(vhost, 'exchange', inAddress);
	const tabs = TABS.filter((tab) => !(tab === 'publish' && (x?.internal || !may.write)) && !(tab === 'inbound' && name === '') && !(tab === 'live' && !may.read));
	const tab = tabs.includes(params.tab) ? params.tab : 'state';
	return (
		<>
			<h1>{t('exchange')} {name === '' ? t('exchange.default') : <Name>{name}</Name>} <small class="muted"><bdi>{vhost}</bdi></small></h1>
			<Refused error={error} />
			<Tabs choices={tabs.map((k) => [k, t('exchange.tab.' + k)])} value={tab} onChange={goTab} />
			{x && tab === 'state' && <About exchange={x} vhost={vhost} name={name} may={may.configure} />}
			{x && tab === 'route' && <Route vhost={vhost} exchange={name} type={x.type} />}
			{x && tab === 'bindings' && <ExchangeBindings from vhost={vhost} name={name} type={x.type} may={may.read} />}
			{x && tab === 'inbound' && <ExchangeBindings vhost={vhost} name={name} type={x.type} may={may.write} />}
			{x && tab === 'live' && <Tail what="exchange" vhost={vhost} name={inAddress} />}
			{x && tab === 'publish' && <Card title={t('publish.exchange')}><Publish vhost={vhost} exchange={name} firstKey={params.key} after={again} /></Card>}
		</>
	);
}

function About({ exchange: x, vhost, name, may }) {
	const stats = x.message_stats ?? {};
	const remove = async () => {
		await del(path('exchanges', vhost, name));
		say(t('exchange.deleted', { name }));
		go('exchanges');
	};
	return (
		<div class="cards">
			<Card title={t('exchange.tab.state')}>
				<Facts rows={[
					[t('type'), <Badge>{x.type}</Badge>],
					[t('features'), <ExchangeFeatures exchange={x} />],
					[t('line.in'), `${number(stats.publish_in ?? 0)}, ${rate(stats.publish_in_details?.rate ?? 0)}`],
					[t('line.out'), `${number(stats.publish_out ?? 0)}, ${rate(stats.publish_out_details?.rate ?? 0)}`],
				]} />
				<p class="muted">{t(name === '' ? 'exchange.default.text' : 'route.type.' + x.type)}</p>
			</Card>
			<Card title={t('queue.settings')}>
				<Facts rows={[
					[t('arguments'), <Value of={x.arguments} />],
					[t('policy'), x.policy ? <bdi>{x.policy}</bdi> : t('none')],
				]} />
			</Card>
			{may && !isPredeclared(name) && (
				<Card title={t('actions')}>
					<Destroy label={t('exchange.delete')} question={t('exchange.delete.sure')} name={name} run={remove} />
				</Card>
			)}
		</div>
	);
}
