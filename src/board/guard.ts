/**
 * Who may ask the HTTP listener: whoever has the token; no pages of other sites (a foreign `Origin`); and without a
 * token nobody under a foreign `Host`, by which a page could reach a loopback address under its own name.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from './loopback.js';

export type Verdict = 'yes' | { status: 401 | 403; error: string };

/** `open` paths need no token: probes, and what has a secret of its own. */
export function allowed(
  listener: { host: string; token: string | null },
  open: boolean,
  headers: Pick<IncomingHttpHeaders, 'host' | 'origin' | 'authorization'>,
): Verdict {
  const { host, origin, authorization } = headers;
  if (origin !== undefined && hostOf(origin) !== host?.toLowerCase()) {
    return { status: 403, error: 'foreign origin' };
  }
  if (open) return 'yes';
  if (listener.token !== null) {
    const given = /^Bearer +(.+)$/i.exec(authorization ?? '')?.[1]?.trim() ?? '';
    return areEqual(given, listener.token) ? 'yes' : { status: 401, error: 'a bearer token is needed' };
  }
  if (isLoopback(listener.host) && !isLoopback(hostOf(`http://${host}`, 'hostname') ?? '')) {
    return { status: 403, error: 'foreign host' };
  }
  return 'yes';
}

function hostOf(address: string, part: 'host' | 'hostname' = 'host'): string | null {
  return URL.canParse(address) ? new URL(address)[part] : null;
}

/** Takes the same time wherever they differ. */
function areEqual(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}
