/** `tools.web.allow_hosts`: hosts beside us that may be fetched all the same, each with a port or without one. Pure. */
import { isIPv6 } from 'node:net';
import { hostOf } from '../../core/addresses.js';

export interface AllowedHost {
  /** As `hostOf` gives it. */
  host: string;
  /** null: any. */
  port: number | null;
}

/** `nas.lan`, `nas.lan:8080`, `192.168.1.5`, `fd00::5`, `[fd00::5]:8080`, `http://nas.lan`; null for anything else. */
export function allowedHost(listed: string): AllowedHost | null {
  const given = listed.trim().replace(/^https?:\/\/([^/]*)\/?$/i, '$1');
  const entry = isIPv6(given) ? `[${given}]` : given;
  const [, host = '', port] = /^(\[[^\]]*\]|[^:/?#@\s]+)(?::(\d{1,5}))?$/.exec(entry) ?? [];
  const address = port === undefined ? `http://${host}` : `http://${host}:${port}`;
  if (host === '' || !URL.canParse(address)) return null;
  return { host: hostOf(new URL(address)), port: port === undefined ? null : Number(port) };
}

/** `host` is a name, or the address that a name led to. */
export function isAllowed(allowed: readonly AllowedHost[], host: string, port: number): boolean {
  const same = isIPv6(host) ? hostOf(new URL(`http://[${host}]`)) : host;
  return allowed.some((each) => each.host === same && (each.port === null || each.port === port));
}
