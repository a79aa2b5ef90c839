/**
 * The page of a real gateway in a real Chromium, by roles and names. Each page that a test opens is watched: no script of
 * a message may have run in it, no request may have left for elsewhere, and nothing may have been thrown.
 */
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { delimiter, join } from 'node:path';
import Sqlite from 'better-sqlite3';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { describe, expect } from 'vitest';
import type { RowPage } from '../../src/board/protocol.js';
import { listen } from '../fakes/http-server.js';
import {
  type ChatBody,
  type FakeModel,
  lastUserText,
  type ModelReply,
  startFakeModel,
} from '../fakes/model.js';
import { eventually, type Home, makeHome, type Running, run } from '../harness/gateway.js';

/** The first of these programs in PATH. */
export function programFor(...names: string[]): string | null {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(existsSync) ?? null;
}

const CHROMIUM = programFor('chromium', 'chromium-browser', 'google-chrome');

/** `describe` for tests that need the program; without it they are skipped, or fail with COTERIE_REQUIRE_SERVERS=1. */
export function describeWith(program: string | null, name: string): typeof describe | typeof describe.skip {
  if (program !== null) return describe;
  if (process.env.COTERIE_REQUIRE_SERVERS === '1') {
    throw new Error(`${name} is not installed, and COTERIE_REQUIRE_SERVERS=1 demands these tests`);
  }
  process.stderr.write(`${name} is not installed: the tests that need it are SKIPPED\n`);
  return describe.skip;
}

export const describeInChromium = describeWith(CHROMIUM, 'chromium');

export function launchChromium(args: string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM ?? '', args });
}

export const PLACES = ['chat', 'conversations', 'memory', 'work', 'operations', 'setup'] as const;
export const DESKTOP = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

/** Whatever runs it leaves its mark where `watch` looks for it. */
export const TAKEN = 'globalThis.taken = true';
/** Words that are scripts, in every form that a page has fallen for. */
export const HOSTILE = [
  `<script>${TAKEN}</script>`,
  `<img src=x onerror="${TAKEN}">`,
  `<img src="http://evil.invalid/pixel.png">`,
  `<svg onload="${TAKEN}"><script>${TAKEN}</script></svg>`,
  `[click](javascript:${TAKEN})`,
  `[click](data:text/html,<script>${TAKEN}</script>)`,
  '![seen](http://evil.invalid/pixel.png)',
  `<a href="javascript:${TAKEN}" onmouseover="${TAKEN}">over</a>`,
  `<iframe srcdoc="<script>parent.taken = true</script>"></iframe>`,
  `<style>@import 'http://evil.invalid/style.css'; body { background: url(http://evil.invalid/b.png) }</style>`,
  `"><script>${TAKEN}</script>`,
] as const;

export interface Watched {
  page: Page;
  /** Everything that must not have happened. */
  faults: string[];
}

/** Fetched, but not by the page: the browser's own. */
const HARMLESS = /^(data:|blob:|about:|chrome-extension:|chrome:)/;
/** A refusal and a broken line are told by the page; the browser notes them, too. */
const EXPECTED = /Failed to load resource|WebSocket connection to/;

