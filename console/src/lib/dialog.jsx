// SPDX-License-Identifier: Apache-2.0
// Dialogs: the browser's own <dialog>, which keeps the focus inside and closes by Escape.
import { useEffect, useRef, useState } from 'preact/hooks';
import { t } from '../i18n/index.js';
import { complain } from './toast.jsx';

export function Dialog({ title, onClose, children, wide }) {
	const ref = useRef();
	useEffect(() => {
		const before = document.activeElement, dialog = ref.current;
		dialog.showModal();
		return () => { // also where it went because its work is done
			dialog.close();
			if (before?.isConnected)
				before.focus();
		};
	}, []);
	/* At once: the browser tells of it later, when another one may be open. */
	const close = (e) => {
		e.preventDefault();
		ref.current.close();
		onClose();
	};
	return (
		<dialog ref={ref} class={wide ? 'wide' : ''} onCancel={close} onClose={(e) => e.target.isConnected && onClose()} aria-label={title}>
			<header><h2>{title}</h2><button class="icon" type="button" aria-label={t('close')} onClick={close}>×</button></header>
			{children}
		</dialog>
	);
}

/**
 * A button that asks before it destroys. With `name`, that has to be typed first: for what cannot be undone.
 * run() does it; its refusal is shown and the dialog stays.
 */
export function Destroy({ label, question, name, run, disabled, small }) {
	const [open, setOpen] = useState(false);
	const [typed, setTyped] = useState('');
	const [busy, setBusy] = useState(false);
	const close = () => {
		setOpen(false);
		setTyped('');
	};
	const submit = async (e) => {
		e.preventDefault();
		setBusy(true);
		try {
			await run();
			close();
		} catch (error) {
			complain(error);
		}
		setBusy(false);
	};
	return (
		<>
			<button class={small ? 'danger small' : 'danger'} disabled={disabled} onClick={() => setOpen(true)}>{label}</button>
			{open && (
				<Dialog title={label} onClose={close}>
					<form onSubmit={submit}>
						<p>{question}</p>
						{name !== undefined && (
							<label class="field">{t('destroy.type')} <bdi><code>{name}</code></bdi>
								<input value={typed} autocomplete="off" onInput={(e) => setTyped(e.target.value)} autofocus />
							</label>
						)}
						<footer>
							<button type="button" onClick={close}>{t('cancel')}</button>
							<button class="danger" disabled={busy || (name !== undefined && typed !== name)}>{label}</button>
						</footer>
					</form>
				</Dialog>
			)}
		</>
	);
}
