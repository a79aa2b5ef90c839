import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Pairing } from '../../src/channels/whatsapp/pair.js';
import { pairByPhone } from '../../src/channels/whatsapp/pair.js';
import type { InboundMessage } from '../../src/core/message.js';
import { startFakeWhatsApp } from '../fakes/whatsapp.js';
import type { FakeWhatsApp, Peer } from '../fakes/whatsapp-words.js';
import { straight } from '../harness/straight.js';
import {
  eventually,
  type Gateway,
  type GatewayWishes,
  linked,
  memoryState,
  messages,
  optionsFor,
  startGateway,
  testClock,
} from './whatsapp-gateway.js';

/** One account for all tests, linked once where that is enough: each test talks to people of its own. */
let fake: FakeWhatsApp;
let gateway: Gateway;
let people = 0;
const running = new Set<Gateway>();

beforeAll(async () => {
  fake = await startFakeWhatsApp();
});

afterAll(async () => {
  for (const each of running) await each.stop();
  await fake.close();
});

function somebody(): Peer {
  people += 1;
  return fake.peer(people);
}

async function started(wishes: GatewayWishes): Promise<Gateway> {
  gateway = await startGateway(fake, wishes);
  running.add(gateway);
  return gateway;
}

async function link(wishes: GatewayWishes = {}): Promise<Gateway> {
  gateway = await linked(fake, wishes);
  running.add(gateway);
  return gateway;
}

/** The next process on the same data. */
async function restarted(wishes: GatewayWishes = {}): Promise<Gateway> {
  await gateway.stop();
  return link({ before: gateway, ...wishes });
}

async function backAgain(logins: number): Promise<void> {
  await fake.until(() => fake.logins() > logins, 'back');
  await eventually(() => gateway.channel.status().connected, 'connected');
}

/** What came from somebody, as often as a store would keep it. */
async function heardFrom(peer: Peer, count: number): Promise<InboundMessage[]> {
  const theirs = () => messages(gateway).filter(({ sender }) => sender.address === peer.pn);
  await eventually(() => theirs().length >= count, `${count} messages of ${peer.name}`);
  return theirs();
}

const textsFrom = async (peer: Peer, count: number) => (await heardFrom(peer, count)).map(({ text }) => text);

const lastError = () => gateway.channel.status().lastError;
const linesOf = (...levels: string[]) =>
  gateway.lines.filter(({ level }) => levels.includes(level)).map(({ message }) => message);

