/** The chat of the page through the real gateway, by its routes and its live line alone; also with ends of the process. */
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { LiveNews, LogRow, RowPage } from '../../src/board/protocol.js';
import { raw } from '../board/board-harness.js';
import { type FakeModel, type ModelScript, startFakeModel } from '../fakes/model.js';
import { eventually, type Home, makeHome, type Running, run } from '../harness/gateway.js';

const MAIN = 'board_main';
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

let model: FakeModel;
let home: Home;
let gateway: Running;
let url: string;
let line: WebSocket | null = null;

afterEach(async () => {
  line?.terminate();
  line = null;
  await gateway?.stop();
  await model?.close();
  await home?.remove();
});

async function begin(more: Record<string, unknown> = {}): Promise<void> {
  model = await startFakeModel();
  home = await makeHome({
    ...{ board: { port: 0 }, conversation: { debounce_ms: 0 } },
    model: { base_url: model.url, name: 'fake' },
    ...more,
  });
  await start();
}

async function start(): Promise<void> {
  gateway = run(home, ['start'], { NODE_ENV: 'test' });
  url = await gateway.url();
}

/** An answer that nobody reads would keep its connection. */
async function fetchWhole(address: string, request?: RequestInit): Promise<Response> {
  const answer = await fetch(address, request);
  const { status, headers } = answer;
  const bytes = await answer.arrayBuffer();
  return new Response(bytes.byteLength === 0 ? null : bytes, { status, headers });
}

