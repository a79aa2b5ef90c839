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
    freed: () => {},
    files: createMediaFiles({ folder, newId: () => `f${n++}` }),
    images: createImages({ log: quietLog, decoder: imageDecoder() }),
    transcriber: { transcribe: async () => spoken },
    ...{ maxBytes: 1_000_000, clock: systemClock, log: quietLog },
  });
  on = await workbench({ fetch, media, ...more });
}

const group = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' } };
const MIRA = { address: '1', name: 'Mira', administrator: false };
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

  it('that is only heard in a group is named and not fetched, whatever others ask', async () => {
    await open();
    const ben = { address: '2', name: 'Ben', administrator: false };
    await on.say('look', { ...group, sender: ben, attachments: [attachment('image', 'picture')] });
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

describe('a picture beside a mention', () => {
  const picture = (source = 'picture') => ({ ...group, attachments: [attachment('image', source)] });
  const ask = (text = 'what is this?', more = {}) => on.say(text, { ...group, mentionsBot: true, ...more });
  const pictures = () =>
    on.asked.at(-1)?.messages.flatMap((each) => (each.role === 'user' ? (each.images ?? []) : [])) ?? [];
  const minutes = (count: number) => ({ sentAt: Date.now() + count * 60_000 });

  it('is shown with the question that its sender asks next', async () => {
    await open();
    await on.say('', picture());
    await on.settled();
    expect(fetched).toEqual([]);
    await ask();
    await on.settled();
    expect(fetched).toEqual(['picture']);
    expect(pictures()).toHaveLength(1);
    expect(lastUser().content).toMatch(/\[image picture\.x, \d+ bytes\].*what is this\?/s);
    await ask('and its colour?');
    await on.settled();
    expect(pictures()).toHaveLength(1);
    expect(fetched).toEqual(['picture']);
  });

  it('may come right behind it, too', async () => {
    await open();
    const said = { ...group, threadId: null, sender: MIRA, sentAt: Date.now(), replyTo: null };
    const title = { chat: group.chat, kind: 'message' as const };
    await on.receive(
      { ...said, ...title, platformMessageId: 'a', text: 'what is this?', mentionsBot: true },
      { ...said, ...title, ...picture(), platformMessageId: 'b', text: '', mentionsBot: false },
    );
    await on.settled();
    expect(pictures()).toHaveLength(1);
    expect(lastUser().content).toMatch(/what is this\?.*\[image picture\.x/s);
  });

  it('of an hour ago, of somebody else, or where the question is about another message, is left alone', async () => {
    await open();
    await on.say('', { ...picture(), ...minutes(-60) });
    await on.say('', { ...picture('letter'), sender: { address: '2', name: 'Ben', administrator: false } });
    await on.settled();
    await ask();
    await on.settled();
    await on.say('', picture());
    await on.settled();
    await ask('is he right?', {
      replyTo: { platformMessageId: '9', senderName: 'Ben', text: 'it will rain', ours: false },
    });
    await on.settled();
    expect(on.asked).toHaveLength(2);
    expect(fetched).toEqual([]);
  });

  it('brings what was read in a document, and a word of what could not be had; nobody else is told', async () => {
    await open();
    await on.say('', {
      ...group,
      attachments: [attachment('document', 'letter'), attachment('image', 'gone')],
    });
    await on.settled();
    await ask('when is it?');
    await on.settled();
    expect(lastUser().content).toContain('the meeting is at nine.');
    expect(lastUser().content).toContain('not to be had any more');
    expect(on.texts()).toEqual(['fine']);
  });

  it('goes with those of the question, ten at most, the newest', async () => {
    await open();
    for (let n = 0; n < 14; n++) {
      CONTENTS[`p${n}`] = SMALL_PNG;
      await on.say('', picture(`p${n}`));
    }
    await on.settled();
    await ask('which one?');
    await on.settled();
    expect(fetched).toEqual(Array.from({ length: 10 }, (_, n) => `p${n + 4}`));
    expect(pictures()).toHaveLength(10);
  });

  it('costs nothing where there is none: the window is read once, and nothing is fetched', async () => {
    let windows = 0;
    await open({
      around: (store) => ({
        ...store,
        async window(asked) {
          windows++;
          return store.window(asked);
        },
      }),
    });
    await on.say('hello all', group);
    await on.settled();
    await ask('hello');
    await on.settled();
    const before = windows;
    await on.say('hello all', group);
    await on.settled();
    await ask('hello');
    await on.settled();
    expect(windows - before).toBe(1);
  });
});

describe('a file of the message that is replied to', () => {
  const ofReply = (kind: Attachment['kind'], source: string) => attachment(kind, source, { ofReply: true });
  const replyTo = { platformMessageId: '50', senderName: 'Ben', text: '', ours: false };

  it('is shown when somebody asks about it, as what it is: sent by somebody else', async () => {
    await open();
    await on.say('who is that?', {
      ...{ ...group, mentionsBot: true, replyTo },
      attachments: [ofReply('image', 'picture')],
    });
    await on.settled();
    expect(lastUser().content).toMatch(
      />who is that\?\nIn the message replied to: \[image picture\.x, \d+ bytes\]<\/user_message>$/,
    );
    expect(lastUser().images).toHaveLength(1);
  });

  it('is not fetched where nobody asks us', async () => {
    await open();
    await on.say('nice!', { ...group, replyTo, attachments: [ofReply('image', 'picture')] });
    await on.say('nice!', { ...group, replyTo, attachments: [ofReply('voice', 'voice')] });
    await on.settled();
    expect(fetched).toEqual([]);
  });

  it('that is a voice note is written down, and calls nobody by the names in it', async () => {
    await open();
    spoken = 'Default, what time is it?';
    await on.say('so loud', { ...group, replyTo, attachments: [ofReply('voice', 'voice')] });
    await on.settled();
    expect(on.asked).toEqual([]);
    await on.say('what does he say?', {
      ...{ ...group, mentionsBot: true, replyTo },
      attachments: [ofReply('voice', 'voice')],
    });
    await on.settled();
    expect(lastUser().content).toContain(
      'In the message replied to: [voice message, transcribed] Default, what time is it?',
    );
  });

  it('is fetched once, where it was answered before', async () => {
    await open();
    const more = { platformMessageId: '50', attachments: [attachment('voice', 'voice', { seconds: 3 })] };
    await on.say('listen', { ...group, ...more, mentionsBot: true });
    await on.settled();
    expect(fetched).toEqual(['voice']);
    await on.say('what was that?', {
      ...{ ...group, mentionsBot: true, replyTo },
      attachments: [ofReply('voice', 'voice')],
    });
    await on.settled();
    expect(fetched).toEqual(['voice']);
    expect(lastUser().content).toContain(
      'In the message replied to: [voice message, transcribed] hello there',
    );
  });

  it('that cannot be had is told to the persona, and to nobody else', async () => {
    await open();
    await on.say('who is that?', {
      ...{ ...group, mentionsBot: true, replyTo },
      attachments: [ofReply('image', 'gone')],
    });
    await on.settled();
    expect(lastUser().content).toContain(
      'In the message replied to: [image gone.x, 100 bytes: not to be had',
    );
    expect(on.texts()).toEqual(['fine']);
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