function watch(page: Page, own: () => string[]): Watched {
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(`thrown: ${error.stack ?? error}`));
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('popup', (popup) => faults.push(`popup: ${popup.url()}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !EXPECTED.test(message.text()))
      faults.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!HARMLESS.test(url) && !own().includes(new URL(url).origin)) faults.push(`request: ${url}`);
  });
  return { page, faults };
}

export interface BoardOptions {
  config?: Record<string, unknown>;
  reply?: ModelReply;
  /** The gateway comes back at the same port after a restart. */
  keepsPort?: boolean;
}

export interface Board {
  model: FakeModel;
  home: Home;
  gateway: Running;
  url: string;
  /** Starts the gateway again, after `stop`. */
  start(): Promise<void>;
  /** A page in a context of its own. */
  open(hash?: string, options?: BrowserContextOptions & { at?: string }): Promise<Page>;
  /** Another tab of the same browser. */
  openIn(context: BrowserContext, hash?: string, at?: string): Promise<Page>;
  /** Says something over the page's route, and resolves when it was answered. */
  say(text: string, chat?: string): Promise<void>;
  ask(method: string, path: string, body?: unknown): Promise<Response>;
  /** Closes all pages; fails if something happened in one of them that must not. */
  closePages(): Promise<void>;
  close(): Promise<void>;
}

export async function startBoard(browser: Browser, options: BoardOptions = {}): Promise<Board> {
  const model = await startFakeModel({ reply: options.reply ?? remembering });
  const port = options.keepsPort ? await freePort() : 0;
  const home = await makeHome({
    ...{ board: { port }, timezone: 'UTC', conversation: { debounce_ms: 0 } },
    model: { base_url: model.url, name: 'fake', context_tokens: 100_000 },
    ...options.config,
  });
  const opened: Watched[] = [];
  const contexts = new Set<BrowserContext>();
  const fronts = new Set<string>();
  let said = 0;

  const board: Board = {
    ...{ model, home, gateway: run(home), url: '' },
    async start() {
      board.gateway = run(home);
      board.url = await board.gateway.url();
    },
    async open(hash = '', { at, ...given } = {}) {
      const context = await browser.newContext({ viewport: DESKTOP, locale: 'en-US', ...given });
      return board.openIn(context, hash, at);
    },
    async openIn(context, hash = '', at = `${board.url}/`) {
      contexts.add(context);
      fronts.add(new URL(at).origin);
      const page = await context.newPage();
      opened.push(watch(page, () => [...fronts, board.url]));
      await page.goto(`${at}${hash}`);
      return page;
    },
    async say(text, chat = 'board_main') {
      const id = `t${Date.now()}-${++said}`;
      const response = await board.ask('POST', `chats/${chat}/messages`, { id, text });
      expect(response.status, await response.text()).toBe(200);
      await eventually(
        async () => {
          const page = (await (await board.ask('GET', `rows?room=${chat}`)).json()) as RowPage;
          const last = page.rows.at(-1);
          // Of a command that is done, the store keeps the name alone.
          const name = text.startsWith('/') ? text.split(' ', 1)[0] : text;
          const isThere = page.rows.some(
            ({ author, text: is }) => author.kind === 'person' && (is === text || is === name),
          );
          return isThere && last?.author.kind !== 'person' && last?.state === undefined;
        },
        `an answer to ${text.slice(0, 60)}`,
      );
    },
    ask: (method, path, body) =>
      fetch(`${board.url}/api/board/${path}`, {
        method,
        ...(body !== undefined && {
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        }),
      }),
    async closePages() {
      const seen = opened.splice(0);
      const faults: string[] = [];
      for (const { page, faults: found } of seen) {
        faults.push(...found);
        if (!page.isClosed() && (await page.evaluate('globalThis.taken')) !== undefined)
          faults.push('a script ran');
      }
      for (const context of contexts) await context.close();
      contexts.clear();
      expect(faults).toEqual([]);
    },
    async close() {
      await board.gateway.stop('SIGKILL');
      await model.close();
      await home.remove();
    },
  };
  board.url = await board.gateway.url();
  return board;
}

export async function freePort(): Promise<number> {
  const free = await listen(createServer());
  await free.close();
  return Number(new URL(free.url).port);
}

/** A model that writes into tier 1 what it is asked to remember, and tells what stands in its prompt of it. */
export function remembering(body: ChatBody) {
  const asked = lastUserText(body);
  const isDone = body.messages.at(-1)?.role === 'tool';
  const [, fact] = /remember that (.+)/i.exec(asked) ?? [];
  if (fact !== undefined && !isDone) {
    return {
      calls: [
        {
          id: `c${body.messages.length}`,
          name: 'write_tiered_memory',
          arguments: { tier: 1, content: `- ${fact}` },
        },
      ],
    };
  }
  if (fact !== undefined) return 'I will **remember** it.';
  if (/what do you remember/i.test(asked)) {
    // Of the prompt: the memory as it was when the conversation began, and its changes since then.
    const told = body.messages.flatMap(({ role, content }) =>
      role === 'system'
        ? (content ?? '')
        : [...(content ?? '').matchAll(/<memory_now[^>]*>([\s\S]*?)<\/memory_now>/g)].map(([all]) => all),
    );
    const known = [...told.join('\n').matchAll(/- (.*\btea\b.*)$/gm)].map(([, line]) => line);
    return `I remember: ${known.at(-1) ?? 'nothing'}.`;
  }
  return `echo: ${asked}`;
}

export interface Seeded {
  chat: string;
  title?: string;
  texts: readonly string[];
  author?: string;
}

/** Messages that people wrote long ago, straight into the store; nobody is asked to answer them. */
export function seed(home: Home, rooms: readonly Seeded[]): void {
  const db = new Sqlite(join(home.folder, 'data/coterie.db'));
  db.pragma('busy_timeout = 10000');
  const add = db.prepare(`
    insert into message (room_id, chat_id, account, moves, author_kind, author_id, author_name, administrator, text,
      sent_at, received_at, mentions_bot, edited, state)
    values (?, ?, 'bot', 0, 'person', 'telegram_1', ?, 0, ?, ?, ?, 0, 0, 'done')`);
  const addChat = db.prepare(
    `insert or ignore into chat (id, channel, account, address, title, kind) values (?, ?, 'bot', '', ?, 'group')`,
  );
  const addRoom = db.prepare(`
    insert into room (id, chat_id, newest_message) values (?, ?, ?)
    on conflict (id) do update set newest_message = excluded.newest_message`);
  db.transaction(() => {
    for (const { chat, title = chat, texts, author = 'Ann' } of rooms) {
      addChat.run(chat, chat.split('_')[0], title);
      let last: number | bigint = 0;
      for (const [n, text] of texts.entries()) {
        const at = Date.now() - (texts.length - n) * 60_000;
        last = add.run(chat, chat, author, text, at, at).lastInsertRowid;
      }
      addRoom.run(chat, chat, last);
    }
  })();
  db.close();
}

// ── Of every place ───────────────────────────────────────────────────────────────────────────────────────────

export const log = (page: Page) => page.getByRole('log', { name: 'Conversation' });
export const articles = (page: Page) => log(page).getByRole('article');
export const message = (page: Page) => page.getByRole('textbox', { name: 'Message', exact: true });
export const connection = (page: Page) => page.getByRole('status', { name: 'Connection' });

/** Resolves when the place is there and the line is up. */
export async function isUp(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).first().waitFor();
  await connection(page).filter({ hasText: 'Connected' }).waitFor();
}

export async function type(page: Page, text: string): Promise<void> {
  await message(page).fill(text);
  await message(page).press('Enter');
}

/** Nothing lies beside the screen, so that nobody has to scroll sideways. */
export const TOO_WIDE = `(() => {
  const { scrollWidth } = document.documentElement;
  const inMain = [...document.querySelectorAll('main')].map((main) => main.scrollWidth - main.clientWidth);
  return Math.max(scrollWidth - innerWidth, ...inMain);
})()`;
