/**
 * A busy gateway while a stranger sends the worst files there are: it goes on answering everybody, and its memory stays
 * below 250 MB. (The process that decodes pictures has a limit of its own.)
 */
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import sharp from 'sharp';
import { afterEach, expect, it } from 'vitest';
import { type ChatBody, lastUserText } from '../fakes/model.js';
import { ANNA, type Person, type Saying } from '../fakes/telegram-chats.js';
import { eventually } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';
import { bomb, noise } from '../media/support.js';

const MOST_MEGABYTES = 250;
/** People who chat meanwhile, and how often each writes. */
const OTHERS = 20;
const MESSAGES = 15;
const STRANGER: Person = { id: 666_000, first_name: 'Mallory' };

let world: Stage;
afterEach(() => world.close());

it.skipIf(process.platform !== 'linux')(
  'a stranger sends the worst files there are, and the others are answered as ever',
  async () => {
    // An echo of all that the files hold would be cut off before it comes to the last word.
    const reply = (body: ChatBody) => ({ text: lastUserText(body).slice(-200) });
    world = await stage({ model: { images: 'taken', keep: 0, reply }, config: { log: { level: 'info' } } });
    const gateway = await world.start();
    const sending = sendAll(await worstFiles());
    const chatting = Promise.all(
      Array.from({ length: OTHERS }, (_, n) => chat({ ...ANNA, id: 200_000 + n })),
    );
    await Promise.all([sending, chatting]);
    await eventually(
      () => answered(STRANGER.id).at(-1)?.includes('the last word'),
      'the last answer',
      300_000,
    );
    const peak = peakMemory(gateway.pid);
    process.stdout.write(`worst files: ${Math.round(peak)} MB at most\n`);
    expect(peak).toBeLessThan(MOST_MEGABYTES);
    expect(await gateway.stop()).toBe(0);
  },
);

const answered = (chatId: number) => world.sentTo(chatId);

async function chat(person: Person): Promise<void> {
  for (let n = 0; n < MESSAGES; n += 1) {
    const words = `message ${n} of ${person.id}`;
    world.telegram.say({ from: person, text: words });
    await eventually(() => answered(person.id).some((text) => text.includes(words)), words, 120_000);
  }
}

async function sendAll(files: Saying[][]): Promise<void> {
  for (const sayings of files) {
    if (sayings.length === 1) world.telegram.say({ from: STRANGER, ...sayings[0] });
    else world.telegram.album(sayings.map((saying) => ({ from: STRANGER, ...saying })));
  }
  await world.telegram.until(() => world.telegram.pending() === 0, 'every file was taken', 300_000);
  world.telegram.say({ from: STRANGER, text: 'the last word' });
}

/** Messages and albums. */
async function worstFiles(): Promise<Saying[][]> {
  const flat = (side: number) =>
    sharp({ create: { width: side, height: side, channels: 3, background: 'red' }, limitInputPixels: false });
  const photo = (bytes: Buffer): Saying => ({ photo: { bytes } });
  const document = (name: string, bytes: Buffer, mimeType = 'application/octet-stream'): Saying => ({
    document: { name, bytes, mimeType },
  });
  const heaviest = await noise(1_170, 1_170).png({ compressionLevel: 0 }).toBuffer();
  const avif = await flat(3_400).avif({ effort: 0 }).toBuffer();
  const large = 19 * 1024 * 1024;
  const laughs = `<svg xmlns="http://www.w3.org/2000/svg"><defs>${Array.from(
    { length: 12 },
    (_, n) => `<g id="g${n + 1}">${`<use href="#g${n}"/>`.repeat(10)}</g>`,
  ).join('')}<rect id="g0" width="9" height="9"/></defs><use href="#g12"/></svg>`;
  const once: Saying[][] = [
    ...[avif, bomb(30_000), bomb(8_000), await flat(7_900).png().toBuffer()].map((bytes) => [photo(bytes)]),
    [photo(await flat(5_600).webp().toBuffer())],
    [photo(await flat(7_900).jpeg({ quality: 1 }).toBuffer())],
    [photo(await flat(3_900).gif().toBuffer())],
    [photo(Buffer.from(laughs))],
    [photo(heaviest.subarray(0, heaviest.length / 2))],
    [document('long.txt', Buffer.alloc(large, 'All work and no play makes Jack a dull boy. '), 'text/plain')],
    [document('one-line.json', Buffer.alloc(large, '[{"a":"'), 'application/json')],
    [document('utf-16.txt', Buffer.from(`\ufeff${'\u5b57'.repeat(large / 2 - 1)}`, 'utf16le'), 'text/plain')],
    [document('bomb.gz', gzipSync(Buffer.alloc(200_000_000), { level: 9 }))],
    [document('drawing.svg', Buffer.from(laughs), 'image/svg+xml')],
    [document('picture.avif', avif, 'image/avif')],
    [{ voice: { bytes: Buffer.alloc(large, 'OggS'), mimeType: 'audio/ogg', seconds: 3_600 } }],
    // What is small enough to be shown as it came, ten at once.
    Array.from({ length: 10 }, () => photo(heaviest)),
    Array.from({ length: 10 }, () => photo(avif)),
    Array.from({ length: 10 }, (_, n) => document(`${n}.txt`, Buffer.alloc(large, 'x'), 'text/plain')),
  ];
  return [...once, ...once];
}

/** The most that a process has ever held, in MB. */
function peakMemory(pid: number): number {
  return Number(/^VmHWM:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}
