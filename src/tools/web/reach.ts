/** The rules of `web_fetch` about addresses, for others who are sent somewhere by somebody else. */
import type { LookupFor } from '../../core/outward.js';
import { allowedHost } from './allowed-hosts.js';
import { type Network, onlyTo } from './network.js';
import { checkedAddresses } from './request.js';

/** `allowHosts`: `tools.web.allow_hosts`. What it gives throws NotFetched where a server may not be reached. */
export function createReach(allowHosts: readonly string[], network: Network): LookupFor {
  const allowed = allowHosts.flatMap((listed) => allowedHost(listed) ?? []);
  return async ({ host, port }) => {
    const { signal } = new AbortController();
    return onlyTo(
      await checkedAddresses(host.replace(/(?<!\.)\.+$/, ''), port, { allowed, network, signal }),
    );
  };
}
