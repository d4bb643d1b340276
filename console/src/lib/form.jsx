// SPDX-License-Identifier: Apache-2.0
// Forms: labelled fields whose values live in one object, and a submit that shows what was refused beside itself.
import { useState } from 'preact/hooks';
import { t } from '../i18n/index.js';

/**
 * const form = useForm({ name: '', durable: true }); <Text form={form} name="name" label="..."/>.
 * form.values, form.set(name, value), form.reset().
 */
export function useForm(initial) {
	const [values, setValues] = useState(initial);
	return { values, set: (name, value) => setValues((old) => ({ ...old, [name]: value })), reset: () => setValues(initial) };
}

function Field({ label, hint, children, check }) {
	return (
		<label class={check ? 'field check' : 'field'}>
			{check && children}
			<span class="label">{label}</span>
			{!check && children}
			{hint && <span class="hint">{hint}</span>}
		</label>
	);
}

/* first: it takes the focus where nothing has it, as after a link that went with its page. */
const focused = (e) => e && ['BODY', 'MAIN'].includes(document.activeElement.tagName) && e.focus();

export const Text = ({ form, name, label, hint, type = 'text', first, ...rest }) => (
	<Field label={label} hint={hint}>
		<input ref={first && focused} type={type} value={form.values[name]} onInput={(e) => form.set(name, e.target.value)} autocomplete="off"
			spellcheck={false} {...rest} />
	</Field>
);

export const Area = ({ form, name, label, hint, rows = 5, first, ...rest }) => (
	<Field label={label} hint={hint}>
		<textarea ref={first && focused} rows={rows} value={form.values[name]} onInput={(e) => form.set(name, e.target.value)} spellcheck={false} {...rest} />
	</Field>
);

/** options: ['a', ...] or [['value', 'text'], ...] */
export const Select = ({ form, name, label, hint, options, ...rest }) => (
	<Field label={label} hint={hint}>
		<select value={form.values[name]} onChange={(e) => form.set(name, e.target.value)} {...rest}>
			{options.map((o) => (Array.isArray(o) ? <option value={o[0]}>{o[1]}</option> : <option value={o}>{o}</option>))}
		</select>
	</Field>
);

export const Check = ({ form, name, label, hint, ...rest }) => (
	<Field label={label} hint={hint} check>
		<input type="checkbox" checked={form.values[name]} onChange={(e) => form.set(name, e.target.checked)} {...rest} />
	</Field>
);

/** An object of arguments or headers as JSON: { text } to edit, parsed by parseObject. */
export function parseObject(text, what) {
	if (!text.trim())
		return {};
	let value;
	try {
		value = JSON.parse(text);
	} catch (e) {
		throw new Error(t('form.json', { what, why: e.message }));
	}
	if (value === null || typeof value !== 'object' || Array.isArray(value))
		throw new Error(t('form.object', { what }));
	return value;
}

/** A form whose submit runs; what is refused is shown in it. */
export function Form({ submit, label, children, disabled, danger }) {
	const [error, setError] = useState(null);
	const [busy, setBusy] = useState(false);
	const on = async (e) => {
		e.preventDefault();
		setBusy(true);
		setError(null);
		try {
			await submit();
		} catch (refused) {
			setError(refused.reason ?? refused.message);
		}
		setBusy(false);
	};
	return (
		<form onSubmit={on}>
			{children}
			{error && <p class="refused" role="alert">{error}</p>}
			<footer><button class={danger ? 'danger' : 'primary'} disabled={busy || disabled}>{label}</button></footer>
		</form>
	);
}
