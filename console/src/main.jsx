// SPDX-License-Identifier: Apache-2.0
import { render } from 'preact';
import { App } from './app.jsx';
import 'uplot/dist/uPlot.min.css';
import './style.css';

const theme = localStorage.getItem('hermes.theme');
if (theme)
	document.documentElement.dataset.theme = JSON.parse(theme);
render(<App />, document.getElementById('app'));
