/**
 * What goes to the gateway: kept in order until a receipt or an ack comes for it, given again at every login, and
 * sealed anew when the gateway asks for it again. Nothing is lost here, as long as the gateway takes it.
 */
import { type BinaryNode, S_WHATSAPP_NET } from '@whiskeysockets/baileys';
import { child, children, stanza } from './whatsapp-nodes.js';
import type { Wire } from './whatsapp-wire.js';

export interface Letter {
  id: string;
  class: 'message' | 'receipt' | 'notification';
  /** As it stands on the wire; `again` counts how often the gateway could not read it. */
  seal(again: number): Promise<BinaryNode>;
  /** Marked as late, whenever it comes. */
  late?: boolean;
  /** Sent twice, byte for byte. */
  doubled?: boolean;
}

interface Posted extends Letter {
  sealed: BinaryNode | null;
  again: number;
  settled: boolean;
}

export interface Post {
  send(letter: Letter): void;
  /** Everything that waits, then the word that this was all of it. */
  login(wire: Wire): void;
  logout(): void;
  /** Somebody is logged in and was given everything that waited. */
  ready(): boolean;
  /** Another device: it can read nothing that was sealed for the one before. */
  renew(): void;
  /** A receipt or an ack of the gateway. */
  heard(node: BinaryNode): void;
  pending(): number;
  /** Resolves when everything is done that was asked for so far. */
  idle(): Promise<void>;
}

/**
 * `given` is called when everything that waited was given to a gateway that logged in, `taken` when it has taken messages.
 */
export function makePost(given: () => void, taken: () => void, complain: (what: string) => void): Post {
  let waiting: Posted[] = [];
  const byId = new Map<string, Posted>();
  let wire: Wire | null = null;
  let ready = false;
  let work: Promise<void> = Promise.resolve();

  function then(job: () => Promise<void>): void {
    work = work.then(job).catch((error: unknown) => complain(`to the gateway: ${String(error)}`));
  }

  async function give(letter: Posted, late: boolean): Promise<void> {
    letter.sealed ??= await letter.seal(letter.again);
    const { tag, attrs, content } = letter.sealed;
    const node = stanza(tag, late ? { ...attrs, offline: '0' } : attrs, content);
    wire?.send(node);
    if (letter.doubled === true) wire?.send(node);
  }

  function settle(ids: string[], kind: Letter['class']): void {
    for (const letter of waiting) {
      if (letter.class === kind && ids.includes(letter.id)) letter.settled = true;
    }
    const before = waiting.length;
    waiting = waiting.filter(({ settled }) => !settled);
    if (kind === 'message' && waiting.length < before) taken();
  }

  /** The gateway could not read it. */
  function resend(id: string): void {
    const letter = byId.get(id);
    if (letter === undefined) return;
    letter.again += 1;
    letter.settled = false;
    if (!waiting.includes(letter)) waiting.push(letter);
    then(async () => {
      letter.sealed = null;
      if (wire !== null) await give(letter, false);
    });
  }

  return {
    send(letter) {
      then(async () => {
        const posted: Posted = { ...letter, sealed: null, again: 0, settled: false };
        waiting.push(posted);
        if (letter.class === 'message') byId.set(letter.id, posted);
        if (wire !== null) await give(posted, letter.late === true);
      });
    },

    login(opened) {
      then(async () => {
        wire = opened;
        const late = [...waiting];
        for (const letter of late) await give(letter, true);
        opened.send(
          stanza('ib', { from: S_WHATSAPP_NET }, [stanza('offline', { count: String(late.length) })]),
        );
        if (!opened.open()) return;
        ready = true;
        given();
      });
    },
    logout() {
      wire = null;
      ready = false;
    },
    ready: () => ready,
    renew() {
      then(async () => {
        for (const letter of byId.values()) Object.assign(letter, { sealed: null, again: 0 });
      });
    },

    heard(node) {
      const id = node.attrs.id ?? '';
      if (node.tag === 'ack') {
        const kind = node.attrs.class as Letter['class'];
        // A message that it asked for again is refused as well.
        const asked = kind === 'message' && node.attrs.error !== undefined && byId.get(id)?.again;
        if (!asked) settle([id], kind);
      } else if (node.attrs.type === 'retry') {
        resend(id);
      } else {
        const more = children(child(node, 'list'), 'item').map(({ attrs }) => attrs.id ?? '');
        settle([id, ...more], 'message');
      }
    },
    pending: () => waiting.length,
    idle: () => work,
  };
}
