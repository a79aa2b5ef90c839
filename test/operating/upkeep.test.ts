/** The nightly upkeep, over a real database and real files: what goes, what stays, when, and in how small steps. */
import { mkdir, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createZone } from '../../src/core/dates.js';
import { phraseOf } from '../../src/core/phrase.js';
import { FORGOTTEN_FILES, putSetting, type Store, settingOf } from '../../src/core/store.js';
import { mediaBytes, trimMedia } from '../../src/media/files.js';
import { startUpkeep, type UpkeepParts } from '../../src/operating/upkeep.js';
import { oneView } from '../contract/store/one-view.js';
import {
  begun,
  CHAT,
  chatAt,
  command,
  DAY,
  delivery,
  exchange,
  finish,
  forget,
  HOUR,
  lease,
  MINUTE,
  message,
  NOW,
  nextOf,
  note,
  placeOf,
  pruned,
  receive,
  windowTexts,
} from '../contract/store/words.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { openMade, type Place, silentLog } from '../store/place.js';

const DAYS = 30;
/** At noon, `DAYS` and a day after everything was said. */
const LATER = NOW + (DAYS + 1) * DAY;
const FOREVER = { bytes: 1e12, bytesPerChat: 1e12 };

let place: Place;
let store: Store;
let media: string;
let clock: ManualClock;
const ends: (() => Promise<void>)[] = [];
beforeEach(async () => {
  place = await openMade();
  store = await place.open();
  media = join(place.folder, 'media');
  clock = manualClock(LATER);
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  await place.remove();
});

function partsOf(more: Partial<UpkeepParts> = {}, limits = FOREVER): UpkeepParts {
  return {
    store,
    days: DAYS,
    removeFiles: async (files) => {
      for (const file of files) await rm(join(media, file), { force: true });
    },
    trimMedia: (signal) => trimMedia(media, limits, clock.now(), signal),
    trimCopies: async () => {},
    consolidate: async () => {},
    zone: createZone('UTC'),
    clock,
    log: silentLog,
    ...more,
  };
}

function start(more: Partial<UpkeepParts> = {}, limits = FOREVER): () => Promise<void> {
  const end = startUpkeep(partsOf(more, limits));
  ends.push(end);
  return end;
}

const lastDone = async () => Number((await settingOf(store, 'upkeep.last')) ?? 0);

