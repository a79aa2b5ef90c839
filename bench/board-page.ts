/**
 * Part of `npm run bench:board`: the page of a real gateway in a real Chromium: what is sent, the first paint, a conversation
 * of 50,000 messages, and a thousand live events a second.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { type Browser, chromium, type Page } from 'playwright-core';
import { freePort, gateway } from './bots.js';
import { median, quantile, type Row } from './figures.js';
import { fill, layOutGroups } from './fill.js';
import { machine } from './machine.js';
import { readOptions } from './options.js';
import { createProcesses } from './processes.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('board-page');
const options = readOptions();
const { quick } = options;
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const PLACES = ['chat', 'conversations', 'memory', 'work', 'operations', 'setup'];
const PERSON = 1;
const ROOM = `telegram_${PERSON}`;
const MESSAGES = quick ? 5_000 : 50_000;
const PAINTS = quick ? 3 : 11;
const OPENS = quick ? 2 : 7;
const SCROLLS = quick ? 1 : 5;
const SCROLL_MS = 5_000;
const FLOODS = quick ? 1 : 3;
const FLOOD_MS = 5_000;
const EVENTS_A_SECOND = 1_000;
/** Until the gateway has nothing left to do for what was filled in. */
const QUIET_MS = 60_000;
const processes = createProcesses();
const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-board-page-'));
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Answers as models write them, instead of echoes. */
function writeAnswers(): void {
  const db = new Sqlite(join(folder, 'data/coterie.db'));
  db.function('answer', (n) => ANSWERS[Number(n) % ANSWERS.length]?.replaceAll('#', `${n}`));
  db.exec(`update message set text = answer(id) where author_kind = 'persona'`);
  db.close();
}

const ANSWERS = [
  'That was number #. **Yes**, I remember it: you told me in March, and it was `cold`.',
  'Three things about number #:\n\n- the kiln, which *broke*\n- the pots, see [the list](https://example.org/#)\n- Luna, who drove there\n\nShall I write that down?',
  'Short: no, not number #.',
  '| day | pots |\n|---|--:|\n| Monday | # |\n| Tuesday | 12 |\n\nNumber # is in the table, as far as I know it.',
  'It goes like this:\n\n```ts\nconst pots = await kiln.fire(#);\nfor (const pot of pots) console.log(pot.name);\n```\n\nThen it cools for a night.',
  `A long one about number #. ${'The kiln broke in March, and Luna drove the pots to her sister. '.repeat(8)}\n\n${'Since then it is fired there, on Mondays. '.repeat(5)}`,
];

// ── Bytes ────────────────────────────────────────────────────────────────────────────────────────────────────

/** Bytes of the body as it is sent. */
function bytesSent(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { 'accept-encoding': 'br' } }, (response) => {
      let bytes = 0;
      response.on('data', (piece: Buffer) => {
        bytes += piece.length;
      });
      response.on('end', () => resolve(bytes));
    }).on('error', reject);
  });
}

/** Scripts and styles that a browser asks for at a first visit of places, one after another; kB. */
async function sizes(browser: Browser, url: string, places: readonly string[]) {
  const context = await browser.newContext();
  const page = await context.newPage();
  const files = { script: new Set<string>(), stylesheet: new Set<string>() };
  page.on('response', (response) => {
    const kind = response.request().resourceType();
    if (kind === 'script' || kind === 'stylesheet') files[kind].add(response.url());
    else if (/\.(js|css)$/.test(response.url()))
      files[response.url().endsWith('.js') ? 'script' : 'stylesheet'].add(response.url());
  });
  await page.goto(url);
  for (const place of places) {
    await page.goto(`${url}#/${place}`);
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    // What colours code comes when code was seen.
    await pause(1_000);
    await page.waitForLoadState('networkidle');
  }
  await context.close();
  const sum = async (urls: Iterable<string>) =>
    (await Promise.all([...urls].map(bytesSent))).reduce((all, bytes) => all + bytes, 0) / 1_000;
  return { script: await sum(files.script), style: await sum(files.stylesheet) };
}

// ── Times ────────────────────────────────────────────────────────────────────────────────────────────────────

async function withPage<Result>(browser: Browser, run: (page: Page) => Promise<Result>): Promise<Result> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-US' });
  const page = await context.newPage();
  const thrown: Error[] = [];
  page.on('pageerror', (error) => thrown.push(error));
  try {
    const result = await run(page);
    if (thrown[0]) throw thrown[0];
    return result;
  } finally {
    await context.close();
  }
}