describe('linking', () => {
  test('with a QR code; until then it says so, and so does doctor', async () => {
    await started({ unscanned: true });
    await eventually(() => gateway.qrs.length === 1, 'a code');
    expect(gateway.channel.status()).toMatchObject({ connected: false });
    expect(lastError()).toContain('scan the QR code');
    expect(await gateway.channel.check()).toEqual({
      identity: 'not linked',
      warnings: [expect.stringContaining('coterie pair whatsapp')],
    });
    expect(await gateway.send('4917@s.whatsapp.net', 'x')).toMatchObject({
      kind: 'unreachable',
      taken: 'no',
    });
    // Nobody scanned it in time: there is another.
    fake.faults.closeWith(408);
    await eventually(() => gateway.qrs.length === 2, 'another');
    expect(new Set(gateway.qrs).size).toBe(2);
    const early = somebody();
    expect(gateway.links).toEqual([]);
    await fake.scan(gateway.qrs[1] ?? '');
    fake.say({ from: early, text: 'from before', at: Date.now() - 3_600_000, offline: true });
    fake.say({ from: early, text: 'since' });
    await eventually(() => gateway.channel.status().connected, 'connected');
    expect(gateway.links).toEqual([`+${fake.own.number}`]);
    expect(await gateway.channel.check()).toEqual({ identity: `+${fake.own.number}`, warnings: [] });
    expect(await textsFrom(early, 1)).toEqual(['since']);
  });

  test('401: logged out on the phone, it forgets its credentials and shows a new code', async () => {
    const creds = gateway.state.values.get('creds');
    await restarted();
    fake.faults.logOut();
    await eventually(() => gateway.qrs.length === 1, 'a new code');
    expect(linesOf('warn', 'error')).toEqual([expect.stringContaining('removed from the linked devices')]);
    await eventually(() => gateway.channel.status().connected, 'linked again');
    expect(gateway.state.values.get('creds')).not.toBe(creds);
    const anna = somebody();
    fake.say({ from: anna, text: 'hello again' });
    expect(await textsFrom(anna, 1)).toEqual(['hello again']);
  });

  test('logged out while it was away: nothing of the old link is left', async () => {
    await gateway.stop();
    fake.faults.logOut();
    await started({ before: gateway, unscanned: true });
    await eventually(() => gateway.qrs.length === 1, 'a new code');
    expect([...gateway.state.values.keys()].filter((name) => name.startsWith('pre-key'))).toEqual([]);
    await gateway.stop();
  });

  const pairing = (parts: Partial<Pairing>) => {
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const options = optionsFor(fake);
    const { signal } = new AbortController();
    const given = {
      options,
      log,
      signal,
      state: memoryState(),
      outward: straight,
      clock: testClock(),
      show() {},
    };
    return pairByPhone({ ...given, phone: `+${fake.own.number}`, ...parts });
  };

  test('with a code for the phone, and then the gateway needs none', async () => {
    const state = memoryState();
    const codes: string[] = [];
    const paired = pairing({ state, show: (code) => void codes.push(code) });
    await eventually(() => codes.length === 1, 'a code');
    // What is lost on the way is begun anew, with another code.
    fake.faults.hangUp();
    await eventually(() => codes.length === 2, 'another code');
    expect(state.values.size).toBe(0);
    const anna = somebody();
    await fake.enterCode(codes[1] ?? '');
    fake.say({ from: anna, text: 'early' });
    expect(await paired).toEqual({ number: `+${fake.own.number}` });
    expect(codes[1]).toMatch(/^[0-9A-Z]{4}-[0-9A-Z]{4}$/);
    await link({ state });
    expect(gateway.qrs).toEqual([]);
    expect(await textsFrom(anna, 1)).toEqual(['early']);
  });

  test('given up, a link that was there stays', async () => {
    await gateway.stop();
    const before = new Map(gateway.state.values);
    const ending = new AbortController();
    const given = pairing({ state: gateway.state, signal: ending.signal, show: () => ending.abort() });
    await expect(given).rejects.toThrow('given up');
    expect(gateway.state.values).toEqual(before);
    await link({ before: gateway });
  });

  test('what is no phone number is refused', async () => {
    await expect(pairing({ phone: '12' })).rejects.toThrow('country code');
  });
});