/** Lets the upkeep of the next night run to its end. */
async function night(more: Partial<UpkeepParts> = {}, limits = FOREVER): Promise<void> {
  const before = await lastDone();
  const end = start(more, limits);
  for (let step = 0; (await lastDone()) === before; step++) {
    expect(step, 'the upkeep ends').toBeLessThan(2_000);
    await clock.advance(step === 0 ? DAY : 100);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await end();
}

/** A message, a turn with a tool, a reply that was delivered, a command, a change of memory. */
async function talk(id: string, at: number, { room = CHAT, deliver = true } = {}): Promise<void> {
  const chat = chatAt(room);
  await receive(store, [message(`m-${id}`, `question ${id}`, { chat, sentAt: at })], { now: at });
  const turn = await begun(store, id, { room, now: at });
  const calls = [{ id: 'c', name: 'look', arguments: `{"for":"${id}"}` }];
  await store.addStep(turn.claim, id, { kind: 'answer', text: '', calls }, NOW);
  await store.addStep(
    turn.claim,
    id,
    { kind: 'result', callId: 'c', content: `found ${id}`, failed: false },
    NOW,
  );
  const deliveries = [delivery(`turn:${id}`, `reply of ${id}`)];
  expect(await finish(store, turn, id, { deliveries, now: at })).toBe('finished');
  if (deliver) {
    const entry = await nextOf(store, room, 'me', at);
    await store.claimDelivery(entry?.id ?? 0, lease('me', at));
    await store.settle(entry?.id ?? 0, { kind: 'sent', platformMessageId: `p-${id}` }, at);
  }
  const { commands } = await receive(store, [command(`c-${id}`, 'help', '', { chat })], { now: at });
  await store.takeCommand(commands[0]?.id ?? 0, lease('me', at));
  await store.finishCommand({ id: commands[0]?.id ?? 0, now: at, deliveries: [], effects: [] });
  await store.keepVersion({
    id: `v-${id}`,
    chatId: room,
    personaId: 'default',
    file: 'default/MEMORY.md',
    tier: 1,
    before: '',
    after: `learnt ${id}`,
    at,
    cause: { kind: 'turn', personaId: 'default', turnId: id },
  });
}

const versions = async () =>
  (await store.versions({ chatId: CHAT, personaId: null, most: 99 })).map(({ id }) => id);
/** Whether something is known by its id: nothing is taken in twice. */
const isKnown = async (receipt: Parameters<Store['receive']>[0]['receipts'][number]) =>
  (await receive(store, [receipt], { now: clock.now() })).duplicates === 1;

async function timesIn(words: string): Promise<number> {
  const texts = await Promise.all(
    ['', '-wal'].map((end) => readFile(`${place.file}${end}`, 'utf8').catch(() => '')),
  );
  return texts.join('\n').split(words).length - 1;
}

async function file(name: string, bytes: number, at: number): Promise<void> {
  const path = join(media, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, Buffer.alloc(bytes));
  await utimes(path, at / 1000, at / 1000);
}

async function files(): Promise<string[]> {
  const chats = await readdir(media);
  const names = await Promise.all(
    chats.map(async (chat) => (await readdir(join(media, chat))).map((name) => `${chat}/${name}`)),
  );
  return names.flat().sort();
}

describe('what is kept too long', () => {
  /** The window has moved behind this. */
  const moveBehind = async (text: string) => {
    const { flush, move } = oneView(store);
    const place = await placeOf(store, text);
    expect(await flush(place)).toBe(true);
    expect(await move(place)).toBe(true);
  };

  it('goes, of every kind; what is younger stays, and so does every conversation', async () => {
    const young = LATER - 10 * DAY;
    await talk('old', NOW);
    const request = { channel: 'test', senderId: 'test_zed', name: 'Zed', code: 'OLDCODEX' };
    const answer = {
      chatId: 'test_zed',
      channel: 'test',
      address: 'zed',
      threadId: null,
      kind: 'direct' as const,
      delivery: delivery('notice:zed', 'your code'),
      now: NOW,
    };
    await store.requestPairing(
      { ...request, now: NOW, answerEveryMs: HOUR, most: 3, mostPerHour: 10 },
      { ...request, expiresAt: NOW + HOUR, answer, announcements: [] },
    );
    const group = { chatId: 'test_-9', title: 'OLDGROUP', now: NOW, keepMs: DAY, most: 50 };
    await store.noteGroup(group);
    await talk('young', young);
    await moveBehind('question young');
    await night();
    expect(await windowTexts(store)).toEqual(['reply of young']);
    const all = await store.span({
      room: CHAT,
      personaId: 'default',
      after: { heardAfter: 0, messageId: 0 },
      upTo: { heardAfter: 1e9, messageId: 0 },
      limit: 99,
      overheard: 99,
    });
    expect(all.messages.map(({ text }) => text)).toContain('question old');
    expect([...all.steps.keys()]).toEqual(['young']);
    expect(await store.messages({ turnId: 'old' })).toEqual([]);
    expect(await store.messages({ turnId: 'young' })).toHaveLength(1);
    expect(await versions()).toEqual(['v-young']);
    expect(await timesIn('found old')).toBe(0);
    expect(await timesIn('learnt old')).toBe(0);
    expect(await timesIn('OLDCODEX')).toBe(0);
    expect(await timesIn('OLDGROUP')).toBe(0);
    expect(await isKnown(command('c-young', 'help')), 'a young command').toBe(true);
    expect(await isKnown(command('c-old', 'help')), 'an old command').toBe(false);
    expect(await isKnown(message('m-old', 'again')), 'any message').toBe(true);
  });

  it('stays for ever where retention.days says so', async () => {
    await talk('a', NOW);
    await talk('b', NOW);
    await moveBehind('reply of b');
    await night({ days: 'never' });
    expect(await versions()).toEqual(['v-b', 'v-a']);
    expect(await store.messages({ turnId: 'a' })).toHaveLength(1);
  });

  it('stays where somebody may still need it', async () => {
    await talk('shown', NOW);
    await talk('undelivered', NOW, { room: 'test_2', deliver: false });
    await receive(store, [message('s', 'waits for somebody', { chat: chatAt('test_3') })]);
    const waits = await begun(store, 'suspended', { room: 'test_3' });
    const step = { kind: 'waiting' as const, callId: 'c', waitsFor: 'k', until: null };
    await store.addStep(waits.claim, 'suspended', step, NOW);
    await receive(store, [message('r', 'runs', { chat: chatAt('test_4') })]);
    await begun(store, 'running', { room: 'test_4' });
    await receive(store, [message('w', 'waits', { chat: chatAt('test_5') })]);
    const before = await store.counts();
    await night();
    expect(await store.counts()).toEqual(before);
    const { steps } = await store.window({
      room: CHAT,
      personaId: 'default',
      limit: 9,
      overheard: 9,
      except: [],
    });
    expect(steps.get('shown'), 'the window shows what the tool found').toHaveLength(2);
    expect((await nextOf(store, 'test_2'))?.body.text).toBe('reply of undelivered');
    expect((await store.roomNow('test_3')).suspended).toMatchObject({ turnId: 'suspended' });
    expect((await store.roomNow('test_4')).running).toMatchObject({ turnId: 'running' });
    expect((await store.readRoom('test_5', 'me', LATER))?.waiting).toHaveLength(1);
  });
});

describe('what /reset forgot', () => {
  const attachments = (name: string) => [
    {
      kind: 'document' as const,
      name,
      mimeType: 'text/plain',
      bytes: 1,
      source: name,
      outcome: { kind: 'kept' as const, file: `${CHAT}/${name}`, mimeType: 'text/plain' },
    },
  ];

  it('is in no byte of the database after the next night, and its files are gone', async () => {
    const said = LATER - HOUR;
    await file(`${CHAT}/gone.txt`, 10, said);
    await file(`${CHAT}/stays.txt`, 10, said);
    for (let n = 0; n < 40; n++) await talk(`zebra${n}`, said);
    await receive(store, [message('f', 'zebra-file', { attachments: attachments('gone.txt') as never })]);
    await exchange(store, 'f', 'zebra-more', { deliveries: [delivery('tool:f:key', 'zebra-aside')] });
    await store.settle((await nextOf(store))?.id ?? 0, { kind: 'sent', platformMessageId: 'p-f' }, said);
    await forget(store);
    await receive(store, [message('k', 'kept', { attachments: attachments('stays.txt') as never })]);
    await exchange(store, 'k', 'kept, too');
    expect(await timesIn('zebra')).toBeGreaterThan(100);
    // Memory is not forgotten: its changes stay for as long as all do.
    const remembered = (await store.findWords(CHAT, phraseOf('learnt zebra'))).others;
    expect(remembered).toBe(40);
    await night({ days: 'never' });
    for (const words of ['question zebra', 'found zebra', 'reply of zebra', 'zebra-', '"for":"zebra']) {
      expect(await timesIn(words), words).toBe(0);
    }
    expect((await store.findWords(CHAT, phraseOf('learnt zebra'))).others).toBe(remembered);
    expect(await windowTexts(store)).toEqual(['kept', 'kept, too', 'reply of k']);
    expect(await files()).toEqual([`${CHAT}/stays.txt`]);
  });

  it('is known again when a platform hands it in once more, and by a reply to it', async () => {
    await talk('a', LATER);
    await talk('b', LATER);
    await forget(store);
    await talk('c', LATER + 1);
    await night();
    expect(await timesIn('question a')).toBe(0);
    expect(await isKnown(message('m-a', 'question a'))).toBe(true);
    expect(await timesIn('question a')).toBe(0);
    expect(await store.delivery('1'), 'it is not sent once more, empty').toBeNull();
    const replyTo = { platformMessageId: 'p-a', senderName: 'Bot', text: 'x', ours: true };
    await receive(store, [message('r', 'this one', { replyTo })]);
    expect((await begun(store, 'r')).waiting[0]?.replyTo?.personaId).toBe('default');
  });

  it('stays for another persona that heard it, however late and with how many others', async () => {
    const many = Array.from({ length: 1_200 }, (_, n) => `line ${n}`);
    // They piled up: the first are heard when the last have long come in.
    await receive(
      store,
      many.map((text) => message(text, text)),
    );
    for (
      let state = await store.readRoom(CHAT, 'me', NOW);
      state;
      state = await store.readRoom(CHAT, 'me', NOW)
    ) {
      expect(await note(store, state, { hearers: ['default', 'luna'] })).toBe(true);
    }
    await exchange(store, 'secret', 'for default alone');
    await forget(store);
    await exchange(store, 'new', 'new');
    await night();
    const heard = await windowTexts(store, { personaId: 'luna', overheard: 2_000 });
    expect(heard).toEqual(many);
    expect(await timesIn('for default alone')).toBe(0);
    expect(await windowTexts(store)).toEqual(['new', 'reply of new']);
  });

  it('takes its files along even where the process ended before they were removed', async () => {
    await file(`${CHAT}/gone.txt`, 10, LATER);
    await receive(store, [message('f', 'a file', { attachments: attachments('gone.txt') as never })]);
    await exchange(store, 'f', 'more');
    await forget(store);
    await exchange(store, 'k', 'kept');
    await pruned(store, 0, LATER);
    expect(await files(), 'and here it ended').toEqual([`${CHAT}/gone.txt`]);
    await night();
    expect(await files()).toEqual([]);
    expect(await settingOf(store, FORGOTTEN_FILES)).toBe('[]');
  });
});

describe('files', () => {
  it('go oldest first beyond what a chat may have, and beyond what all may', async () => {
    const ago = (days: number) => LATER - days * DAY;
    await file('test_1/a', 60, ago(5));
    await file('test_1/b', 60, ago(4));
    await file('test_1/c', 10, ago(6));
    await file('test_2/d', 50, ago(3));
    await file('test_2/e', 30, ago(7));
    await file('test_3/f', 1, ago(9));
    expect(await mediaBytes(media)).toBe(211);
    // Of test_1 a passes the limit, and c is older; of all, e and whatever is older.
    await night({}, { bytesPerChat: 100, bytes: 120 });
    expect(await files()).toEqual(['test_1/b', 'test_2/d']);
    await night({}, { bytesPerChat: 100, bytes: 100 });
    expect(await files()).toEqual(['test_2/d']);
  });

  it('stay while they are new, since somebody may wait for an answer about them', async () => {
    await file('test_1/old', 60, LATER - DAY);
    await file('test_1/new', 60, LATER - MINUTE);
    const signal = new AbortController().signal;
    expect(await trimMedia(media, { bytesPerChat: 1, bytes: 1 }, LATER, signal)).toEqual({
      files: 1,
      bytes: 60,
    });
    expect(await files()).toEqual(['test_1/new']);
  });

  it('need not be there', async () => {
    expect(await mediaBytes(media)).toBe(0);
    await night();
  });
});

describe('the night', () => {
  /** A store that notes what it is asked for. */
  function watched() {
    const asked: { rows: number[]; most: number[] } = { rows: [], most: [] };
    const noting = {
      prune: async (ask: Parameters<Store['prune']>[0]) => {
        asked.most.push(ask.most);
        const step = await store.prune(ask);
        asked.rows.push(step.rows);
        return step;
      },
      sizes: store.sizes,
      values: store.values,
      setValues: store.setValues,
    };
    return { asked, store: noting };
  }

  it('works in small steps, with a pause after each', async () => {
    const many = Array.from({ length: 2_500 }, (_, n) => message(`${n}`, 'x'.repeat(500)));
    await receive(store, many);
    await forget(store);
    await exchange(store, 'k', 'kept');
    const before = await store.sizes();
    const { asked, store: noting } = watched();
    await night({ store: noting });
    expect(asked.rows.length).toBeGreaterThan(12);
    expect(Math.max(...asked.rows)).toBeLessThanOrEqual(200);
    expect(new Set(asked.most)).toEqual(new Set([200]));
    const onlyFreesSpace = (rows: number) => rows === 0;
    expect(asked.rows.filter(onlyFreesSpace).length).toBeGreaterThan(1);
    const after = await store.sizes();
    expect(after.bytes).toBeLessThan(before.bytes / 4);
    expect(after.free).toBe(0);
  });

  it('begins at four, and a night that was missed is made up for soon after the start', async () => {
    await putSetting(store, 'upkeep.last', String(LATER - 2 * HOUR));
    const { asked, store: noting } = watched();
    const end = start({ store: noting });
    await clock.advance(15 * HOUR + 59 * MINUTE);
    expect(asked.most).toEqual([]);
    await clock.advance(2 * MINUTE);
    expect(asked.most).toHaveLength(1);
    await end();
    await putSetting(store, 'upkeep.last', String(clock.now() - 26 * HOUR));
    start({ store: noting });
    await clock.advance(9 * MINUTE);
    expect(asked.most).toHaveLength(1);
    await clock.advance(2 * MINUTE);
    expect(asked.most).toHaveLength(2);
  });

  it('puts memory in order once; where that fails, the whole is tried again in an hour', async () => {
    await putSetting(store, 'upkeep.last', String(LATER - 26 * HOUR));
    const at: number[] = [];
    const consolidate = async () => {
      at.push(clock.now());
      if (at.length === 1) throw new Error('the store is away');
    };
    const done = await lastDone();
    start({ consolidate });
    const pass = async (ms: number) => {
      await clock.asleep(ms);
      await clock.advance(ms);
    };
    for (const wait of [10 * MINUTE, 50, HOUR, 10 * MINUTE, 50]) await pass(wait);
    await expect.poll(lastDone).toBeGreaterThan(done);
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(HOUR);
    for (let hour = 0; hour < 10; hour++) await clock.advance(HOUR);
    expect(at).toHaveLength(2);
  });

  it('is gone on with by the next one where it was broken off, and a stop breaks it off at once', async () => {
    const many = Array.from({ length: 1_000 }, (_, n) => message(`${n}`, `zebra ${n}`));
    await receive(store, many);
    await forget(store);
    await exchange(store, 'k', 'kept');
    const { asked, store: noting } = watched();
    const end = start({ store: noting });
    await clock.asleep(10 * MINUTE);
    await clock.advance(10 * MINUTE);
    while (asked.rows.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await clock.asleep(50);
    await end();
    expect(asked.rows).toHaveLength(1);
    expect(await lastDone(), 'it was not finished').toBe(0);
    await store.close();
    store = await place.open();
    await night();
    expect(await timesIn('zebra')).toBe(0);
    expect(await lastDone()).toBeGreaterThan(0);
  });

  it('is tried again where the store fails', async () => {
    await receive(store, [message('1', 'zebra')]);
    await forget(store);
    await exchange(store, 'k', 'kept');
    let fails = 2;
    const failing = {
      ...watched().store,
      prune: async (ask: Parameters<Store['prune']>[0]) => {
        if (fails-- > 0) throw new Error('the disk is away');
        return store.prune(ask);
      },
    };
    await night({ store: failing });
    expect(fails).toBeLessThan(0);
    expect(await timesIn('zebra')).toBe(0);
  });
});
