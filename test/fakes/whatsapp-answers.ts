/** What the server answers to queries: keys, devices and addresses of people, groups, media servers, settings. */
import { type BinaryNode, jidDecode, jidEncode } from '@whiskeysockets/baileys';
import { MEDIA_HOSTS } from './whatsapp-cdn.js';
import {
  answer,
  bytesOf,
  child,
  children,
  needed,
  numberIn,
  refusal,
  seconds,
  stanza,
} from './whatsapp-nodes.js';
import { type Companion, keyNumber } from './whatsapp-pairing.js';
import { addressOf, type Circle, isOwn, type People, type Person } from './whatsapp-people.js';
import type { KeyBundle } from './whatsapp-signal.js';

const KEY_TYPE = Buffer.from([5]);

export async function answerTo(query: BinaryNode, people: People, companion: Companion): Promise<BinaryNode> {
  switch (query.attrs.xmlns) {
    case 'encrypt':
      return aboutKeys(query, people, companion);
    case 'usync':
      return answer(query, [stanza('usync', {}, [usersFor(query, people, companion)])]);
    case 'w:g2':
      return aboutGroups(query, people);
    case 'w:m':
      return answer(query, [
        stanza(
          'media_conn',
          { auth: 'auth', ttl: '3600', auth_ttl: '3600', max_buckets: '12' },
          MEDIA_HOSTS.map((hostname) => stanza('host', { hostname })),
        ),
      ]);
    case 'privacy':
      return answer(query, query.attrs.type === 'get' ? [privacy()] : []);
    case 'w':
      return answer(query, [stanza('props', { hash: '' })]);
    default:
      return answer(query);
  }
}

function privacy(): BinaryNode {
  const settings = { readreceipts: 'all', last: 'contacts', profile: 'all', online: 'all', groupadd: 'all' };
  return stanza(
    'privacy',
    {},
    Object.entries(settings).map(([name, value]) => stanza('category', { name, value })),
  );
}

async function aboutKeys(query: BinaryNode, people: People, companion: Companion): Promise<BinaryNode> {
  const wanted = child(query, 'key');
  if (wanted !== undefined) {
    const users = await Promise.all(
      children(wanted, 'user').map(({ attrs }) => bundleOf(attrs.jid ?? '', people)),
    );
    return answer(query, [stanza('list', {}, users)]);
  }
  if (child(query, 'count') !== undefined) {
    return answer(query, [stanza('count', { value: String(companion.once.length) })]);
  }
  if (child(query, 'digest') !== undefined) {
    return answer(query, [stanza('digest', {}, [stanza('identity', {}, companion.identity)])]);
  }
  const rotated = child(child(query, 'rotate'), 'skey');
  if (rotated !== undefined) {
    companion.signed = signedKeyIn(rotated);
  } else if (query.attrs.type === 'set') {
    companion.registrationId = numberIn(needed(query, 'registration'));
    companion.identity = needed(query, 'identity');
    companion.signed = signedKeyIn(child(query, 'skey'));
    const keys = children(child(query, 'list'), 'key');
    companion.once.push(
      ...keys.map((key) => ({ id: numberIn(needed(key, 'id')), key: needed(key, 'value') })),
    );
  }
  return answer(query);
}

function signedKeyIn(node: BinaryNode | undefined): KeyBundle['signed'] {
  return {
    id: numberIn(needed(node, 'id')),
    key: needed(node, 'value'),
    signature: needed(node, 'signature'),
  };
}

async function bundleOf(jid: string, people: People): Promise<BinaryNode> {
  const person = people.at(jid);
  if (person === null)
    return stanza('user', { jid }, [stanza('error', { code: '404', text: 'item-not-found' })]);
  const { registrationId, identity, signed, once } = await person.phone.bundle();
  return stanza('user', { jid }, [
    stanza('registration', {}, keyNumber(registrationId, 4)),
    stanza('type', {}, KEY_TYPE),
    stanza('identity', {}, identity),
    stanza('skey', {}, [
      stanza('id', {}, keyNumber(signed.id)),
      stanza('value', {}, signed.key),
      stanza('signature', {}, signed.signature),
    ]),
    ...(once === null
      ? []
      : [stanza('key', {}, [stanza('id', {}, keyNumber(once.id)), stanza('value', {}, once.key)])]),
  ]);
}

/** Whoever is asked for by phone number or by address, with what was asked about them. */
function usersFor(query: BinaryNode, people: People, companion: Companion): BinaryNode {
  const usync = child(query, 'usync');
  const asked = children(child(usync, 'query')).map(({ tag }) => tag);
  const users = children(child(usync, 'list'), 'user').map((user) => {
    const phone = bytesOf(child(user, 'contact'))?.toString().replace(/\D/g, '') ?? '';
    const jid = user.attrs.jid ?? `${phone}@s.whatsapp.net`;
    const found = people.at(jid);
    const person = found?.hidden === true && !jid.endsWith('@lid') ? null : found;
    const about: Record<string, () => BinaryNode | null> = {
      contact: () => stanza('contact', { type: person === null ? 'out' : 'in' }),
      devices: () => (person === null ? null : devicesOf(person, people, companion)),
      lid: () => (person === null || jid.endsWith('@lid') ? null : stanza('lid', { val: person.peer.lid })),
    };
    const told = asked.map((what) => about[what]?.() ?? null).filter((node) => node !== null);
    return stanza('user', { jid: normal(jid) }, told);
  });
  return stanza('list', {}, users);
}

function normal(jid: string): string {
  const decoded = jidDecode(jid);
  return decoded === undefined ? jid : jidEncode(decoded.user, decoded.server);
}

function devicesOf(person: Person, people: People, companion: Companion): BinaryNode {
  const devices = [stanza('device', { id: '0' })];
  if (isOwn(people, person)) {
    devices.push(stanza('device', { id: String(companion.device), 'key-index': String(companion.device) }));
  }
  return stanza('devices', {}, [stanza('device-list', {}, devices)]);
}

function aboutGroups(query: BinaryNode, people: People): BinaryNode {
  if (query.attrs.type === 'get' && child(query, 'participating') !== undefined) {
    const groups = people.circles().filter(({ includesUs }) => includesUs);
    return answer(query, [
      stanza(
        'groups',
        {},
        groups.map((circle) => groupNode(circle, people)),
      ),
    ]);
  }
  const circle = people.circle(query.attrs.to ?? '');
  if (circle === null) return refusal(query, 404, 'item-not-found');
  if (!circle.includesUs) return refusal(query, 403, 'forbidden');
  return answer(query, query.attrs.type === 'get' ? [groupNode(circle, people)] : []);
}

function groupNode({ group, includesUs, created }: Circle, people: People): BinaryNode {
  const members = group.members.map((peer) => people.of(peer));
  const participants = [...members, ...(includesUs ? [people.own] : [])].map((person, at) => {
    const { pn, lid } = person.peer;
    const other = group.addressing === 'pn' ? { lid } : person.hidden ? {} : { phone_number: pn };
    const type = at === 0 ? 'superadmin' : undefined;
    return stanza('participant', { jid: addressOf(person, group.addressing), ...other, type });
  });
  const time = seconds(created);
  return stanza(
    'group',
    {
      id: group.id.split('@')[0],
      subject: group.subject,
      s_t: time,
      creation: time,
      size: String(participants.length),
      addressing_mode: group.addressing,
    },
    participants,
  );
}
