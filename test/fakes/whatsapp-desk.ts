/**
 * The server's desk: who is linked and logged in, and what becomes of each stanza. A gateway that logs in takes the
 * place of the one before; only a login as the linked device, with its key, goes through.
 */
import { type BinaryNode, jidDecode, jidEncode, S_WHATSAPP_NET } from '@whiskeysockets/baileys';
import { answerTo } from './whatsapp-answers.js';
import type { Ledger, Taken } from './whatsapp-ledger.js';
import { receiptLetter, retryLetter } from './whatsapp-mail.js';
import { answer, child, children, seconds, stanza } from './whatsapp-nodes.js';
import { type Companion, makePairing, type Pairing } from './whatsapp-pairing.js';
import { isOwn, type People } from './whatsapp-people.js';
import type { Post } from './whatsapp-post.js';
import { type Gate, RESTRICTED } from './whatsapp-tokens.js';
import type { Trouble } from './whatsapp-trouble.js';
import type { Versions } from './whatsapp-versions.js';
import type { Wire, WireHandlers } from './whatsapp-wire.js';
import type { CloseCode, Presence, Receipt } from './whatsapp-words.js';

export interface Backroom {
  people: People;
  ledger: Ledger;
  post: Post;
  trouble: Trouble;
  versions: Versions;
  gate: Gate;
  complain(what: string): void;
  /** A message of ours was taken. */
  taken(): void;
  /** Called after everything that happens. */
  look(): void;
}

export interface Desk extends WireHandlers {
  pairing: Pairing;
  companion(): Companion | null;
  /** Nobody is linked any more; whoever is connected is told so. */
  unlink(): void;
  endAll(code: CloseCode): void;
  receipts: Receipt[];
  presences: Presence[];
  online(): boolean;
}

