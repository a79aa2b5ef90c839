/** Voice notes through the real package, over a real connection, to the fake speech server; files in a real folder. */

import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { describe as inWords } from '../../src/core/errors.js';
import type { VoiceNote } from '../../src/core/media.js';
import { createSpeaker } from '../../src/models/audio.js';
import { createSpeech } from '../../src/speech/speech.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { recording } from '../fakes/ogg.js';
import { type FakeSpeech, startFakeSpeech } from '../fakes/speech.js';
import { straight } from '../harness/straight.js';
import { KEY, keptLog } from '../models/helpers.js';

let fake: FakeSpeech;
let clock: ManualClock;
let folder: string;
let log: ReturnType<typeof keptLog>;

beforeEach(async () => {
  fake = await startFakeSpeech();
  clock = manualClock();
  folder = join(await mkdtemp(join(tmpdir(), 'coterie-speech-')), 'speech');
  log = keptLog();
});
afterEach(async () => {
  await fake.close();
  await rm(join(folder, '..'), { recursive: true, force: true });
  expect(log.lines.join('\n')).not.toContain(KEY);
});

function speech({ apiKey = KEY as string | null, model = 'speaker' } = {}) {
  return createSpeech({
    speaker: createSpeaker({ baseUrl: fake.url, apiKey, model }, straight, systemClock),
    options: { voice: 'alloy', maxCharacters: 1500, whenSpokenTo: false, timeoutSeconds: 20 },
    ...{ folder, clock, log },
  });
}

const note = (more: Partial<VoiceNote> = {}): VoiceNote => ({
  ...{ key: 'turn-1', text: 'Good morning, Anna!', voice: 'nova', signal: new AbortController().signal },
  ...more,
});

async function reason(work: Promise<unknown>): Promise<string> {
  const words = await work.then(
    () => 'it did not fail',
    (thrown: unknown) => inWords(thrown),
  );
  expect(words).not.toContain(KEY);
  return words;
}

describe('a voice note', () => {
  test('is what the server speaks, as OGG with Opus, and as long as it says', async () => {
    fake.secondsOf = () => 2.5;
    const file = await speech().make(note());
    expect(file).toEqual({ path: expect.stringContaining(folder), name: 'voice.ogg', voiceSeconds: 2.5 });
    expect(await readFile(file.path)).toEqual(recording(2.5));
    expect(fake.asked).toEqual([
      {
        ...{ model: 'speaker', voice: 'nova', input: 'Good morning, Anna!', format: 'opus' },
        authorization: `Bearer ${KEY}`,
      },
    ]);
  });

  test('goes to a server that wants no key without one', async () => {
    await speech({ apiKey: null }).make(note());
    expect(fake.asked[0]?.authorization).toBeUndefined();
  });

  test('of another try is the same file, also after a restart', async () => {
    const first = await speech().make(note());
    expect(await speech().make(note())).toEqual(first);
    expect(fake.asked).toHaveLength(1);
  });

  test('with another key is another file', async () => {
    const first = await speech().make(note());
    const second = await speech().make(note({ key: 'turn-2' }));
    expect(second.path).not.toBe(first.path);
  });

  test('whose words were changed before it was sent is made anew, and the older one is gone', async () => {
    const first = await speech().make(note());
    const second = await speech().make(note({ text: 'Good morning!' }));
    expect(fake.asked.map(({ input }) => input)).toEqual(['Good morning, Anna!', 'Good morning!']);
    expect(await readdir(dirname(first.path))).toEqual([basename(second.path)]);
  });

  test('that was sent leaves nothing behind', async () => {
    const speaking = speech();
    await speaking.make(note());
    await speaking.discard('turn-1');
    expect(await readdir(folder)).toEqual([]);
    await speaking.discard('turn-1');
  });

  test('that a kill has left half written is made anew', async () => {
    const { path } = await speech().make(note());
    await writeFile(path, recording(1).subarray(0, 40));
    expect((await speech().make(note())).voiceSeconds).toBeGreaterThan(1);
    expect(fake.asked).toHaveLength(2);
  });

  test('that nobody sent goes after a day, and a newer one stays', async () => {
    const speaking = speech();
    const old = await speaking.make(note());
    const young = await speaking.make(note({ key: 'turn-2' }));
    await utimes(dirname(old.path), new Date(0), new Date(0));
    clock = manualClock(Date.now());
    const later = speech();
    await later.tidy();
    expect(await readdir(folder)).toEqual([basename(dirname(young.path))]);
    await clock.advance(2 * 86_400_000);
    const newest = await later.make(note({ key: 'turn-3' }));
    expect(await readdir(folder), 'a process that runs for days').toEqual([basename(dirname(newest.path))]);
  });
});

describe('a server that does not speak', () => {
  test.each([
    ['the model', { model: 'mute' }, {}, 'The model `mute` does not exist'],
    ['the voice', {}, { voice: 'parrot' }, "Input should be 'alloy', 'nova'"],
  ])('because it does not know %s says why', async (_, server, asked, words) => {
    expect(await reason(speech(server).make(note(asked)))).toContain(words);
    expect(await readdir(folder).catch(() => [])).toEqual([]);
  });

  test('and says our key is shown without it', async () => {
    fake.fault = { status: 401, message: `Incorrect API key provided: ${KEY}` };
    expect(await reason(speech().make(note()))).toContain('Incorrect API key provided: [key]');
  });

  test('and is busy is asked once more, and no more', async () => {
    fake.fault = { status: 503, message: 'busy' };
    expect(await reason(speech().make(note()))).toContain('busy');
    expect(fake.asked).toHaveLength(2);
  });

  test.each([
    ['MP3', { body: Buffer.from('ID3 and so on'), type: 'audio/mpeg' }],
    ['a page', { body: '<html>login</html>', type: 'text/html' }],
  ])('but sends %s instead makes no voice note', async (_, fault) => {
    fake.fault = fault;
    expect(await reason(speech().make(note()))).toContain('something else than OGG with Opus');
    expect(await readdir(folder).catch(() => [])).toEqual([]);
  });

  test('and never answers is given up after its time, and left alone for a minute', async () => {
    fake.fault = { stall: true };
    const speaking = speech();
    const failed = reason(speaking.make(note()));
    await fake.until(() => fake.asked.length === 1);
    await clock.advance(20_000);
    expect(await failed).toContain('longer than 20 seconds');
    fake.fault = null;
    expect(await reason(speaking.make(note()))).toContain('too slow');
    expect(fake.asked).toHaveLength(1);
    await clock.advance(60_000);
    expect((await speaking.make(note())).voiceSeconds).toBeGreaterThan(0);
  });

  test('and never answers is not waited for by whoever has gone', async () => {
    fake.fault = { stall: true };
    const gone = new AbortController();
    const failed = reason(speech().make(note({ signal: gone.signal })));
    await fake.until(() => fake.asked.length === 1);
    gone.abort();
    expect(await failed).toContain('was not waited for');
  });
});
