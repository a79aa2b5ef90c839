/** Replies that are spoken, too: when, by whom, in which order, and what becomes of those that cannot be. */

import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { Speech } from '../../src/core/media.js';
import { createSpeaker } from '../../src/models/audio.js';
import { createSpeech } from '../../src/speech/speech.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type FakeSpeech, startFakeSpeech } from '../fakes/speech.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';
import { quietLog } from '../harness/quiet.js';
import { straight } from '../harness/straight.js';
import { keptLog } from '../models/helpers.js';

let fake: FakeSpeech;
let clock: ManualClock;
let on: Workbench;
beforeEach(async () => {
  fake = await startFakeSpeech();
  clock = manualClock();
});
afterEach(async () => {
  await on.close();
  await fake.close();
});

async function begin(options: WorkbenchOptions & { spokenTo?: boolean } = {}): Promise<void> {
  on = await workbench({ clock, can: { voiceNotes: true }, ...options, speech: speechOf(options) });
}

function speechOf({ spokenTo = false, folder: home }: { spokenTo?: boolean; folder?: string }): Speech {
  return createSpeech({
    speaker: createSpeaker({ baseUrl: fake.url, apiKey: null, model: 'speaker' }, straight, systemClock),
    options: { voice: 'alloy', maxCharacters: 100, whenSpokenTo: spokenTo, timeoutSeconds: 20 },
    folder: join(home ?? folderOf(), 'speech'),
    clock,
    log: quietLog,
  });
}

let folders = 0;
const folderOf = () => `/tmp/coterie-voice-test-${process.pid}-${++folders}`;

async function say(text: string, more: Parameters<Workbench['say']>[1] = {}): Promise<void> {
  await on.say(text, more);
  await on.settled();
}

const VOICE_NOTE = {
  attachments: [
    { kind: 'voice', source: 's', name: null, mimeType: 'audio/ogg', bytes: 10, seconds: 3 } as const,
  ],
};
/** What was sent, in order: texts, and voice notes by their length. */
const seen = () =>
  on.sent.map(({ part }) => (part.file === undefined ? part.text : `♪ ${part.file.voiceSeconds}`));
const GROUP = {
  chat: { address: '-5', kind: 'group' as const, title: 'Garden' },
  mentionsBot: true,
};

describe('/voice', () => {
  it('on: a reply is followed by a voice note of the same words, which is no reply to anything', async () => {
    await begin();
    fake.secondsOf = () => 2;
    await say('/voice on');
    await say('hello');
    expect(seen()).toEqual([expect.stringContaining('voice notes, too'), 'fine', '♪ 2']);
    const [, text, note] = on.sent;
    expect(note?.part).toEqual({ text: '', marks: [], file: expect.objectContaining({ name: 'voice.ogg' }) });
    expect(note?.to).toEqual(text?.to);
    expect(note?.options).toMatchObject({ replyTo: null, speaker: 'default' });
    expect(fake.asked.map(({ input, voice }) => [input, voice])).toEqual([['fine', 'alloy']]);
  });

  it('off ends it, also where a reply to a voice note would be spoken', async () => {
    await begin({ spokenTo: true });
    await say('/voice on');
    await say('/voice off');
    await say('hello', VOICE_NOTE);
    expect(seen().slice(2)).toEqual(['fine']);
  });

  it('stays over a restart', async () => {
    await begin();
    await say('/voice on');
    on = await on.die();
    await say('hello');
    expect(seen()).toEqual(['fine', expect.stringContaining('♪')]);
  });

  it.each([
    [undefined, {}, 'Voice is off'],
    ['on', {}, 'Voice is on'],
    ['off', {}, 'Voice is off'],
    [undefined, { spokenTo: true }, 'I answer voice notes with voice notes'],
  ])('alone says how it is: after %s, configured %j', async (before, options, words) => {
    await begin(options);
    if (before !== undefined) await say(`/voice ${before}`);
    await say('/voice');
    expect(on.texts().at(-1)).toContain(words);
  });

  it('without a speech server changes nothing, and says so', async () => {
    on = await workbench({ clock, can: { voiceNotes: true } });
    await say('/voice on');
    await say('hello');
    expect(seen()).toEqual([expect.stringContaining('I have no voice yet'), 'fine']);
  });

  it('where there are no voice notes says so', async () => {
    await begin({ can: {} });
    await say('/voice on');
    await say('hello');
    expect(seen()).toEqual(['Voice notes are not available on this channel.', 'fine']);
  });

  it('with another word says what there is', async () => {
    await begin();
    await say('/voice loud');
    expect(on.texts()).toEqual([expect.stringContaining('/voice on or /voice off')]);
  });

  it('is changed in a group only by who may change things; everybody may ask', async () => {
    await begin();
    await say('/voice on', GROUP);
    await say('/voice', GROUP);
    expect(on.texts()[0]).toContain('Only owners');
    expect(on.texts()[1]).toContain('Voice is off');
    await say('/voice on', { ...GROUP, sender: { address: '1', name: 'Mira', administrator: true } });
    await say('hello', GROUP);
    expect(seen().slice(3)).toEqual(['fine', expect.stringContaining('♪')]);
  });
});

