// SPDX-License-Identifier: Apache-2.0
// What was done, or refused: short notes at the foot of the page. Refusals stay until they are read.
import { useEffect, useState } from 'preact/hooks';
import { t } from '../i18n/index.js';

const STAYS = 4000; // milliseconds
const MOST = 5;
let notes = [], next = 1, draw = () => {};

function set(list) {
	notes = list;
	draw(list);
}

const drop = (id) => set(notes.filter((n) => n.id !== id));

function add(kind, text) {
	const id = next++;
	set([...notes, { id, kind, text }].slice(-MOST));
	if (kind === 'ok')
		setTimeout(() => drop(id), STAYS);
}

export const say = (text) => add('ok', text);
export const complain = (error) => add('bad', error.reason ?? error.message ?? String(error));

/** Does something; says `done`, or why not. True if it was done. */
export async function attempt(fn, done) {
	try {
		await fn();
	} catch (error) {
		complain(error);
		return false;
	}
	if (done)
		say(done);
	return true;
}

export function Toasts() {
	const [list, setList] = useState(notes);
	useEffect(() => {
		draw = setList;
	}, []);
	return (
		<div class="toasts" aria-live="polite">
			{list.map((n) => (
				<div key={n.id} class={'toast ' + n.kind} role={n.kind === 'bad' ? 'alert' : 'status'}>
					<span>{n.text}</span>
					<button class="icon" aria-label={t('close')} onClick={() => drop(n.id)}>×</button>
				</div>
			))}
		</div>
	);
}
