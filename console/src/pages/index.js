// SPDX-License-Identifier: Apache-2.0
// All pages: the first piece of the address names one. `detail` shows one object; `may` says who is offered it.
import { Overview } from './overview.jsx';
import { Queue } from './queue.jsx';
import { Queues } from './queues.jsx';

export const pages = [
	{ name: 'overview', list: Overview, group: 'node' },
	{ name: 'queues', list: Queues, detail: Queue, group: 'messages' },
];
