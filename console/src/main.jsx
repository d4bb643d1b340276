// SPDX-License-Identifier: Apache-2.0
import { render } from 'preact';
import { ahead } from './api.js';
import { App } from './app.jsx';
import 'uplot/dist/uPlot.min.css';
import './style.css';

const theme = localStorage.getItem('hermes.theme');
if (theme)
	document.documentElement.dataset.theme = JSON.parse(theme);
/* Before anything is drawn: who it is, and what the first page shows. */
ahead('whoami');
ahead('vhosts?columns=name');
if (/^#?\/?(overview)?$/.test(location.hash)) {
	ahead('overview');
	ahead('nodes');
}
render(<App />, document.getElementById('app'));
