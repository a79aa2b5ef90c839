/** Who and what there is on the fake WhatsApp: phones with their owners, groups, and how either is addressed. */
import { randomBytes } from 'node:crypto';
import { jidDecode } from '@whiskeysockets/baileys';
import { makeSignalPhone, type SignalPhone } from './whatsapp-signal.js';
import type { Group, Peer } from './whatsapp-words.js';

export interface Person {
  peer: Peer;
  phone: SignalPhone;
  /** How their direct messages are addressed. */
  form: 'lid' | 'pn';
  /** Their phone number is not told. */
  hidden: boolean;
  /** What we have to show to write to them: their phone gives it to whom they trust. */
  token: Buffer;
  /** They wrote to us, or something of ours reached them. */
  met: boolean;
  /** What they say next arrives unreadable: at first, or however often it is asked for again. */
  spoils: 'never' | 'once' | 'always';
}

export interface Circle {
  group: Group;
  /** Our account is in it. */
  includesUs: boolean;
  created: number;
}

export interface People {
  own: Person;
  peer(number: number, name?: string): Peer;
  /** The person of a peer that a test holds. */
  of(peer: Peer): Person;
  /** By either form of address, with or without a device; the own phone's too. */
  at(jid: string): Person | null;
  all(): Person[];
  group(number: number, about?: { subject?: string; members?: Peer[]; addressing?: 'lid' | 'pn' }): Group;
  circle(id: string): Circle | null;
  circles(): Circle[];
}

export function isOwn(people: People, person: Person): boolean {
  return person === people.own;
}

/** How a person is called in a group, or in their own chat. */
export function addressOf(person: Person, form: 'lid' | 'pn'): string {
  return form === 'lid' || person.hidden ? person.peer.lid : person.peer.pn;
}

export function makePeople(ownNumber: string): People {
  const people = new Map<number, Person>();
  const byUser = new Map<string, Person>();
  const circles = new Map<number, Circle>();

  function add(peer: Peer): Person {
    const phone = makeSignalPhone();
    const token = randomBytes(20);
    const person: Person = { peer, phone, form: 'lid', hidden: false, token, met: false, spoils: 'never' };
    byUser.set(userOf(peer.pn), person);
    byUser.set(userOf(peer.lid), person);
    return person;
  }

  const own = add({ number: 0, name: 'Own', pn: `${ownNumber}@s.whatsapp.net`, lid: '299999999999999@lid' });

  return {
    own,
    peer(number, name) {
      const known = people.get(number);
      if (known !== undefined) {
        if (name !== undefined) known.peer.name = name;
        return known.peer;
      }
      const pn = `49171${String(number).padStart(7, '0')}@s.whatsapp.net`;
      const lid = `2${String(number).padStart(14, '0')}@lid`;
      const person = add({ number, name: name ?? `Person ${number}`, pn, lid });
      people.set(number, person);
      return person.peer;
    },
    of(peer) {
      const person = byUser.get(userOf(peer.lid));
      if (person === undefined) throw new Error(`nobody on this WhatsApp: ${peer.lid}`);
      return person;
    },
    at: (jid) => byUser.get(userOf(jid)) ?? null,
    all: () => [...people.values()],
    group(number, about = {}) {
      const known = circles.get(number);
      const group = known?.group ?? {
        number,
        id: `1203${String(number).padStart(14, '0')}@g.us`,
        subject: `Group ${number}`,
        members: [],
        addressing: 'lid' as const,
      };
      Object.assign(group, about);
      if (known === undefined) circles.set(number, { group, includesUs: true, created: Date.now() });
      return group;
    },
    circle: (id) => [...circles.values()].find(({ group }) => group.id === id) ?? null,
    circles: () => [...circles.values()],
  };
}

function userOf(jid: string): string {
  return jidDecode(jid)?.user ?? jid;
}
