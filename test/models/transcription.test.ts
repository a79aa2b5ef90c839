/** The transcriber over a real connection, to the fake model server. */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { Fault } from '../../src/core/errors.js';
import { createTranscriber } from '../../src/models/audio.js';
import { type FakeModel, startFakeModel } from '../fakes/model.js';
import { straight } from '../harness/straight.js';
import { KEY, keptLog } from './helpers.js';

const BYTES = Buffer.from([0x4f, 0x67, 0x67, 0x53, 0, 255, 13, 10]);

let fake: FakeModel;
let log: ReturnType<typeof keptLog>;

beforeEach(async () => {
  fake = await startFakeModel();
  log = keptLog();
});
afterEach(() => fake.close());

function transcribe(
  bytes = BYTES,
  { apiKey = KEY as string | null, timeoutSeconds = 20, signal = new AbortController().signal } = {},
): Promise<string> {
  const transcriber = createTranscriber({
    ...{
      server: { baseUrl: fake.url, apiKey, model: 'listener' },
      timeoutSeconds,
      outward: straight,
      clock: systemClock,
      log,
    },
  });
  return transcriber.transcribe(bytes, { name: 'recording.ogg', mimeType: 'audio/ogg', signal });
}

async function reason(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => new Error('it did not fail'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(Fault);
  const { message } = error as Fault;
  expect(message).toContain(`${fake.url} (model "listener")`);
  expect(message).not.toContain(KEY);
  return message;
}

describe('a recording', () => {
  test('arrives whole, with a name that tells its form, and comes back as words', async () => {
    fake.settings.transcript = ' Hello there. \n';
    expect(await transcribe()).toBe('Hello there.');
    expect(fake.recordings).toEqual([
      {
        model: 'listener',
        name: 'recording.ogg',
        type: 'audio/ogg',
        bytes: BYTES,
        authorization: `Bearer ${KEY}`,
      },
    ]);
  });

  test('may take longer than a timer holds', async () => {
    fake.settings.transcript = 'Hello there.';
    expect(await transcribe(BYTES, { timeoutSeconds: 10_000_000 })).toBe('Hello there.');
  });

  test('goes to a server that wants no key without one', async () => {
    await transcribe(BYTES, { apiKey: null });
    expect(fake.recordings[0]?.authorization).toBeUndefined();
  });

  test('in which nothing was said is no words, and the log says so', async () => {
    fake.settings.transcript = '  ';
    expect(await transcribe()).toBe('');
    expect(log.lines.join()).toContain('transcribed to nothing');
  });

  test('may come back as bare words', async () => {
    fake.settings.transcript = { body: 'Hello there.' };
    expect(await transcribe()).toBe('Hello there.');
  });
});

describe('a server that does not transcribe', () => {
  test('and says why: with its words, without our key', async () => {
    const message = `Incorrect API key provided: ${KEY}`;
    fake.settings.transcript = { status: 401, body: { error: { message } } };
    expect(await reason(transcribe())).toContain('Incorrect API key provided: [key]');
  });

  test('and answers with a page', async () => {
    fake.settings.transcript = { status: 404, body: '<html><h1>nothing here</h1></html>' };
    const words = await reason(transcribe());
    expect(words).toContain('nothing here');
    expect(words).not.toContain('<');
  });

  test('and answers with something else', async () => {
    fake.settings.transcript = { body: { words: 'Hello' } };
    expect(await reason(transcribe())).toContain('holds no text');
  });

  test('and is busy for a moment is asked once more', async () => {
    let busy = true;
    fake.settings.transcript = () => {
      const answer = busy ? { status: 503, body: { error: { message: 'busy' } } } : 'Hello';
      busy = false;
      return answer;
    };
    expect(await transcribe()).toBe('Hello');
    expect(fake.recordings).toHaveLength(2);
  });

  test('and breaks off', async () => {
    fake.settings.transcript = { drop: true };
    await reason(transcribe());
  });

  test('and is down', async () => {
    await fake.close();
    expect(await reason(transcribe())).toContain('ECONNREFUSED');
  });

  test('and never answers: given up when told', async () => {
    const caller = new AbortController();
    fake.settings.transcript = () => {
      caller.abort();
      return { stall: true };
    };
    expect(await reason(transcribe(BYTES, { signal: caller.signal }))).toContain('was not waited for');
  });

  test('and never answers: given up after its time', async () => {
    fake.settings.transcript = { stall: true };
    expect(await reason(transcribe(BYTES, { timeoutSeconds: 0.05 }))).toMatch(/timed out/i);
  });
});
