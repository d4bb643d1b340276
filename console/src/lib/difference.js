// SPDX-License-Identifier: Apache-2.0
// What an import of definitions would do: each object of a file beside the one that is there.

const list = (tags) => (Array.isArray(tags) ? tags : String(tags ?? '').split(',').map((tag) => tag.trim()).filter(Boolean));
const some = (arguments_) => (Array.isArray(arguments_) ? {} : arguments_ ?? {}); // RabbitMQ writes [] for none
const limits = (user) => some(user.limits);

/** What of it counts, in one form: files say the same in several ways. A field that is undefined is left as it is. */
function vhost(v) {
	const from = v.metadata ?? v, type = from.default_queue_type ?? v.default_queue_type;
	return { description: from.description, tags: from.tags === undefined ? undefined : list(from.tags),
		default_queue_type: type === 'undefined' ? undefined : type };
}

function queueArguments(q) {
	const { 'x-queue-type': type, ...rest } = some(q.arguments), said = type ?? q.type ?? 'classic';
	return said === 'classic' ? rest : { ...rest, 'x-queue-type': said };
}

/**
 * In the order in which the node makes them. name: fields that tell one from another; of: what counts; kept: one that is
 * there stays as it is, whatever the file says; inVhost: also in a file of one vhost.
 */
export const KINDS = [
	{ key: 'global_parameters', name: ['name'], of: (p) => ({ value: p.value }) },
	{ key: 'users', name: ['name'], of: (u) => ({ password_hash: u.password_hash, password: u.password, tags: list(u.tags), limits: limits(u) }) },
	{ key: 'vhosts', name: ['name'], of: vhost },
	{ key: 'permissions', name: ['vhost', 'user'], of: ({ configure, write, read }) => ({ configure, write, read }) },
	{ key: 'topic_permissions', name: ['vhost', 'user', 'exchange'], of: ({ write, read }) => ({ write, read }) },
	{ key: 'parameters', name: ['vhost', 'component', 'name'], of: (p) => ({ value: p.value }), inVhost: true },
	{ key: 'policies', name: ['vhost', 'name'], inVhost: true,
		of: (p) => ({ pattern: p.pattern, 'apply-to': p['apply-to'] ?? 'all', priority: p.priority ?? 0, definition: p.definition }) },
	{ key: 'queues', name: ['vhost', 'name'], inVhost: true, kept: true,
		of: (q) => ({ durable: isTrue(q.durable), auto_delete: isTrue(q.auto_delete), arguments: queueArguments(q) }) },
	{ key: 'exchanges', name: ['vhost', 'name'], inVhost: true, kept: true,
		of: (x) => ({ type: x.type, durable: isTrue(x.durable), auto_delete: isTrue(x.auto_delete), internal: isTrue(x.internal), arguments: some(x.arguments) }) },
	{ key: 'bindings', name: ['vhost', 'source', 'destination_type', 'destination', 'routing_key'], inVhost: true,
		of: (b) => ({ arguments: some(b.arguments) }), manyOfAName: true },
];

const isTrue = (v) => v === true || v === 'true';

/** JSON with names in order: equal values give equal texts. */
export function stable(value) {
	if (Array.isArray(value))
		return `[${value.map(stable).join(',')}]`;
	if (value === null || typeof value !== 'object')
		return JSON.stringify(value) ?? 'null';
	return `{${Object.keys(value).sort().map((k) => `${JSON.stringify(k)}:${stable(value[k])}`).join(',')}}`;
}

/** Fields that the file says otherwise: { field: [as it is, as the file has it] }. */
function changes(was, now) {
	const found = {};
	for (const field of Object.keys(now))
		if (now[field] !== undefined && stable(now[field]) !== stable(was[field]))
			found[field] = [was[field], now[field]];
	return found;
}

const items = (doc, key) => (Array.isArray(doc[key]) ? doc[key].filter((i) => i !== null && typeof i === 'object') : []);

function compareKind(kind, file, there, vhostName) {
	const nameOf = (item) => kind.name.map((field) => (field === 'vhost' && vhostName !== undefined ? vhostName : item[field] ?? ''));
	const idOf = (item) => stable(kind.manyOfAName ? [...nameOf(item), kind.of(item)] : nameOf(item));
	const known = new Map(items(there, kind.key).map((item) => [idOf(item), item]));
	const result = { kind, added: [], changed: [], same: 0, only: 0 }, seen = new Set();
	for (const item of items(file, kind.key)) {
		const id = idOf(item), was = known.get(id), name = nameOf(item);
		seen.add(id);
		const differs = was && changes(kind.of(was), kind.of(item));
		if (!was)
			result.added.push({ name, now: kind.of(item) });
		else if (Object.keys(differs).length)
			result.changed.push({ name, differs });
		else
			result.same++;
	}
	result.only = [...known.keys()].filter((id) => !seen.has(id)).length;
	return result;
}

/**
 * file: what is to be imported; there: the definitions of the node, or of the vhost `vhostName`. { kinds: [{ kind, added: [{ name,
 * now }], changed: [{ name, differs }], same, only }], left: kinds of the file that an import into a vhost leaves out, homeless:
 * how many objects of it name no vhost, though they have to }.
 */
export function compare(file, there, vhostName) {
	const wanted = KINDS.filter((kind) => vhostName === undefined || kind.inVhost);
	const homeless = vhostName !== undefined ? 0 : KINDS.filter((kind) => kind.inVhost)
		.reduce((sum, kind) => sum + items(file, kind.key).filter((item) => typeof item.vhost !== 'string').length, 0);
	return {
		kinds: wanted.map((kind) => compareKind(kind, file, there, vhostName)),
		left: KINDS.filter((kind) => !wanted.includes(kind) && items(file, kind.key).length).map((kind) => kind.key),
		homeless,
	};
}