/** From the navigation to the first words on the screen, nothing cached. */
async function firstPaint(browser: Browser, url: string): Promise<number> {
  return withPage(browser, async (page) => {
    await page.goto(url);
    return page.evaluate<number>(`new Promise((resolve) => {
      const look = () => {
        const [paint] = performance.getEntriesByName('first-contentful-paint');
        if (paint) resolve(paint.startTime);
        else requestAnimationFrame(look);
      };
      look();
    })`);
  });
}

/** Notes when an article with these words was painted. */
const WHEN_SHOWN = (words: string) => `(() => {
  const look = () => {
    const rows = document.querySelectorAll('[role=log] article');
    const last = rows[rows.length - 1];
    const box = last?.getBoundingClientRect();
    if (last?.textContent.includes(${JSON.stringify(words)}) && box.bottom <= innerHeight && box.height > 0)
      requestAnimationFrame(() => { globalThis.shownAt = performance.now(); });
    else requestAnimationFrame(look);
  };
  look();
})()`;

/** Resolves with the value that a script leaves there. `waitForFunction` needs `eval`, which the page forbids. */
function left(page: Page, name: 'shownAt' | 'flooded'): Promise<number> {
  return page.evaluate<number>(`new Promise((resolve) => {
    const look = () => globalThis.${name} === undefined ? setTimeout(look, 20) : resolve(globalThis.${name});
    look();
  })`);
}

/** From the navigation to the newest message, nothing cached. */
async function openLong(browser: Browser, url: string, words: string): Promise<number> {
  return withPage(browser, async (page) => {
    await page.addInitScript(WHEN_SHOWN(words));
    await page.goto(`${url}#/conversations/${ROOM}`);
    return left(page, 'shownAt');
  });
}

const COUNT_FRAMES = `(() => {
  globalThis.frames_ = [];
  let last = performance.now();
  const next = (at) => { frames_.push(at - last); last = at; requestAnimationFrame(next); };
  requestAnimationFrame((at) => { last = at; requestAnimationFrame(next); });
})()`;

interface Frames {
  times: number[];
  elements: number;
}

async function framesOf(page: Page): Promise<Frames> {
  return {
    times: await page.evaluate<number[]>('frames_'),
    elements: await page.evaluate<number>(`document.querySelectorAll('*').length`),
  };
}

async function openHere(page: Page, url: string, words: string): Promise<void> {
  await page.addInitScript(WHEN_SHOWN(words));
  await page.goto(`${url}#/conversations/${ROOM}`);
  await left(page, 'shownAt');
  await page.waitForLoadState('networkidle');
}

/** Turns the wheel upwards, as fast as a person who seeks something long ago. */
async function scroll(browser: Browser, url: string, words: string): Promise<Frames> {
  return withPage(browser, async (page) => {
    await openHere(page, url, words);
    const box = await page.getByRole('log').boundingBox();
    if (box === null) throw new Error('the log is not there');
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.evaluate(COUNT_FRAMES);
    const end = performance.now() + SCROLL_MS;
    while (performance.now() < end) {
      await page.mouse.wheel(0, -240);
      await pause(16);
    }
    return framesOf(page);
  });
}

/** Into the page's own socket, each event by itself: new messages, and an answer of which each event adds words. */
const FLOOD = `(() => {
  const began = performance.now();
  let sent = 0;
  const author = { kind: 'person', id: 'telegram_9', name: 'Ann' };
  const persona = { kind: 'persona', id: 'default', name: 'Kim', avatar: null };
  // Each is a task of its own, as from a socket.
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = ({ data }) => benchLine.onmessage({ data });
  const send = (news) => port2.postMessage(JSON.stringify(news));
  const timer = setInterval(() => {
    const due = Math.min(${(EVENTS_A_SECOND * FLOOD_MS) / 1000}, (performance.now() - began) * ${EVENTS_A_SECOND / 1000});
    for (; sent < due; sent++) {
      const turn = 'tflood' + Math.floor(sent / 100);
      const at = Date.now();
      if (sent % 2) send({ kind: 'writing', room: '${ROOM}', key: turn, author: persona, keep: sent % 100 * 8, add: 'Words ** ' });
      else send({ kind: 'rows', room: '${ROOM}', rows: [{ key: 'm' + (1e9 + sent), author, at, text: 'Number ' + sent + ' of a flood.' }],
        gone: [], position: '1.0.0.0.' });
    }
    if (performance.now() - began >= ${FLOOD_MS}) { clearInterval(timer); globalThis.flooded = sent; }
  }, 4);
})()`;
/** Keeps the page's socket where the flood finds it. */
const KEEP_LINE = `globalThis.WebSocket = class extends WebSocket {
  constructor(...given) { super(...given); globalThis.benchLine = this; }
}`;

