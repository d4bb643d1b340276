// SPDX-License-Identifier: Apache-2.0
// All pages: the first piece of the address names one. `detail` shows one object; `may` says who is offered it.
import { Channel, Channels, Consumers } from './channels.jsx';
import { Connection, Connections } from './connections.jsx';
import { Overview } from './overview.jsx';
import { Queue } from './queue.jsx';
import { Queues } from './queues.jsx';

export const pages = [
	{ name: 'overview', list: Overview, group: 'node' },
	{ name: 'queues', list: Queues, detail: Queue, group: 'messages' },
	{ name: 'connections', list: Connections, detail: Connection, group: 'clients' },
	{ name: 'channels', list: Channels, detail: Channel, group: 'clients' },
	{ name: 'consumers', list: Consumers, group: 'clients' },
];