describe('connections that end', () => {
  test('408, 428, 500, 503: it connects again, each time a little later', async () => {
    const anna = somebody();
    const from = gateway.clock.slept.length;
    const words = { 408: 'was lost', 428: 'was closed', 500: 'with an error', 503: 'not available' };
    for (const code of [408, 428, 500, 503] as const) {
      const logins = fake.logins();
      fake.faults.closeWith(code);
      await backAgain(logins);
      expect(lastError()).toContain(words[code]);
      fake.say({ from: anna, text: `still there after ${code}?` });
    }
    expect(await textsFrom(anna, 4)).toHaveLength(4);
    expect(gateway.clock.slept.slice(from).filter((ms) => ms >= 1000)).toEqual([1000, 2000, 4000, 8000]);
  });

  test('515: at once', async () => {
    const [from, lines, logins] = [
      gateway.clock.slept.length,
      linesOf('warn', 'error').length,
      fake.logins(),
    ];
    fake.faults.closeWith(515);
    await backAgain(logins);
    expect(gateway.clock.slept.slice(from)).toEqual([0]);
    expect(linesOf('warn', 'error')).toHaveLength(lines);
  });

  test('no server there: longer and longer pauses, and then it goes on', async () => {
    const from = gateway.clock.slept.length;
    const pauses = () => gateway.clock.slept.slice(from).filter((ms) => ms >= 1000);
    await fake.shut();
    await eventually(() => pauses().length >= 7, 'seven pauses');
    expect(pauses().slice(0, 7)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]);
    expect(gateway.channel.status().connected).toBe(false);
    gateway.clock.quick.add(60_000);
    await fake.open();
    await eventually(() => gateway.channel.status().connected, 'connected');
  });

  test('440: another client has the link; it is left alone for longer and longer', async () => {
    for (const pause of [60_000, 300_000, 900_000]) {
      gateway.clock.quick.add(pause);
      const [from, logins] = [gateway.clock.slept.length, fake.logins()];
      fake.faults.replaced();
      await backAgain(logins);
      expect(gateway.clock.slept.slice(from)).toEqual([pause]);
      expect(lastError()).toContain('another client uses the same link');
    }
  });

  test.each<[number, string]>([
    [403, 'banned'],
    [405, 'newer version'],
    [411, 'multi-device mismatch'],
  ])('%i at login: it says what to do, and asks again only much later', async (code, words) => {
    gateway.clock.quick.add(60_000).add(600_000);
    const [from, errors, logins] = [gateway.clock.slept.length, linesOf('error').length, fake.logins()];
    fake.faults.refuseLogin(code, 2);
    fake.faults.closeWith(503);
    await backAgain(logins);
    expect(gateway.clock.slept.slice(from)).toEqual([1_000, 60_000, 600_000]);
    expect(lastError()).toContain(words);
    expect(linesOf('error')).toHaveLength(errors + 2);
    expect(gateway.qrs).toEqual([]);
  });

  test('a fault inside the library begins a new connection; one of ours does not', async () => {
    const logins = fake.logins();
    const fault = new TypeError('cannot read this of that');
    fault.stack = `TypeError: x\n    at f (/app/node_modules/@whiskeysockets/baileys/lib/Socket/socket.js:1:1)`;
    expect(gateway.channel.survives(fault)).toBe(true);
    await backAgain(logins);
    expect(gateway.channel.survives(new Error('ours'))).toBe(false);
    fault.stack = `Error: x\n    at f (/app/dist/a.js:1:1)\n    at /app/node_modules/libsignal/src/b.js:1:1`;
    expect(gateway.channel.survives(fault)).toBe(false);
    expect(gateway.channel.survives('x')).toBe(false);
  });
});

describe('what is said while it is away', () => {
  test('is taken in at the next start, as what piled up; what is older is history', async () => {
    const anna = somebody();
    fake.say({ from: anna, text: 'one' });
    await heardFrom(anna, 1);
    await fake.until(() => fake.pending() === 0, 'a receipt for it');
    await gateway.stop();
    const before = gateway.batches.length;
    const old = fake.say({ from: anna, text: 'long before', at: Date.now() - 3_600_000 });
    fake.say({ from: anna, text: 'two' });
    fake.say({ from: anna, in: fake.group(1, { members: [anna] }), text: 'three' });
    await link({ before: gateway });
    expect(await textsFrom(anna, 3)).toEqual(['one', 'two', 'three']);
    expect(gateway.batches.slice(before).map(({ piledUp }) => piledUp)).toEqual([true, true]);
    await fake.until(
      () => fake.receipts.some(({ ids }) => ids.includes(old.id)),
      'history has a receipt, too',
    );
  });

  test('the cursor is the time of the newest message, and does not go back', async () => {
    const [now, anna] = [Date.now(), somebody()];
    const from = gateway.batches.length;
    fake.say({ from: anna, text: 'one', at: now });
    fake.say({ from: anna, text: 'in the past', at: now - 60_000 });
    fake.say({ from: anna, text: 'in the future', at: now + 86_400_000 });
    await heardFrom(anna, 3);
    const cursors = gateway.batches.slice(from).map(({ cursor }) => Number(cursor));
    expect(cursors[0]).toBeGreaterThanOrEqual(now - 1000);
    expect(cursors[1]).toBe(cursors[0]);
    expect(cursors[2]).toBeLessThan(now + 60_000);
    expect(gateway.batches.at(-1)?.account).toBe(fake.own.number);
  });
});