describe('a reply to a voice note', () => {
  it('is spoken, too, where that is configured; one to a text is not', async () => {
    await begin({ spokenTo: true });
    await say('hello', VOICE_NOTE);
    await say('hello');
    expect(seen()).toEqual(['fine', expect.stringContaining('♪'), 'fine']);
  });

  it('is not where it is not', async () => {
    await begin();
    await say('hello', VOICE_NOTE);
    expect(seen()).toEqual(['fine']);
  });
});

describe('a voice note', () => {
  it.each([
    ['that would be too long', 'word '.repeat(40)],
    ['of nothing that can be spoken', '👍👍'],
  ])('%s is none', async (_, reply) => {
    await begin();
    await say('/voice on');
    on.answer(() => reply);
    await say('hello');
    expect(seen()).toHaveLength(2);
    expect(fake.asked).toEqual([]);
  });

  it('has the voice of its persona', async () => {
    await begin();
    const folder = join(on.folder, 'groups/test_1/luna');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'PERSONA.md'), '---\nname: Luna\nvoice: nova\n---\n');
    await say('/voice on');
    await say('/persona switch Luna');
    await say('hello');
    expect(fake.asked.map(({ voice }) => voice)).toEqual(['nova']);
    expect(on.sent.at(-1)?.options.speaker).toBe('luna');
  });

  it('does not follow a failure, nor what commands say', async () => {
    await begin();
    await say('/voice on');
    on.answer(() => ({ fault: 'model_unreachable' }));
    await say('hello');
    await say('/status');
    expect(fake.asked).toEqual([]);
  });

  it('that cannot be made is given up with a line in the log; the chat goes on', async () => {
    const log = keptLog();
    await begin({ log });
    await say('/voice on');
    fake.voices = ['echo'];
    await say('hello');
    await say('and now?');
    expect(seen().slice(1)).toEqual(['fine', 'fine']);
    expect(log.lines.filter((line) => line.includes('could not be spoken'))).toHaveLength(2);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
  });

  it('of a server that never answers holds the chat up for its time alone, and then for a minute not at all', async () => {
    await begin();
    await say('/voice on');
    fake.fault = { stall: true };
    await on.say('hello');
    await fake.until(() => fake.asked.length === 1);
    await on.say('still there?');
    await clock.advance(20_000);
    await on.settled();
    expect(seen().slice(1)).toEqual(['fine', 'fine']);
    expect(fake.asked).toHaveLength(1);
  });

  it('is sent again as the same file after a failure of the platform, and once', async () => {
    await begin();
    await say('/voice on');
    on.results.push(
      { kind: 'sent', platformMessageId: 't' },
      { kind: 'unreachable', reason: 'down', taken: 'no', retryAfterMs: 1_000 },
    );
    await on.say('hello');
    await fake.until(() => fake.asked.length === 1);
    await clock.asleep(1_000);
    await clock.advance(1_000);
    await on.settled();
    const files = on.sent.flatMap(({ part }) => part.file?.path ?? []);
    expect(files).toHaveLength(2);
    expect(new Set(files).size).toBe(1);
    expect(fake.asked).toHaveLength(1);
    expect(await readdir(join(files[0] ?? '', '../..'))).toEqual([]);
  });

  it('leaves no file behind where nobody can tell whether it arrived', async () => {
    await begin();
    await say('/voice on');
    const cut = { kind: 'unreachable', reason: 'cut', taken: 'unknown', retryAfterMs: 1_000 } as const;
    on.results.push({ kind: 'sent', platformMessageId: 't' }, cut, cut);
    await on.say('hello');
    for (let n = 0; n < 2; n++) {
      await clock.asleep(1_000);
      await clock.advance(1_000);
    }
    await on.settled();
    const [path = ''] = on.sent.flatMap(({ part }) => part.file?.path ?? []);
    expect(await readdir(join(path, '../..'))).toEqual([]);
  });

  it('leaves no file behind that was found to have arrived', async () => {
    const wasDelivered = async () => ({ kind: 'found', platformMessageId: 'v' }) as const;
    await begin({ can: { voiceNotes: true, watermark: () => '1', wasDelivered } });
    await say('/voice on');
    const cut = { kind: 'unreachable', reason: 'cut', taken: 'unknown', retryAfterMs: 1_000 } as const;
    on.results.push({ kind: 'sent', platformMessageId: 't' }, cut);
    await on.say('hello');
    await clock.asleep(1_000);
    await clock.advance(1_000);
    await on.settled();
    const paths = on.sent.flatMap(({ part }) => part.file?.path ?? []);
    expect(paths).toHaveLength(1);
    expect(await readdir(join(paths[0] ?? '', '../..'))).toEqual([]);
  });

  it('leaves no file behind where another could not be made', async () => {
    await begin();
    await say('/voice on');
    const down = { kind: 'unreachable', reason: 'down', taken: 'no', retryAfterMs: 1_000 } as const;
    on.results.push({ kind: 'sent', platformMessageId: 't' }, down);
    on.answer(() => ({ text: 'the word is swordfish' }));
    await on.say('hello');
    await fake.until(() => fake.asked.length === 1);
    await clock.asleep(1_000);
    const [path = ''] = on.sent.flatMap(({ part }) => part.file?.path ?? []);
    await writeFile(path, 'broken');
    fake.voices = ['echo'];
    await clock.advance(1_000);
    await on.settled();
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
    expect(await readdir(join(path, '../..'))).toEqual([]);
  });

  it('that a crash has interrupted is made by the next process', async () => {
    await begin();
    await say('/voice on');
    fake.fault = { stall: true };
    await on.say('hello');
    await fake.until(() => fake.asked.length === 1);
    const next = on.die();
    fake.fault = null;
    on = await next;
    await on.settled();
    expect(seen()).toEqual([expect.stringContaining('♪')]);
  });

  it('is dropped by /reset while it is being made', async () => {
    await begin();
    await say('/voice on');
    fake.fault = { stall: true };
    await on.say('hello');
    await fake.until(() => fake.asked.length === 1);
    await on.say('/reset');
    await clock.advance(20_000);
    await on.settled();
    expect(seen().slice(1)).toEqual(['fine', expect.stringContaining('Conversation cleared')]);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
  });

  it('waits over a stop, which does not wait for it', async () => {
    await begin();
    await say('/voice on');
    fake.fault = { stall: true };
    await on.say('hello');
    await fake.until(() => fake.asked.length === 1);
    await on.conversation.stop(1_000);
    expect(await on.store.counts()).toMatchObject({ undelivered: 1 });
  });
});
