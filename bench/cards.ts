/**
 * Part of `npm run bench:lore`: character cards sent in a chat of the compiled gateway while somebody talks in the chat next
 * door: a card of 4 MB, and the worst that are taken: large pictures, texts, lorebooks, and what unpacks to a gigabyte.
 */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { chunksOf, type PngChunk, pngOf, textChunk } from '../src/cards/png.js';
import { withEntries } from '../src/cards/zip.js';
import { startFakeModel } from '../test/fakes/model.js';
import { startFakeTelegram } from '../test/fakes/telegram.js';
import { madeCard } from '../test/harness/cards.js';
import { eventually, makeHome, run } from '../test/harness/gateway.js';
import type { Row } from './figures.js';
import { readOptions } from './options.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('cards');
const { main } = readOptions();
const TAKEN_AIM_MS = 1_000;
const NEXT_DOOR_AIM_MS = 1_000;
const MEMORY_AIM_MB = 250;
const MEGABYTE = 1_000_000;
const NEXT_DOOR = 2;
const PAUSE_MS = 50;
const LOOK_EVERY_MS = 5;

/** Noise, which cannot be packed smaller. */
async function pngWith(chunk: PngChunk, side: number): Promise<Buffer> {
  const raw = { width: side, height: side, channels: 3 } as const;
  const noise = sharp(randomBytes(side * side * 3), { raw }).png({ compressionLevel: 0 });
  const { chunks } = chunksOf(await noise.toBuffer());
  return pngOf([...chunks.slice(0, 1), chunk, ...chunks.slice(1)]);
}

const json = (data: object) => Buffer.from(JSON.stringify(madeCard({ first_mes: '', ...data })));
const chunk = (data: object) => textChunk({ keyword: 'chara', text: json(data).toString('base64') });
const letters = (count: number) => 'The keeper counts ships. '.repeat(Math.ceil(count / 25)).slice(0, count);
const book = (count: number, chars: number) => ({
  entries: Array.from({ length: count }, (_, n) => ({ keys: [`place ${n}`], content: letters(chars) })),
});
const zeros = deflateSync(Buffer.alloc(1_000 * MEGABYTE));
const bomb: PngChunk = { type: 'zTXt', data: Buffer.concat([Buffer.from('chara\0\0'), zeros]), crc: null };

const CARDS: { what: string; name: string; make(): Promise<Buffer> | Buffer }[] = [
  {
    what: 'a card of 4 MB',
    name: 'a.png',
    make: () => pngWith(chunk({ character_book: book(60, 3_000) }), 1_130),
  },
  { what: 'a picture of 16 MB', name: 'b.png', make: () => pngWith(chunk({ name: 'B' }), 2_300) },
  {
    what: 'a text of 11 MB',
    name: 'c.png',
    make: () => pngWith(chunk({ name: 'C', description: letters(11 * MEGABYTE) }), 24),
  },
  {
    what: 'JSON of 15 MB',
    name: 'd.json',
    make: () => json({ name: 'D', description: '字'.repeat(5 * MEGABYTE) }),
  },
  {
    what: 'a lorebook of 5,000 entries, 12 MB',
    name: 'e.json',
    make: () => json({ name: 'E', character_book: book(5_000, 2_400) }),
  },
  { what: 'a chunk that unpacks to 1 GB', name: 'f.png', make: () => pngWith(bomb, 24) },
  {
    what: 'an archive that unpacks to 1 GB',
    name: 'g.charx',
    make: () => withEntries(null, new Map([['card.json', Buffer.alloc(1_000 * MEGABYTE, ' ')]])),
  },
];

const telegram = await startFakeTelegram();
const model = await startFakeModel({ reply: () => 'Good morning.' });
const home = await makeHome({
  access: { direct: 'open' },
  conversation: { debounce_ms: 0 },
  model: { base_url: model.url, name: 'scripted' },
  channels: {
    telegram: {
      ...{ token: telegram.token, api_root: telegram.url },
      ...{ messages_per_second: 1_000, per_chat_burst: 1_000 },
    },
  },
});
const gateway = run(home, ['start'], {}, main);

async function answered(chatId: number, saying: object): Promise<{ ms: number; text: string }> {
  const shown = () => telegram.sent.filter((each) => each.chatId === chatId);
  const before = shown().length;
  const began = performance.now();
  telegram.say({ from: { id: chatId, first_name: 'Guest' }, ...saying });
  await eventually(() => shown().length > before, `an answer in ${chatId}`);
  return { ms: performance.now() - began, text: shown()[before]?.text ?? '' };
}

async function memoryNow(): Promise<number> {
  const status = await readFile(`/proc/${gateway.pid}/status`, 'utf8').catch(() => '');
  return (Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1_024) / MEGABYTE;
}

/** Sends it, and talks next door until it is answered. */
async function measured(bytes: Buffer, name: string, chatId: number) {
  let isOver = false;
  let longest = 0;
  let peak = 0;
  const watch = setInterval(async () => {
    peak = Math.max(peak, await memoryNow());
  }, LOOK_EVERY_MS);
  const nextDoor = (async () => {
    while (!isOver) {
      longest = Math.max(longest, (await answered(NEXT_DOOR, { text: 'and here?' })).ms);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  })();
  const document = { bytes, name, mimeType: 'application/octet-stream' };
  const { ms, text } = await answered(chatId, { document });
  isOver = true;
  await nextDoor;
  clearInterval(watch);
  return { ms, text, longest, peak };
}

const rows: Row[] = [];
try {
  await gateway.saw('coterie is up');
  for (let n = 0; n < 20; n++) await answered(NEXT_DOOR, { text: 'good morning' });
  for (const [n, { what, name, make }] of CARDS.entries()) {
    const { ms, text, longest, peak } = await measured(await make(), name, 100 + n);
    if (!text.startsWith(what.includes('1 GB') ? 'Not imported:' : 'Imported ')) throw new Error(text);
    rows.push({ what, values: [ms], unit: 'ms', ...(n === 0 && { aim: { atMost: TAKEN_AIM_MS } }) });
    rows.push({
      what: '· longest answer next door',
      values: [longest],
      unit: 'ms',
      aim: { atMost: NEXT_DOOR_AIM_MS },
    });
    const memory = peak === 0 ? null : peak;
    rows.push({ what: '· memory', values: [memory], unit: 'MB', aim: { atMost: MEMORY_AIM_MB } });
  }
  console.log(`\n## Character cards: until they are answered\n\n${table(['coterie'], rows)}`);
} finally {
  await gateway.stop('SIGKILL');
  await telegram.close();
  await model.close();
  await home.remove();
}
process.exit(0);