describe('the end of the process', () => {
  test('killed after a message was stored: the next one can read on, and answers', async () => {
    const anna = somebody();
    for (const text of ['one', 'two', 'three']) fake.say({ from: anna, text });
    await heardFrom(anna, 3);
    expect(await gateway.send(anna.pn, 'four', { key: '4' })).toMatchObject({ kind: 'sent' });
    const left = memoryState(gateway.state.values);
    fake.faults.hangUp();
    fake.say({ from: anna, text: 'five' });
    await restarted({ state: left });
    expect((await textsFrom(anna, 4)).at(-1)).toBe('five');
    expect(await gateway.send(anna.pn, 'six', { key: '6' })).toMatchObject({ kind: 'sent' });
    expect(fake.sentTo(anna).map(({ text, times }) => [text, times])).toEqual([
      ['four', 1],
      ['six', 1],
    ]);
    expect(gateway.qrs).toEqual([]);
  });

  test('killed at any moment while messages come: each is stored before WhatsApp hears that it came', async () => {
    const anna = somebody();
    const said: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      const dying = gateway;
      let left = memoryState();
      let stored = 0;
      let release: () => void = () => {};
      const killed = new Promise<void>((resolve) => {
        dying.onReceive(async () => {
          stored += 1;
          if (stored < 4 + round) return [];
          // In the midst of the transaction: the message is stored, the session has not moved on.
          left = memoryState(dying.state.values);
          void dying.stop();
          fake.faults.hangUp();
          resolve();
          await new Promise<void>((resume) => {
            release = resume;
          });
          return [];
        });
      });
      const before = dying.batches.length;
      for (let n = 0; n < 10; n += 1) {
        said.push(`${round}.${n}`);
        fake.say({ from: anna, text: `${round}.${n}` });
      }
      await killed;
      expect(dying.batches.length).toBe(before + stored - 1);
      await link({ state: left, before: dying });
      release();
      expect(await textsFrom(anna, said.length)).toEqual(said);
      const answer = await gateway.send(anna.pn, `answer ${round}`, { key: String(100 + round) });
      expect(answer).toMatchObject({ kind: 'sent' });
    }
    expect(fake.complaints).toEqual([]);
  });

  test('what could not be stored is left with WhatsApp, and comes again', async () => {
    const anna = somebody();
    let failures = 2;
    gateway.onReceive(async () => {
      if (failures === 0) return [];
      failures -= 1;
      throw new Error('the disk is full');
    });
    const [retries, logins] = [fake.receipts.filter(({ type }) => type === 'retry').length, fake.logins()];
    fake.say({ from: anna, text: 'one' });
    fake.say({ from: anna, text: 'two' });
    expect(await textsFrom(anna, 2)).toEqual(['one', 'two']);
    expect(lastError()).toContain('the disk is full');
    expect(fake.receipts.filter(({ type }) => type === 'retry')).toHaveLength(retries);
    await backAgain(logins);
  });

  test('when nothing more is taken in, what comes is left with WhatsApp, and answers still go', async () => {
    const anna = somebody();
    fake.say({ from: anna, text: 'one' });
    await heardFrom(anna, 1);
    gateway.stopTakingIn();
    fake.say({ from: anna, text: 'two' });
    expect(await gateway.send(anna.pn, 'answer', { key: '1' })).toMatchObject({ kind: 'sent' });
    expect(await gateway.send(anna.pn, 'more', { key: '2' })).toMatchObject({ kind: 'sent' });
    await gateway.stop();
    expect(await textsFrom(anna, 1)).toEqual(['one']);
    await restarted();
    expect(await textsFrom(anna, 2)).toEqual(['one', 'two']);
  });
});

test('an edit after a restart is read with the secret that was kept', async () => {
  const anna = somebody();
  const said = fake.say({ from: anna, text: 'helo' });
  await heardFrom(anna, 1);
  await fake.until(() => fake.pending() === 0, 'a receipt for it');
  await gateway.stop();
  fake.edit(said, 'hello');
  await link({ before: gateway });
  const edits = () => gateway.events().flatMap((event) => (event.kind === 'edit' ? [event] : []));
  await eventually(() => edits().some(({ platformMessageId }) => platformMessageId === said.id), 'the edit');
  expect(edits().at(-1)).toMatchObject({ text: 'hello', sender: { address: anna.pn } });
});

