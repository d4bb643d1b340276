// SPDX-License-Identifier: Apache-2.0
// All pages: the first piece of the address names one. `detail` shows one object; `may` says who is offered it.
import { Channel, Channels, Consumers } from './channels.jsx';
import { Connection, Connections } from './connections.jsx';
import { Definitions } from './definitions.jsx';
import { Exchange } from './exchange.jsx';
import { Exchanges } from './exchanges.jsx';
import { DeadLetters, Letters } from './letters.jsx';
import { LimitsPage } from './limits.jsx';
import { NodePage } from './node.jsx';
import { Overview } from './overview.jsx';
import { Parameters } from './parameters.jsx';
import { Policies } from './policies.jsx';
import { Queue } from './queue.jsx';
import { Queues } from './queues.jsx';
import { User } from './user.jsx';
import { Users } from './users.jsx';
import { Vhost } from './vhost.jsx';
import { Vhosts } from './vhosts.jsx';

export const pages = [
	{ name: 'overview', list: Overview, group: 'node' },
	{ name: 'node', list: NodePage, group: 'node', may: (s) => s.mayMonitor },
	{ name: 'queues', list: Queues, detail: Queue, group: 'messages' },
	{ name: 'dead-letters', list: DeadLetters, detail: Letters, group: 'messages' },
	{ name: 'exchanges', list: Exchanges, detail: Exchange, group: 'messages' },
	{ name: 'connections', list: Connections, detail: Connection, group: 'clients' },
	{ name: 'channels', list: Channels, detail: Channel, group: 'clients' },
	{ name: 'consumers', list: Consumers, group: 'clients' },
	{ name: 'vhosts', list: Vhosts, detail: Vhost, group: 'admin' },
	{ name: 'users', list: Users, detail: User, group: 'admin', may: (s) => s.isAdministrator },
	{ name: 'policies', list: Policies, group: 'admin' },
	{ name: 'limits', list: LimitsPage, group: 'admin' },
	{ name: 'parameters', list: Parameters, group: 'admin', may: (s) => s.maySetPolicies },
	{ name: 'definitions', list: Definitions, group: 'admin', may: (s) => s.isAdministrator },
];
