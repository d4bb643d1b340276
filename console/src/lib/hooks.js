// SPDX-License-Identifier: Apache-2.0
// Asking again and again, and what the browser keeps.
import { useCallback, useLayoutEffect, useRef, useState } from 'preact/hooks';

export const EVERY = 5000; // milliseconds between two questions of one page

/**
 * Calls load(signal) now, when a value of `deps` changes, and every few seconds while the page is in sight.
 * { data, error, again }: data stays while an error is shown; again() asks at once.
 */
export function usePolled(load, deps, every = EVERY) {
	const [state, setState] = useState({ data: undefined, error: null });
	const [asked, setAsked] = useState(0);
	const again = useCallback(() => setAsked((n) => n + 1), []);
	const latest = useRef(load);
	latest.current = load;
	useLayoutEffect(() => { // asks before the page is drawn
		const control = new AbortController();
		let timer, busy = false;
		const turn = async () => {
			clearTimeout(timer);
			if (!busy && !document.hidden) {
				busy = true;
				try {
					const data = await latest.current(control.signal);
					if (!control.signal.aborted)
						setState({ data, error: null });
				} catch (error) {
					if (!control.signal.aborted && error.status !== 0) // where nobody answers the frame says so
						setState((old) => ({ data: old.data, error }));
				}
				busy = false;
			}
			if (!control.signal.aborted)
				timer = setTimeout(turn, every);
		};
		const seen = () => document.hidden || turn();
		turn();
		document.addEventListener('visibilitychange', seen);
		return () => {
			control.abort();
			clearTimeout(timer);
			document.removeEventListener('visibilitychange', seen);
		};
	}, [...deps, asked, every]);
	return { ...state, again };
}

/** Like useState, kept by the browser under a name. */
export function useKept(name, initial) {
	const key = 'hermes.' + name;
	const [value, setValue] = useState(() => {
		try {
			return JSON.parse(localStorage.getItem(key)) ?? initial;
		} catch {
			return initial;
		}
	});
	const set = (next) => {
		localStorage.setItem(key, JSON.stringify(next));
		setValue(next);
	};
	return [value, set];
}