describe('sending across a cut', () => {
  test.each(['dropAfterTake', 'dropBeforeTake'] as const)('%s: one message in the end', async (fault) => {
    const anna = somebody();
    fake.say({ from: anna, text: 'hello' });
    await heardFrom(anna, 1);
    fake.faults[fault]();
    const logins = fake.logins();
    const first = await gateway.send(anna.pn, 'once', { key: `5${people}` });
    expect(first).toMatchObject({ kind: 'unreachable', taken: 'unknown' });
    await backAgain(logins);
    const again = { key: `5${people}`, earlierTries: 1 };
    expect(await gateway.send(anna.pn, 'once', again)).toMatchObject({ kind: 'sent' });
    expect(fake.sentTo(anna)).toMatchObject([{ text: 'once' }]);
    expect(fake.complaints).toEqual([]);
  });

  test('while it asks for the devices of a person: told at once', async () => {
    const anna = somebody();
    fake.faults.stallQuery('usync');
    const logins = fake.logins();
    const sending = gateway.send(anna.pn, 'once', { key: `5${people}` });
    await new Promise((resolve) => setTimeout(resolve, 300));
    fake.faults.hangUp();
    expect(await sending).toMatchObject({ kind: 'unreachable', taken: 'unknown' });
    await backAgain(logins);
    expect(await gateway.send(anna.pn, 'once', { key: `5${people}` })).toMatchObject({ kind: 'sent' });
    expect(fake.sentTo(anna)).toMatchObject([{ text: 'once' }]);
  });

  test('killed before it heard the ack: the next process sends the same message', async () => {
    const anna = somebody();
    fake.faults.stallAcks(true);
    void gateway.send(anna.pn, 'once', { key: '60' });
    await fake.until(() => fake.sentTo(anna).length === 1, 'taken');
    const left = memoryState(gateway.state.values);
    fake.faults.hangUp();
    await gateway.stop();
    fake.faults.stallAcks(false);
    await restarted({ state: left });
    const again = { key: '60', earlierTries: 1 };
    expect(await gateway.send(anna.pn, 'once', again)).toMatchObject({ kind: 'sent' });
    expect(await gateway.send(anna.pn, 'more', { key: '61' })).toMatchObject({ kind: 'sent' });
    expect(fake.sentTo(anna)).toMatchObject([{ text: 'once', times: 2 }, { text: 'more' }]);
    expect(fake.complaints).toEqual([]);
  });

  test('what a peer asks for again after a restart comes from the store', async () => {
    const anna = somebody();
    await gateway.send(anna.pn, 'kept', { key: '77' });
    const asked: string[] = [];
    const sentPart = async (key: string) => {
      asked.push(key);
      return { text: 'kept', marks: [] };
    };
    await restarted({ sentPart });
    const [sent] = fake.sentTo(anna);
    fake.faults.requestRetry(sent?.id ?? '');
    await fake.until(() => sent?.times === 2, 'again');
    expect(asked).toEqual(['77']);
  });
});

test('messages do not overtake each other, however slow the disk is', async () => {
  const state = memoryState(gateway.state.values);
  const { set } = state;
  let wait = 40;
  state.set = async (changes) => {
    if ([...changes.keys()].some((name) => name.startsWith('lid-mapping'))) {
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = 0;
    }
    return set(changes);
  };
  await restarted({ state });
  const anna = somebody();
  wait = 40;
  for (let n = 0; n < 30; n += 1) {
    fake.say({ from: anna, text: String(n) });
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  expect(await textsFrom(anna, 30)).toEqual(Array.from({ length: 30 }, (_, n) => String(n)));
});

test('stopped twice, and before there is a link', async () => {
  await gateway.stop();
  await gateway.stop();
  expect(gateway.channel.status().connected).toBe(false);
  await started({ unscanned: true });
  await gateway.stop();
});
