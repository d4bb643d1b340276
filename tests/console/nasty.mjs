// SPDX-License-Identifier: Apache-2.0
// Names that a page must not take for markup, addresses or the end of a string.
export const NASTY = [
	'<img src=x onerror="window.pwned=1">',
	'"><script>window.pwned=1</script>',
	"it's \"quoted\" & <b>bold</b>",
	'slash/and?query=1#hash%2F',
	'javascript:window.pwned=1',
	'שלום عربي',
	'\u202eright-to-left override',
	'emoji 🐇👩‍🚀 中文队列',
];

/* All of it in one. test_console.py has a connection that is named so. */
export const ALL = '<img src=x onerror="window.pwned=1">\'"><script>window.pwned=1</script>&amp;\u202e שלום 🐇 \\%2F';
