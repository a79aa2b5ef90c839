/** Character cards sent in a chat: imported once, without the model; what is said with them is said to the new persona. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Channel } from '../../src/core/channel.js';
import { systemClock } from '../../src/core/clock.js';
import type { Attachment } from '../../src/core/message.js';
import { createMediaFiles } from '../../src/media/files.js';
import { createImages } from '../../src/media/images.js';
import { createMedia } from '../../src/media/media.js';
import { charxCard, type MadeCard, madeCard, picture, pngCard } from '../harness/cards.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';
import { quietLog } from '../harness/quiet.js';
import { imageDecoder } from '../media/support.js';

let on: Workbench;
let folder: string;
let contents: Record<string, Buffer>;
const fetch: Channel['fetch'] = async ({ source }) => {
  const bytes = contents[source];
  return bytes ? { kind: 'fetched', bytes } : { kind: 'gone', reason: 'no such file' };
};

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-sent-cards-'));
  const json = (card: MadeCard) => Buffer.from(JSON.stringify(card));
  contents = {
    'marla.png': await pngCard(madeCard(), { both: true }),
    'marla.charx': await charxCard(madeCard()),
    'otto.json': json(madeCard({ name: 'Otto', description: 'Otto mends clocks.', first_mes: '' })),
    'broken.json': Buffer.from('{"spec":"chara_card_v2","data":'),
    'package.json': Buffer.from('{"name":"x","version":"1"}'),
    'sea.json': Buffer.from('{"entries":{"0":{"key":["sea"],"content":"Cold."}}}'),
    'photo.png': await picture(),
  };
});
afterEach(async () => {
  await on.close();
  await rm(folder, { recursive: true, force: true });
});

async function open(more: WorkbenchOptions = {}): Promise<void> {
  let n = 0;
  const media = createMedia({
    freed: () => {},
    files: createMediaFiles({ folder, newId: () => `f${n++}` }),
    images: createImages({ log: quietLog, decoder: imageDecoder() }),
    transcriber: null,
    ...{ maxBytes: 1_000_000, clock: systemClock, log: quietLog },
  });
  on = await workbench({ fetch, media, mediaFolder: folder, ...more });
}

const file = (source: string, more: Partial<Attachment> = {}): { attachments: Attachment[] } => ({
  attachments: [
    { kind: 'document', source, name: source, mimeType: null, bytes: 100, seconds: null, ...more },
  ],
});
const said = () => on.texts();
const say: Workbench['say'] = async (...given) => {
  const reception = await on.say(...given);
  await on.settled();
  return reception;
};
const group = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' }, mentionsBot: true };
const ANN = { address: '1', name: 'Ann', administrator: false };
const MIRA = { address: '2', name: 'Mira', administrator: true };

describe('a card sent as a file', () => {
  it.each(['marla.png', 'marla.charx'])('becomes the active persona, which greets: %s', async (source) => {
    await open();
    await say('', file(source));
    expect(said()[0]).toMatch(
      /^Imported Marla\.\nThe creator writes: Made for tests\.\nabout \d+ tokens of 32,768/,
    );
    expect(said()[1]).toContain('Mind the third step.');
    expect(on.asked).toHaveLength(0);
    await say('good evening');
    expect(on.asked).toHaveLength(1);
    expect(JSON.stringify(on.asked)).toContain('keeps a lighthouse');
  });

  it('and what is said with it is said to the new persona', async () => {
    await open();
    await say('hello, who are you?', file('otto.json'));
    expect(said()[0]).toMatch(/^Imported Otto\./);
    expect(on.asked).toHaveLength(1);
    const asked = JSON.stringify(on.asked[0]);
    expect(asked).toContain('Otto mends clocks');
    expect(asked).toContain('hello, who are you?');
    expect(asked).not.toContain('chara_card');
  });

  it('takes the name of its caption, and the same card is made once', async () => {
    await open();
    await say('/persona import Ida', file('otto.json'));
    expect(said()).toEqual([expect.stringMatching(/^Imported Ida\./)]);
    await say('', file('otto.json'));
    expect(said()[1]).toBe('Ida is here already, from the same card.');
    expect(on.asked).toHaveLength(0);
  });

  it('may come within ten minutes of the command', async () => {
    await open();
    await say('/persona import Ida');
    expect(said()[0]).toContain('as a file');
    await say('', file('otto.json'));
    expect(said()[1]).toMatch(/^Imported Ida\./);
  });

  it('that cannot be read is refused in a sentence, and other files go their way', async () => {
    await open();
    await say('', file('broken.json'));
    expect(said()).toEqual([expect.stringMatching(/^Not imported: .*JSON/)]);
    await say('what is this?', file('package.json'));
    expect(on.asked).toHaveLength(1);
    await say('/persona import', file('package.json'));
    expect(said().at(-1)).toBe('Not imported: there is no character card in it.');
    await say('', file('sea.json'));
    expect(said().at(-1)).toBe('Imported the lorebook sea, with 1 entry.');
  });

  it('is known by what is in it, whatever it is called', async () => {
    await open();
    await say('', file('otto.json', { name: 'otto' }));
    expect(said().at(-1)).toMatch(/^Imported Otto\./);
    await say('', file('marla.png', { name: 'm.bin', mimeType: 'application/octet-stream' }));
    expect(said().at(-2)).toMatch(/^Imported Marla\./);
    await say('what is this?', file('package.json', { name: 'x.bin', mimeType: 'application/octet-stream' }));
    expect(on.asked).toHaveLength(1);
  });

  it('as a photo has lost the card, and this is said', async () => {
    await open();
    await say('/persona import', file('photo.png', { kind: 'image', name: null }));
    expect(said()).toEqual([expect.stringContaining('as a file')]);
    expect(on.asked).toHaveLength(0);
  });
});

it('is imported and told once, wherever the process ends', async () => {
  for (let afterMs = 0; afterMs < 60; afterMs += 6) {
    await open();
    await on.say('and good evening', file('otto.json'));
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    const before = on.texts();
    on = await on.die();
    await on.settled();
    const all = [...before, ...on.texts()].join('\n');
    expect(all.match(/^Imported Otto\./gm), `${afterMs} ms`).toHaveLength(1);
    // The import, and one answer to what was said with it.
    expect([...before, ...on.texts()], `${afterMs} ms`).toHaveLength(2);
    if (afterMs < 54) await on.close();
  }
});

describe('in a group', () => {
  it('only owners and administrators import, and only if it is for the bot', async () => {
    await open();
    await say('look', { ...group, ...file('otto.json'), mentionsBot: false, sender: MIRA });
    await say('', { ...group, ...file('otto.json'), sender: ANN });
    expect(said().join()).not.toContain('Imported');
    await say('/persona import', { ...group, ...file('otto.json'), sender: ANN });
    expect(said().at(-1)).toMatch(/Only owners and administrators/);
    await say('', { ...group, ...file('otto.json'), sender: MIRA });
    expect(said().at(-1)).toMatch(/^Imported Otto\./);
  });
});
