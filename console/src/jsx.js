// SPDX-License-Identifier: Apache-2.0
// What JSX stands for; build.mjs brings it into every file.
export { Fragment, h } from 'preact';