export function makeDesk(backroom: Backroom): Desk {
  const { people, ledger, post, trouble, versions, gate, look } = backroom;
  const receipts: Receipt[] = [];
  const presences: Presence[] = [];
  const wires = new Set<Wire>();
  /** What was taken and not acknowledged, by the connection it came over. */
  const owed = new Map<string, Wire>();
  let companion: Companion | null = null;
  /** Whom stanzas are for: the last that logged in. */
  let current: Wire | null = null;
  /** A login alone does not count as online; a presence without a type does (#299, #2553). */
  let online = false;

  const pairing = makePairing(people.own, (linked) => {
    if (current !== null) endWith(current, REMOVED);
    companion = linked;
    for (const person of [people.own, ...people.all()]) void person.phone.begin();
    post.renew();
    look();
  });

  function leave(): void {
    current = null;
    post.logout();
  }

  function endWith(wire: Wire, last: BinaryNode | null): void {
    if (last !== null) wire.send(last);
    if (wire === current) leave();
    wire.end();
  }

  function logIn(wire: Wire): void {
    const { username, device } = wire.payload;
    const { pn, lid } = people.own.peer;
    const known =
      companion !== null &&
      device === companion.device &&
      String(username) === jidDecode(pn)?.user &&
      wire.clientKey.equals(companion.clientKey);
    const refused = trouble.meetsLogin() ?? (known ? null : 401);
    if (refused !== null) {
      endWith(wire, failure(refused));
      return;
    }
    if (current !== null) endWith(current, REPLACED);
    current = wire;
    const address = jidEncode(jidDecode(lid)?.user ?? '', 'lid', device ?? 0);
    wire.send(stanza('success', { t: seconds(Date.now()), lid: address, location: 'fake' }));
    // A client says so when it comes again; it has to keep it as the bytes it is.
    const routing = [stanza('routing_info', {}, Buffer.from([8, 12, 8, 5]))];
    wire.send(stanza('ib', { from: S_WHATSAPP_NET }, [stanza('edge_routing', {}, routing)]));
  }

  async function query(wire: Wire, node: BinaryNode): Promise<void> {
    if (node.attrs.type !== 'get' && node.attrs.type !== 'set') return;
    const met = trouble.meetsQuery(node);
    if (met === 'stall') return;
    if (met !== null) wire.send(met);
    else if (child(node, 'remove-companion-device') !== undefined) {
      companion = null;
      wire.send(answer(node));
      endWith(wire, null);
    } else if (companion === null || wire !== current) wire.send(answer(node));
    else {
      wire.send(await answerTo(node, people, companion));
      if (child(node, 'active') !== undefined) post.login(wire);
    }
  }

  async function message(wire: Wire, node: BinaryNode): Promise<void> {
    const met = trouble.meetsMessage();
    const { id = '', to = '' } = node.attrs;
    const outside = people.circle(to)?.includesUs === false ? 403 : null;
    const restricted = gate.refuses(node) ? RESTRICTED : null;
    const refused = met !== null && typeof met === 'object' ? met.error : (outside ?? restricted);
    if (met === 'drop before') {
      wire.destroy();
    } else if (refused !== null) {
      wire.send(ackOf(node, String(refused)));
    } else {
      owed.set(id, wire);
      const taken = await ledger.take(node);
      for (const person of taken?.readers ?? []) person.met = true;
      if (taken !== null) backroom.taken();
      if (met === 'drop after') wire.destroy();
      trouble.whenAcksFlow(() => acknowledge(wire, node, taken));
    }
  }

  /** The server's word that it was taken, then those of the phones it came to. */
  function acknowledge(wire: Wire, node: BinaryNode, taken: Taken | null): void {
    const entry = ledger.sent.find((sent) => sent.id === node.attrs.id);
    owed.delete(node.attrs.id ?? '');
    if (wire.open()) {
      wire.send(ackOf(node));
      if (entry !== undefined) entry.acked = true;
    } else if (entry !== undefined) entry.cut = true;
    if (taken === null) return;
    const { id, to: chat, group, readers, puzzled } = taken;
    const at = Date.now();
    for (const person of readers) {
      if (!isOwn(people, person)) post.send(receiptLetter({ id, chat, at }, person, group));
    }
    const count = puzzled.length === 0 ? 0 : ledger.askedAgain(id);
    for (const person of puzzled) post.send(retryLetter({ id, chat, count, at }, person, group));
  }

  function receipt(wire: Wire, node: BinaryNode): void {
    const { id = '', to = '', type = 'delivered', participant = null } = node.attrs;
    const more = children(child(node, 'list'), 'item').map(({ attrs }) => attrs.id ?? '');
    receipts.push({ type, to, participant, ids: [id, ...more] });
    post.heard(node);
    wire.send(stanza('ack', { class: 'receipt', id, from: to, type: node.attrs.type }));
  }

  return {
    pairing,
    receipts,
    presences,
    online: () => online,
    companion: () => companion,

    opened(wire) {
      wires.add(wire);
      if (versions.isRetired(wire.payload)) endWith(wire, failure(405));
      else if (wire.payload.devicePairingData) pairing.begin(wire);
      else logIn(wire);
      look();
    },
    async received(wire, node) {
      const paired = pairing.received(wire, node);
      if (!paired && node.tag === 'iq') await query(wire, node);
      else if (node.tag === 'message') await message(wire, node);
      else if (node.tag === 'receipt') receipt(wire, node);
      else if (node.tag === 'ack') post.heard(node);
      else if (node.tag === 'presence' || node.tag === 'chatstate') {
        const state = node.attrs.type ?? children(node)[0]?.tag ?? 'available';
        presences.push({ to: node.attrs.to ?? null, state, at: Date.now() });
        if (node.attrs.to === undefined) online = state === 'available';
      }
      look();
    },
    closed(wire) {
      wires.delete(wire);
      pairing.closed(wire);
      if (wire === current) leave();
      for (const sent of ledger.sent) {
        if (owed.get(sent.id) === wire) sent.cut = true;
      }
      look();
    },
    confused: (error) => backroom.complain(`a connection was broken: ${String(error)}`),

    unlink() {
      companion = null;
      for (const wire of wires) endWith(wire, REMOVED);
    },
    endAll(code) {
      const last = code === 440 ? REPLACED : stanza('stream:error', { code: String(code) });
      for (const wire of wires) endWith(wire, code === 428 ? null : last);
    },
  };
}

const REPLACED = stanza('stream:error', {}, [stanza('conflict', { type: 'replaced' })]);
const REMOVED = stanza('stream:error', { code: '401' }, [stanza('conflict', { type: 'device_removed' })]);

function failure(reason: number): BinaryNode {
  return stanza('failure', { reason: String(reason), location: 'fake' });
}

function ackOf(message: BinaryNode, error?: string): BinaryNode {
  const { id, to } = message.attrs;
  return stanza('ack', { class: 'message', id, from: to, t: seconds(Date.now()), error });
}