const post = (path: string, body: unknown) =>
  fetchWhole(`${url}/api/board/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const say = (text: string, { id = randomUUID() as string, chat = MAIN, files = [] as unknown[] } = {}) =>
  post(`chats/${chat}/messages`, { id, text, files });
const press = (value: string) => post(`chats/${MAIN}/choices`, { id: randomUUID(), value });
async function page(chat = MAIN): Promise<RowPage> {
  return (await (await fetchWhole(`${url}/api/board/rows?room=${chat}`)).json()) as RowPage;
}
const rows = async (chat = MAIN) => (await page(chat)).rows;
const texts = async (chat = MAIN) => (await rows(chat)).map(({ text }) => text);
const last = async (chat = MAIN) => (await rows(chat)).at(-1) as LogRow;
const seen = (text: string | RegExp, chat = MAIN) =>
  eventually(
    async () =>
      (await rows(chat)).find((row) => (typeof text === 'string' ? row.text === text : text.test(row.text))),
    `${text} is in the log`,
  );

/** Writes half of it, and the rest when that is let happen. */
function halves(whole: string): { script: ModelScript; go(): void } {
  let go = () => {};
  const until = new Promise<void>((resolve) => {
    go = resolve;
  });
  return { script: { text: whole, chunkSize: Math.ceil(whole.length / 2), hold: { after: 1, until } }, go };
}

/** The page’s socket, following the chat from where its log ends. */
async function look(): Promise<LiveNews[]> {
  const { position } = await page();
  const heard: LiveNews[] = [];
  line = new WebSocket(`${url.replace('http', 'ws')}/api/board/live`);
  line.on('message', (data) => heard.push(JSON.parse(String(data))));
  await new Promise((resolve) => line?.once('open', resolve));
  line.send(JSON.stringify({ kind: 'follow', room: MAIN, position }));
  return heard;
}

describe('the chat of the page', () => {
  it('works without any configuration: a message is answered, and grows on the live line', async () => {
    await begin();
    expect(await page()).toEqual({ rows: [], before: null, after: null, position: expect.any(String) });
    const heard = await look();
    const { script, go } = halves('The old oak stands by the **gate**.');
    model.reply(script);
    expect((await say('tell me')).status).toBe(200);
    const half = script.text?.slice(0, script.chunkSize).trim();
    await eventually(
      () =>
        heard.some(
          (news) =>
            news.kind === 'writing' || (news.kind === 'rows' && news.rows.some(({ text }) => text === half)),
        ),
      'half of it is on the line',
    );
    const growing = await last();
    expect(growing).toMatchObject({
      text: half,
      state: 'writing',
      author: { kind: 'persona', id: 'default' },
    });
    go();
    await seen('The old oak stands by the **gate**.');
    expect(await last()).toMatchObject({ key: growing.key });
    expect((await last()).state).toBeUndefined();
    expect(await rows()).toMatchObject([
      { text: 'tell me', author: { kind: 'person', id: 'board_owner', own: true } },
      { text: 'The old oak stands by the **gate**.' },
    ]);
    await eventually(
      () =>
        heard.some(
          (news) =>
            news.kind === 'rows' && news.rows.some(({ text, state }) => text.endsWith('**.') && !state),
        ),
      'the whole is on the line',
    );
  });

  it('takes a message once, whatever the page does about it, also over a restart', async () => {
    await begin();
    const id = randomUUID();
    const answers = await Promise.all(Array.from({ length: 5 }, () => say('once', { id })));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    await eventually(async () => (await rows()).length === 2, 'it is answered');
    await gateway.stop();
    await start();
    expect((await say('once', { id })).status).toBe(200);
    await say('twice');
    await eventually(async () => (await rows()).length === 4, 'the other is answered');
    expect((await texts()).filter((text) => text === 'once')).toHaveLength(1);
  });

  it('keeps what was said of a stopped reply', async () => {
    await begin();
    const { script } = halves('Once upon a time there was');
    model.reply(script);
    await say('tell me');
    await eventually(async () => (await last())?.text.startsWith('Once'), 'it began');
    await say('/stop');
    await seen(/^Once upon a \S* …\n\(stopped\)$/);
    expect(await texts()).toContain('/stop');
  });

  it('has the owner’s rights, personas with their own replies, and buttons', async () => {
    await begin();
    const made = await post(`chats/${MAIN}/personas`, { name: 'Luna', character: 'You are **calm**.' });
    expect(made.status).toBe(201);
    expect(await made.json()).toEqual({ id: 'luna', name: 'Luna' });
    expect(await home.read('groups/board_main/luna/PERSONA.md')).toBe(
      '---\nname: Luna\n---\n\nYou are **calm**.\n',
    );
    await seen('Switched to Luna.');
    const again = await post(`chats/${MAIN}/personas`, { name: 'Luna', character: '' });
    expect(again.status).toBe(422);
    expect(await again.json()).toEqual({ error: expect.stringContaining('already') });
    const personas = async () =>
      (await (await fetchWhole(`${url}/api/board/chats/${MAIN}/personas`)).json()) as { active: string };
    expect(await personas()).toEqual({
      active: 'luna',
      personas: [
        { id: 'default', name: 'default', avatar: null, present: false },
        { id: 'luna', name: 'Luna', avatar: null, present: true },
      ],
    });
    await say('hello');
    await eventually(
      async () => (await last()).author.name === 'Luna' && !(await last()).state,
      'Luna answers',
    );
    await say('/persona');
    const asked = await seen(/^Personas: /);
    const [choice] = asked.choices ?? [];
    expect(choice?.label).toBe('default');
    expect((await press(choice?.value ?? '')).status).toBe(200);
    await eventually(async () => (await personas()).active === 'default', 'the button works');
    await eventually(async () => !(await rows()).find(({ key }) => key === asked.key)?.choices, 'no buttons');
    expect((await press(choice?.value ?? '')).status).toBe(200);
    const audit = await home.read('data/audit/audit.log');
    if (audit !== null) expect(audit).toContain('/persona new Luna');
  });

  it('has several chats, each by itself', async () => {
    await begin();
    await say('in the first');
    await say('in another', { chat: 'board_trip' });
    await eventually(async () => (await rows('board_trip')).length === 2, 'it is answered');
    expect(await texts('board_trip')).toContain('in another');
    expect(await texts()).not.toContain('in another');
    const { chats } = (await (await fetchWhole(`${url}/api/board/chats`)).json()) as { chats: object[] };
    expect(chats).toEqual(
      expect.arrayContaining([
        { chat: 'board_main', name: 'main', at: expect.any(Number) },
        { chat: 'board_trip', name: 'trip', at: expect.any(Number) },
      ]),
    );
  });

  it('sends files both ways, and serves them so that nothing in them runs', async () => {
    await begin();
    const png = Buffer.from(PIXEL, 'base64');
    const upload = (name: string, type: string, bytes: Buffer) =>
      fetchWhole(`${url}/api/board/files?${new URLSearchParams({ name, type })}`, {
        ...{ method: 'POST', body: new Uint8Array(bytes) },
        headers: { 'content-type': 'application/octet-stream', 'x-coterie': '1' },
      });
    const evil = '"><script>alert(1)</script>.html';
    const files = await Promise.all(
      [
        await upload('a.png', 'image/png', png),
        await upload(evil, 'text/html', Buffer.from('<script>alert(1)</script>')),
        await upload('big.bin', '', Buffer.alloc(3_000_000, 1)),
      ].map(async (answer) => {
        expect(answer.status).toBe(201);
        return (await answer.json()) as { id: string };
      }),
    );
    const host = new URL(url).host;
    const head = `POST /api/board/files?name=x HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/octet-stream\r\n`;
    const refused = await raw(
      Number(new URL(url).port),
      `${head}X-Coterie: 1\r\nContent-Length: 20000001\r\n\r\n`,
    );
    expect(refused).toMatch(/^HTTP\/1.1 413 /);
    expect((await say('look', { files })).status).toBe(200);
    const shown = await eventually(async () => {
      const row = (await rows()).find(({ text }) => text === 'look');
      return row?.files?.every(({ address }) => address !== null) ? row : null;
    }, 'the files were taken');
    expect(shown.files?.map(({ name }) => name)).toEqual(['a.png', evil, 'big.bin']);
    const [picture, script] = await Promise.all(
      (shown.files ?? []).map(({ address }) => fetchWhole(`${url}/${address}`)),
    );
    expect(Buffer.from((await picture?.arrayBuffer()) ?? new ArrayBuffer())).toEqual(png);
    expect(picture?.headers.get('content-type')).toBe('image/png');
    expect(picture?.headers.get('content-disposition')).toMatch(/^inline/);
    expect(script?.headers.get('content-disposition')).toMatch(/^attachment; filename="[\w.-]+"$/);
    expect(script?.headers.get('content-security-policy')).toMatch(/^sandbox;/);
    expect(script?.headers.get('x-content-type-options')).toBe('nosniff');
    for (const query of ['row=m1&n=9', 'row=m99&n=0', 'row=../../etc/passwd&n=0', 'row=t&n=0']) {
      expect((await fetchWhole(`${url}/api/board/rows/file?room=${MAIN}&${query}`)).status).toBe(404);
    }
  });

  it('says in a file’s name what turns or breaks its line', async () => {
    await begin();
    const name = 'invoice\u202egnp.exe\nline';
    const answer = await fetchWhole(`${url}/api/board/files?${new URLSearchParams({ name })}`, {
      ...{ method: 'POST', body: 'x' },
      headers: { 'content-type': 'application/octet-stream', 'x-coterie': '1' },
    });
    await say('look', { files: [await answer.json()] });
    const row = await seen('look');
    expect(row?.files?.[0]?.name).toBe('invoice\\u{202e}gnp.exe line');
  });

  it('takes only some uploads at once, however slow they are, and others when those are gone', async () => {
    await begin();
    const { port, host } = new URL(url);
    const slow = Array.from({ length: 16 }, () => {
      const socket = connect(Number(port), '127.0.0.1');
      socket.on('error', () => {});
      socket.write(`POST /api/board/files?name=x HTTP/1.1\r\nHost: ${host}\r\nX-Coterie: 1\r\n`);
      socket.write('Content-Type: application/octet-stream\r\nContent-Length: 20000000\r\n\r\nx');
      return socket;
    });
    const upload = () =>
      fetchWhole(`${url}/api/board/files?name=y`, {
        ...{ method: 'POST', body: 'y' },
        headers: { 'content-type': 'application/octet-stream', 'x-coterie': '1' },
      });
    const refused = await eventually(async () => {
      const answer = await upload();
      return answer.status === 429 ? answer : null;
    }, 'one too many');
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await refused.json()).toEqual({ error: expect.stringMatching(/^Too many files/) });
    for (const socket of slow) socket.destroy();
    await eventually(async () => (await upload()).status === 201, 'there is room again');
    expect(gateway.err()).not.toMatch(/"level":"error"/);
  });

  it('refuses what it cannot take, in a sentence', async () => {
    await begin();
    expect((await say('x', { chat: 'board_..' })).status).toBe(400);
    expect((await say('x', { chat: 'telegram_1' })).status).toBe(400);
    expect((await say('x', { id: '../x' })).status).toBe(400);
    expect((await say('  ')).status).toBe(400);
    expect((await post(`chats/${MAIN}/messages`, { id: 'a', text: 7 })).status).toBe(400);
    expect((await fetchWhole(`${url}/api/board/rows?room=x`)).status).toBe(400);
    expect((await fetchWhole(`${url}/api/board/conversations/one?room=board_a%00b`)).status).toBe(400);
    for (const bytes of [-5, 1.5, 1e308, '1']) {
      const file = { id: 'x', name: 'x', type: '', bytes };
      expect((await say('x', { files: [file] })).status).toBe(400);
    }
    expect((await post(`chats/${MAIN}/personas`, { name: ' ', character: '' })).status).toBe(422);
    expect(await page()).toMatchObject({ rows: [] });
    const long = 'x'.repeat(500_000);
    expect((await say(long)).status).toBe(200);
    await seen(/^x{60000}x+\s+<<truncated/);
  });

  it('is not counted among platforms, and tells owners what is news', async () => {
    await begin();
    const ready = await fetchWhole(`${url}/ready`);
    expect(await ready.json()).toEqual({ status: 'ready', channels: {} });
    const commands = (await (await fetchWhole(`${url}/api/board/commands`)).json()) as {
      commands: { name: string }[];
    };
    expect(commands.commands.map(({ name }) => name)).toContain('persona');
    await say('in the first');
    await say('in another', { chat: 'board_trip' });
    await eventually(async () => (await rows('board_trip')).length === 2, 'it is answered');
    await home.write('groups/board_trip/default/PERSONA.md', '---\ntemperature: hot\n---\n');
    await say('and again', { chat: 'board_trip' });
    await seen(/persona.s file says/);
    expect((await texts('board_trip')).join()).not.toMatch(/persona.s file says/);
  });
});

describe('ends of the process', () => {
  it('lose no message that was taken, and answer each once', async () => {
    await begin();
    const taken: string[] = [];
    for (let round = 0; round < 6; round++) {
      const sending = Array.from({ length: 4 }, async (_, n) => {
        const text = `round ${round}, ${n}`;
        const id = randomUUID();
        for (let tries = 0; tries < 200; tries++) {
          const answer = await say(text, { id }).catch(() => null);
          if (answer?.status === 200) {
            taken.push(text);
            return;
          }
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        throw new Error(`${text} was never taken`);
      });
      await new Promise((resolve) => setTimeout(resolve, [0, 3, 10, 30, 100, 300][round]));
      await gateway.stop('SIGKILL');
      await start();
      await Promise.all(sending);
    }
    expect(taken).toHaveLength(24);
    await eventually(
      async () =>
        (await rows()).every(({ state, author }) => state === undefined && author.kind !== 'gateway'),
      'everything is answered',
    );
    const own = (await rows()).filter(({ author }) => author.kind === 'person').map(({ text }) => text);
    expect(own.sort()).toEqual(taken.sort());
    const replies = (await rows()).filter(({ author }) => author.kind === 'persona');
    const keys = (await rows()).map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
    expect(replies.every(({ state, text }) => state === undefined && text !== '')).toBe(true);
    const turns = new Set(
      (await rows()).filter(({ author }) => author.kind === 'person').map(({ turn }) => turn),
    );
    expect(replies.map(({ turn }) => turn).sort()).toEqual([...turns].sort());
  });
});
