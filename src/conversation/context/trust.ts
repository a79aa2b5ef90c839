/**
 * Step 4 of the route: whether words from outside (a forward, a file, a stranger, or an answer to such) are among what a
 * request shows, and which hosts people named in words of their own. Pure.
 */
import type { StoredMessage } from '../../core/transcript.js';
import type { ViewRecord } from '../../core/view.js';
import type { Trust } from '../turn/ask.js';

/** What is known of the messages of a window; grows with it. */
export interface Heard {
  tainted: boolean;
  hosts: Set<string>;
}

/** `https://example.com/path`, `example.com:8080`, `münchen.de`. A name begins where a word does: words may be very long. */
const ADDRESS =
  /https?:\/\/[^\s<>"'`)\]}]+|(?<![\p{L}\p{N}-])[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+|\[[0-9a-f:.]+\]|localhost/giu;

export function noteHeard(heard: Heard, message: StoredMessage): void {
  if (message.tainted) {
    heard.tainted = true;
    return;
  }
  const { author, words, text } = message;
  if (author.kind !== 'person' || author.bot) return;
  for (const host of hostsIn(words ?? text)) heard.hosts.add(host);
}

/** Hardly any text names a host, and most of those that do not are told at once. */
const MAY_NAME = /[^\s.]\.[^\s.]|\[|localhost|\/\//i;

/** The hosts that a text names. */
export function hostsIn(text: string): string[] {
  if (!MAY_NAME.test(text)) return [];
  return [...text.matchAll(ADDRESS)].flatMap(([address]) => hostOf(address) ?? []);
}

export function trustOf(
  { heard, view }: { heard: Heard; view: Pick<ViewRecord, 'tainted'> },
  batch: readonly StoredMessage[],
): Trust {
  const asked: Heard = { tainted: false, hosts: new Set() };
  for (const message of batch) noteHeard(asked, message);
  return {
    isTainted: heard.tainted || view.tainted || asked.tainted,
    isNamed(address) {
      const host = hostOf(address);
      return host !== null && (heard.hosts.has(host) || asked.hosts.has(host));
    },
  };
}

/** As a URL names it: lower case, without a port, in ASCII. */
export function hostOf(address: string): string | null {
  const url = /^https?:\/\//i.test(address) ? address : `http://${address}`;
  try {
    return new URL(url).hostname.replace(/\.$/, '');
  } catch {
    return null;
  }
}
