// SPDX-License-Identifier: Apache-2.0
// Who is logged in, and what that user may do: what is not allowed is not offered.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';

export const Session = createContext(null);

/** { name, tags, vhosts, has(tag), isAdministrator, mayMonitor, maySetPolicies, defaultPassword, isLocal (logs in
 * from the machine of the node only), reload() } */
export const useSession = () => useContext(Session);

/** reload: asks for both anew, after something was done that changes them. */
export function makeSession(who, vhosts, reload) {
	const tags = Array.isArray(who.tags) ? who.tags : String(who.tags).split(',');
	const has = (tag) => tags.includes(tag);
	return {
		name: who.name,
		tags,
		vhosts: vhosts.map((v) => v.name),
		has,
		isAdministrator: has('administrator'),
		mayMonitor: has('administrator') || has('monitoring'),
		maySetPolicies: has('administrator') || has('policymaker'),
		defaultPassword: who.default_password === true,
		isLocal: who.loopback_only === true,
		reload,
	};
}