async function flood(browser: Browser, url: string, words: string): Promise<Frames> {
  return withPage(browser, async (page) => {
    await page.addInitScript(KEEP_LINE);
    await openHere(page, url, words);
    await page.evaluate(COUNT_FRAMES);
    await page.evaluate(FLOOD);
    // Sooner or later the page reads its newest rows anew, which the store does not have.
    await page.getByText('of a flood.').first().waitFor();
    await left(page, 'flooded');
    await pause(500);
    return framesOf(page);
  });
}

// ── All of it ────────────────────────────────────────────────────────────────────────────────────────────────

async function isQuiet(cpuMs: () => number | null): Promise<void> {
  const deadline = Date.now() + QUIET_MS;
  for (let last = cpuMs() ?? 0; Date.now() < deadline; ) {
    await pause(1_000);
    const now = cpuMs() ?? 0;
    if (now - last < 50) return;
    last = now;
  }
}

async function times<Result>(count: number, run: () => Promise<Result>): Promise<Result[]> {
  const found: Result[] = [];
  for (let n = 0; n < count; n++) found.push(await run());
  return found;
}

function frameRows(what: string, rounds: Frames[], aims: { late?: number; longest?: number }): Row[] {
  const of = (pick: (times: number[]) => number) => [median(rounds.map(({ times }) => pick(times)))];
  return [
    { what: `${what}: frames, median`, values: of(median), unit: 'ms' },
    {
      what: `${what}: frames, 95 %`,
      values: of((all) => quantile(all, 0.95)),
      unit: 'ms',
      ...(aims.late !== undefined && { aim: { atMost: aims.late } }),
    },
    {
      what: `${what}: longest frame`,
      values: of((all) => Math.max(...all)),
      unit: 'ms',
      ...(aims.longest !== undefined && { aim: { atMost: aims.longest } }),
    },
    { what: `${what}: elements`, values: [median(rounds.map(({ elements }) => elements))], unit: '' },
  ];
}

const browser = await chromium.launch({ executablePath: CHROMIUM });
try {
  await layOutGroups(folder);
  await fill(folder, [{ person: PERSON, messages: MESSAGES }]);
  writeAnswers();
  const port = await freePort();
  const { servers, start } = await gateway(processes, options, folder, { unbounded: true, boardPort: port });
  const bot = start();
  await servers.oneByOne({ people: [PERSON], each: 1 });
  await isQuiet(bot.cpuMs);
  const url = `http://127.0.0.1:${port}/`;
  const words = 'echo';
  console.log(`${machine(options.node, folder)}; Chromium ${browser.version()}\n`);
  const chat = await sizes(browser, url, ['chat']);
  // A conversation with code loads what colours it.
  const all = await sizes(browser, url, [...PLACES, `conversations/${ROOM}`]);
  const paints = await times(PAINTS, () => firstPaint(browser, url));
  const opens = await times(OPENS, () => openLong(browser, url, words));
  const scrolls = await times(SCROLLS, () => scroll(browser, url, words));
  const floods = await times(FLOODS, () => flood(browser, url, words));
  const long = `${MESSAGES.toLocaleString('en')} messages`;
  const rows: Row[] = [
    { what: 'script of the chat, brotli', values: [chat.script], unit: 'kB', aim: { atMost: 150 } },
    { what: 'script of all places', values: [all.script], unit: 'kB', aim: { atMost: 150 } },
    { what: 'style of the chat, brotli', values: [chat.style], unit: 'kB', aim: { atMost: 20 } },
    { what: 'style of all places', values: [all.style], unit: 'kB', aim: { atMost: 20 } },
    { what: 'first paint', values: [median(paints)], unit: 'ms', aim: { atMost: 500 } },
    { what: `${long}: open at the newest`, values: [median(opens)], unit: 'ms', aim: { atMost: 1_000 } },
    ...frameRows(`${long}, scrolled`, scrolls, { late: 50 }),
    ...frameRows('1,000 live events a second', floods, { longest: 200 }),
  ];
  console.log(`The page\n\n${table([''], rows)}\n`);
} finally {
  await browser.close();
  await processes.endAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
process.exit();
