// SPDX-License-Identifier: Apache-2.0
// Language and colours: kept by the browser.
import { language, languageNames, setLanguage, t } from '../i18n/index.js';
import { useKept } from './hooks.js';

export const LanguageChoice = ({ redraw }) => (
	<select aria-label={t('language')} value={language()} onChange={(e) => { setLanguage(e.target.value); redraw(); }}>
		{Object.entries(languageNames).map(([key, name]) => <option value={key} lang={key}>{name}</option>)}
	</select>
);

export function ThemeChoice({ redraw }) {
	const [theme, setTheme] = useKept('theme', 'auto');
	const choose = (e) => {
		setTheme(e.target.value);
		document.documentElement.dataset.theme = e.target.value;
		redraw();
	};
	return (
		<select aria-label={t('theme')} value={theme} onChange={choose}>
			{['auto', 'light', 'dark'].map((name) => <option value={name}>{t('theme.' + name)}</option>)}
		</select>
	);
}
