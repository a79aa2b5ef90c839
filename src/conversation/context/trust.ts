/**
 * Step 4 of the route: whether words from outside (a forward, a file, a stranger, or an answer to such) are among what a
 * request shows, and which hosts people named in words of their own. Pure.
 */
import type { StoredMessage, ViewRecord } from '../../core/transcript.js';
import type { Trust } from '../turn/ask.js';
import { hostOf, hostsIn } from './hosts.js';

/** What is known of the messages of a window; grows with it. */
export interface Heard {
  tainted: boolean;
  hosts: Set<string>;
}

export function noteHeard(heard: Heard, message: StoredMessage): void {
  if (message.tainted) {
    heard.tainted = true;
    return;
  }
  const { author, words, text, mentions } = message;
  if (author.kind !== 'person' || author.bot) return;
  for (const host of hostsIn(words ?? text, mentions)) heard.hosts.add(host);
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
