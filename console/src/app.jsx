// SPDX-License-Identifier: Apache-2.0
// The frame around all pages: login, navigation, what everybody has to see.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { get, logout, onState } from './api.js';
import { apart, t } from './i18n/index.js';
import { LanguageChoice, ThemeChoice } from './lib/choices.jsx';
import { Toasts, complain } from './lib/toast.jsx';
import { pages } from './pages/index.js';
import { Login } from './pages/login.jsx';
import { href, useRoute } from './router.js';
import { Session, makeSession } from './session.js';

const RETRY = 3000; // milliseconds

/* Is the page that the node serves another one than this? */
async function isNewer() {
	try {
		const page = await (await fetch('./', { cache: 'no-store' })).text();
		return ![...document.scripts].every((s) => page.includes(s.src.split('/').pop()));
	} catch {
		return false;
	}
}

export function App() {
	const [session, setSession] = useState(undefined); // undefined: not known yet; null: nobody
	const [state, setState] = useState({ reachable: true, expired: false });
	const [, setDrawn] = useState(0);
	const redraw = () => setDrawn((n) => n + 1);
	const known = useRef();
	known.current = session;
	const enter = useCallback(async () => {
		const [who, vhosts] = await Promise.all([get('whoami'), get('vhosts?columns=name')]);
		setState((old) => ({ ...old, expired: false }));
		setSession(makeSession(who, vhosts, enter));
	}, []);
	useLayoutEffect(() => {
		enter().catch((e) => e.status && setSession(null));
		return onState((change) => {
			if (!change.expired) {
				setState((old) => ({ ...old, ...change }));
				return;
			}
			if (known.current)
				setState((old) => ({ ...old, expired: true }));
			setSession(null);
		});
	}, []);
	/* As it comes back: it may be another version, whose pages ask for what this one does not have. */
	useEffect(() => {
		if (state.reachable) {
			state.lost && isNewer().then((newer) => newer && setState((old) => ({ ...old, newer })));
			return undefined;
		}
		setState((old) => ({ ...old, lost: true }));
		const timer = setInterval(() => get('whoami').then(() => session === undefined && enter()).catch(() => {}), RETRY);
		return () => clearInterval(timer);
	}, [state.reachable, session]);
	/* In another tab somebody may have logged in or out, or as another. */
	useEffect(() => {
		const seen = () => document.hidden || get('whoami').then((who) => who.name !== session?.name && enter()).catch(() => {});
		document.addEventListener('visibilitychange', seen);
		return () => document.removeEventListener('visibilitychange', seen);
	}, [session]);
	const leave = () => logout().catch(complain).then(() => setSession(null));
	return (
		<Session.Provider value={session}>
			{!state.reachable && <p class="banner bad" role="alert">{t('lost')}</p>}
			{state.newer && <p class="banner warn top" role="alert">{t('newer')} <button class="small" onClick={() => location.reload()}>{t('newer.reload')}</button></p>}
			{session === null && <Login onLogin={enter} expired={state.expired} redraw={redraw} />}
			{session && <Frame key={session.name} session={session} leave={leave} redraw={redraw} />}
			<Toasts />
		</Session.Provider>
	);
}

function Frame({ session, leave, redraw }) {
	const { pieces, params } = useRoute();
	const offered = pages.filter((p) => !p.may || p.may(session));
	const page = offered.find((p) => p.name === pieces[0]) ?? offered[0];
	const rest = page.name === pieces[0] ? pieces.slice(1) : [];
	const Page = rest.length && page.detail ? page.detail : page.list;
	useEffect(() => {
		document.title = [rest.length && apart(rest.at(-1)), t('page.' + page.name), 'Hermes'].filter(Boolean).join(' · ');
	});
	useEffect(() => { // what had the focus has gone with its page
		if (document.activeElement === document.body)
			document.getElementById('main').focus({ preventScroll: true });
	}, [pieces.join('/'), params.tab]);
	return (
		<div class="frame">
			<a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById('main').focus(); }}>{t('skip')}</a>
			<nav aria-label={t('pages')}>
				<a class="brand" href={href()}>Hermes</a>
				{offered.map((p, i) => (
					<a key={p.name} href={href(p.name)} aria-current={p === page ? 'page' : undefined}
						class={i && p.group !== offered[i - 1].group ? 'apart' : ''}>{t('page.' + p.name)}</a>
				))}
				<span class="grow" />
				<a href="api/index.html">{t('api')}</a>
				<div class="who"><bdi>{session.name}</bdi><button class="small" onClick={leave}>{t('logout')}</button></div>
				<div class="who"><LanguageChoice redraw={redraw} /><ThemeChoice redraw={redraw} /></div>
			</nav>
			<main id="main" tabIndex={-1}>
				{session.defaultPassword && <p class="banner warn" role="status"><bdi>{t('default_password', { name: session.name })}</bdi>{' '}
					{session.isLocal && t('default_password.local')}{' '}
					{session.isAdministrator && <a href={href('users', session.name)}>{t('default_password.set')}</a>}</p>}
				<Page key={pieces.join('/')} args={rest} />
			</main>
		</div>
	);
}
