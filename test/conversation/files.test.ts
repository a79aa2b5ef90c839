/** Files on their way through the route: fetched once, read before it is decided whom they are for, shown to the model. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Channel } from '../../src/core/channel.js';
import { systemClock } from '../../src/core/clock.js';
import type { Attachment } from '../../src/core/message.js';
import { createMediaFiles } from '../../src/media/files.js';
import { createImages } from '../../src/media/images.js';
import { createMedia } from '../../src/media/media.js';
import { SMALL_PNG } from '../e2e/pictures.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';
import { quietLog } from '../harness/quiet.js';
import { imageDecoder } from '../media/support.js';

let on: Workbench;
let folder: string;
let fetched: string[];
let held: (() => void)[];
let spoken: string;

const CONTENTS: Record<string, Buffer> = {
  picture: SMALL_PNG,
  voice: Buffer.from('OggS'),
  letter: Buffer.from('Dear persona,\nthe meeting is at nine.\n'),
};

const fetch: Channel['fetch'] = async ({ source }, { signal }) => {
  fetched.push(source);
  if (source === 'never') {
    await new Promise<void>((resolve) => {
      held.push(resolve);
      signal.addEventListener('abort', () => resolve());
    });
  }
  const bytes = CONTENTS[source];
  return bytes ? { kind: 'fetched', bytes } : { kind: 'gone', reason: 'no such file' };
};

function attachment(kind: Attachment['kind'], source: string, more: Partial<Attachment> = {}): Attachment {
  const name = kind === 'voice' ? null : `${source}.x`;
  return { kind, source, name, mimeType: null, bytes: 100, seconds: null, ...more };
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-files-'));
  fetched = [];
  held = [];
  spoken = 'hello there';
});
afterEach(async () => {
  for (const release of held) release();
  await on.close();
  await rm(folder, { recursive: true, force: true });
});

async function open(more: WorkbenchOptions = {}): Promise<void> {
  let n = 0;
  const media = createMedia({
    files: createMediaFiles({ folder, newId: () => `f${n++}` }),
    images: createImages({ log: quietLog, decoder: imageDecoder() }),
    transcriber: { transcribe: async () => spoken },
    ...{ maxBytes: 1_000_000, clock: systemClock, log: quietLog },
  });
  on = await workbench({ fetch, media, ...more });
}

const group = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' } };
const lastUser = (n = -1) => {
  const last = on.asked.at(n)?.messages.at(-1);
  return last?.role === 'user' ? last : { content: '', images: undefined };
};

describe('a picture', () => {
  it('is shown to the model with the words, also when the next message asks about it', async () => {
    await open();
    await on.say('what is this?', { attachments: [attachment('image', 'picture')] });
    await on.settled();
    expect(lastUser().content).toContain('what is this?\n[image picture.x, ');
    expect(lastUser().images).toMatchObject([{ mimeType: 'image/png' }]);
    await on.say('and its colour?');
    await on.settled();
    const shown = on.asked.at(-1)?.messages.filter((each) => each.role === 'user' && each.images);
    expect(shown).toHaveLength(1);
    expect(fetched).toEqual(['picture']);
  });

  it('that is only heard in a group is named and not fetched', async () => {
    await open();
    await on.say('look', { ...group, attachments: [attachment('image', 'picture')] });
    await on.settled();
    await on.say('what did they show?', { ...group, mentionsBot: true });
    await on.settled();
    expect(lastUser().content).toContain('what did they show?');
    expect(JSON.stringify(on.asked.at(-1)?.messages)).toContain('[image picture.x, 100 bytes]');
    expect(fetched).toEqual([]);
  });
});

describe('a voice note', () => {
  it.each([
    ['/stop', /^Stopped\.$/],
    ['/reset', /^Conversation cleared\./],
  ])('is listened to no longer after %s, and holds nobody up', async (command, answer) => {
    await open();
    await on.say('', { attachments: [attachment('voice', 'never', { seconds: 60 })] });
    await expect.poll(() => fetched).toHaveLength(1);
    await on.say(command);
    await expect.poll(() => on.texts()).toEqual([expect.stringMatching(answer)]);
    await on.say('something else');
    await expect.poll(() => on.texts().at(-1)).toBe('fine');
    expect(on.asked).toHaveLength(1);
    expect(lastUser().content).toContain('something else');
    expect(JSON.stringify(on.asked).includes('[voice message')).toBe(command === '/stop');
  });

  it('of a group has not been asked for by anybody yet: there is nothing to stop', async () => {
    await open();
    await on.say('', { ...group, attachments: [attachment('voice', 'never', { seconds: 60 })] });
    await expect.poll(() => fetched).toHaveLength(1);
    await on.say('/stop', group);
    await expect.poll(() => on.texts()).toEqual(['There is nothing to stop.']);
    for (const release of held) release();
    await on.settled();
  });

  it('is seen to be listened to, where somebody waits for an answer', async () => {
    await open();
    const voice = { attachments: [attachment('voice', 'never', { seconds: 60 })] };
    await on.say('', { ...group, ...voice });
    await expect.poll(() => fetched).toHaveLength(1);
    await on.say('', voice);
    await expect.poll(() => on.typed.map(({ kind }) => kind)).toEqual(['direct']);
    expect(on.asked).toHaveLength(0);
    for (const release of held) release();
    await on.settled();
  });

  it('names whom it is for by its words', async () => {
    await open();
    spoken = 'what a day';
    await on.say('', { ...group, attachments: [attachment('voice', 'voice', { seconds: 3 })] });
    await on.settled();
    expect(on.asked).toHaveLength(0);
    spoken = 'Default, what time is it?';
    await on.say('', { ...group, attachments: [attachment('voice', 'voice', { seconds: 3 })] });
    await on.settled();
    expect(on.asked).toHaveLength(1);
    expect(lastUser().content).toContain('[voice message, 3 s, transcribed] Default, what time is it?');
    expect(fetched).toEqual(['voice', 'voice']);
  });
});

describe('a document', () => {
  it('is read into the turn, and stays known', async () => {
    await open();
    await on.say('when?', { attachments: [attachment('document', 'letter')] });
    await on.settled();
    expect(lastUser().content).toContain('the meeting is at nine.');
    await on.say('again?');
    await on.settled();
    expect(JSON.stringify(on.asked.at(-1)?.messages)).toContain('the meeting is at nine.');
    expect(fetched).toEqual(['letter']);
  });

  it('that holds what is forgotten goes from the disk', async () => {
    await open();
    await on.say('when?', { attachments: [attachment('document', 'letter')] });
    await on.settled();
    expect(await readdir(join(folder, 'test_1'))).toHaveLength(1);
    await on.say('/memory forget meeting is at nine');
    await on.settled();
    await on.say('yes');
    await on.settled();
    expect(on.texts().at(-1)).toMatch(/forgotten/i);
    expect(await readdir(join(folder, 'test_1'))).toEqual([]);
    await on.say('again?');
    await on.settled();
    expect(JSON.stringify(on.asked.at(-1)?.messages)).not.toContain('meeting is at nine');
  });

  it('that is too large is named, and its sender hears so', async () => {
    await open();
    await on.say('here', { attachments: [attachment('document', 'big', { bytes: 30_000_000 })] });
    await on.settled();
    expect(lastUser().content).toMatch(/\[document big\.x, 30\.0 MB: larger than 1 MB, not taken\]/);
    expect(on.texts()).toHaveLength(2);
    expect(on.texts()[0]).toContain('big.x');
    expect(on.texts()[1]).toBe('fine');
    expect(fetched).toEqual([]);
  });

  it('is not fetched again after the process ended', async () => {
    await open();
    let asked = 0;
    on.answer(() => {
      asked++;
      return new Promise(() => {});
    });
    await on.say('when?', { attachments: [attachment('document', 'letter')] });
    await expect.poll(() => asked).toBe(1);
    on = await on.die();
    await on.settled();
    expect(lastUser().content).toContain('the meeting is at nine.');
    expect(fetched).toEqual(['letter']);
  });
});

it('a file whose link never answers holds up no other chat, and /stop ends the waiting', async () => {
  await open();
  await on.say('slow', { attachments: [attachment('document', 'never')] });
  await expect.poll(() => fetched).toEqual(['never']);
  const other = { chat: { address: '2', kind: 'direct' as const, title: 'Ben' } };
  await on.say('quick', { ...other, sender: { address: '2', name: 'Ben', administrator: false } });
  await expect.poll(() => on.texts()).toContain('fine');
  await on.say('/stop');
  await on.settled();
  expect(on.asked).toHaveLength(1);
  expect(on.texts().join()).toMatch(/[Ss]topped/);
});
