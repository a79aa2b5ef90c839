/**
 * Firefox, driven over WebDriver BiDi as it comes from the distribution: Playwright needs a build of its own, and
 * puppeteer-core brings a dozen packages for the seven commands that are needed here.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { eventually } from '../harness/gateway.js';
import { describeWith, programFor } from './board.js';

const FIREFOX = programFor('firefox-esr', 'firefox');
export const describeInFirefox = describeWith(FIREFOX, 'firefox-esr');

const STARTS_WITHIN_MS = 60_000;
const ENTER = '\uE007';

/** An element of the page, found anew before each use. */
export interface Found {
  sharedId: string;
}

export interface Firefox {
  open(url: string): Promise<void>;
  reload(): Promise<void>;
  /** Those of this role, and this name if one is given, in their order. */
  all(role: string, name?: string): Promise<Found[]>;
  /** Resolves with the first, when there is one; with these words in it, if given. */
  find(role: string, name?: string, words?: string): Promise<Found>;
  text(element: Found): Promise<string>;
  click(element: Found): Promise<void>;
  /** Into what has the focus, key by key; a line end is Enter. */
  type(text: string): Promise<void>;
  /** The result of an expression. */
  evaluate(expression: string): Promise<unknown>;
  /** What the page threw or complained of. */
  faults: string[];
  close(): Promise<void>;
}

interface Answer {
  id?: number;
  method?: string;
  params?: { level?: string; text?: string };
  result?: Record<string, unknown>;
  error?: string;
  message?: string;
}

export async function startFirefox(): Promise<Firefox> {
  const profile = await mkdtemp(join(tmpdir(), 'coterie-firefox-'));
  const child = spawn(
    FIREFOX ?? '',
    ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0', 'about:blank'],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const exited = new Promise((resolve) => child.once('close', resolve));
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const address = await eventually(
    () => /listening on (ws:\/\/[\w.:]+)/.exec(said)?.[1],
    'Firefox listens',
    STARTS_WITHIN_MS,
  );
  const { ask, faults, socket } = await connect(`${address}/session`);
  await ask('session.new', { capabilities: {} });
  await ask('session.subscribe', { events: ['log.entryAdded'] });
  const { contexts } = (await ask('browsingContext.getTree', {})) as { contexts: { context: string }[] };
  const context = contexts[0]?.context ?? '';
  const call = (functionDeclaration: string, given: Found[] = []) =>
    ask('script.callFunction', {
      ...{ functionDeclaration, arguments: given, target: { context }, awaitPromise: true },
    }).then((answer) => (answer.result as { value?: unknown } | undefined)?.value);
  const all = (role: string, name?: string) =>
    ask('browsingContext.locateNodes', {
      ...{ context, locator: { type: 'accessibility', value: { role, ...(name && { name }) } } },
    }).then(({ nodes }) => nodes as Found[]);
  const text = async (element: Found) => String(await call('(each) => each.textContent', [element]));

  return {
    all,
    text,
    faults,
    open: (url) => ask('browsingContext.navigate', { context, url, wait: 'complete' }).then(() => {}),
    reload: () => ask('browsingContext.reload', { context, wait: 'complete' }).then(() => {}),
    find: (role, name, words) =>
      eventually(
        async () => {
          for (const each of await all(role, name)) {
            if (words === undefined || (await text(each).catch(() => '')).includes(words)) return each;
          }
          return null;
        },
        `there is a ${role} ${name ?? ''} ${words ?? ''}`,
      ),
    async click(element) {
      await call('(each) => each.scrollIntoView({ block: "nearest" })', [element]);
      const origin = { type: 'element', element: { sharedId: element.sharedId } };
      const press = { type: 'pointerDown', button: 0 };
      const actions = [{ type: 'pointerMove', x: 0, y: 0, origin }, press, { ...press, type: 'pointerUp' }];
      await ask('input.performActions', { context, actions: [{ type: 'pointer', id: 'mouse', actions }] });
    },
    async type(words) {
      const actions = [...words.replaceAll('\n', ENTER)].flatMap((value) => [
        { type: 'keyDown', value },
        { type: 'keyUp', value },
      ]);
      await ask('input.performActions', { context, actions: [{ type: 'key', id: 'keys', actions }] });
    },
    evaluate: (expression) => call(`() => (${expression})`),
    async close() {
      socket.terminate();
      child.kill('SIGTERM');
      await exited;
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function connect(address: string) {
  const socket = new WebSocket(address);
  const waiting = new Map<number, (answer: Answer) => void>();
  const faults: string[] = [];
  let last = 0;
  socket.on('message', (data) => {
    const answer = JSON.parse(String(data)) as Answer;
    if (answer.method === 'log.entryAdded' && answer.params?.level === 'error') {
      faults.push(answer.params.text ?? '');
    }
    if (answer.id === undefined) return;
    waiting.get(answer.id)?.(answer);
    waiting.delete(answer.id);
  });
  await new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  async function ask(method: string, params: object): Promise<Record<string, unknown>> {
    const id = ++last;
    const answered = new Promise<Answer>((resolve) => waiting.set(id, resolve));
    socket.send(JSON.stringify({ id, method, params }));
    const { error, message, result = {} } = await answered;
    if (error !== undefined) throw new Error(`${method}: ${error}: ${message}`);
    return result;
  }
  return { ask, faults, socket };
}
