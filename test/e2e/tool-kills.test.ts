import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { eventually } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

let on: Stage;
afterEach(() => on.close());

/**
 * The model asks for one line in the daily log; the process is killed a little later each time: before the call
 * is stored, before it runs, while it runs, before its result is stored, afterwards. The log takes no line twice, so a
 * second run of the tool would not show: each line that stands there after a kill is counted and taken out again.
 */
it('writes a tool’s line once, or tells the model that the outcome is unknown, wherever it is killed', async () => {
  on = await stage({ config: { log: { level: 'info', format: 'json' } } });
  const told = new Map<string, string>();
  let answered: (token: string) => void = () => {};
  on.model.reply((body) => {
    const last = body.messages.at(-1);
    const token =
      /token\d+/.exec(body.messages.findLast(({ role }) => role === 'user')?.content ?? '')?.[0] ?? '';
    if (last?.role === 'tool') {
      told.set(token, last.content ?? '');
      return `done ${token}`;
    }
    answered(token);
    return {
      calls: [{ name: 'write_memory', arguments: { scope: 'chat_daily', content: `line of ${token}` } }],
    };
  });
  const written = new Map<string, number>();
  const day = new Date().toLocaleDateString('sv-SE', { timeZone: 'Europe/Berlin' });
  /** Removes the token's lines from its chat's log, and returns how many there were. */
  async function takeOut(n: number, token: string): Promise<number> {
    const file = `groups/telegram_${700 + n}/memory/${day}.md`;
    const log = await on.home.read(file);
    if (log === null) return 0;
    const lines = log.split('\n');
    const others = lines.filter((line) => !line.includes(`line of ${token}`));
    await on.home.write(file, others.join('\n'));
    return lines.length - others.length;
  }
  function standsThere(n: number, token: string): Promise<void> {
    const file = join(on.home.folder, `groups/telegram_${700 + n}/memory/${day}.md`);
    return new Promise((resolve) => {
      const look = () => {
        const isThere = existsSync(file) && readFileSync(file, 'utf8').includes(`line of ${token}`);
        if (isThere) resolve();
        else setImmediate(look);
      };
      look();
    });
  }
  const tokens = Array.from({ length: 10 }, (_, n) => `token${n}`);
  for (const [n, token] of tokens.entries()) {
    const gateway = on.launch();
    const reached = new Promise<void>((resolve) => {
      // Turns that an earlier end cut off ask again, too; they are not this one's.
      answered = (asked) => asked === token && resolve();
    });
    on.telegram.say({ from: { id: 700 + n, first_name: 'P' }, text: `write ${token}` });
    await reached;
    // Every second process ends when the line has just been written and its result is not stored yet.
    if (n % 2 === 0) await standsThere(n, token);
    else await new Promise((resolve) => setTimeout(resolve, n * 1.5));
    await gateway.stop('SIGKILL');
    written.set(token, await takeOut(n, token));
  }
  await on.start();
  // What was saved is told below the reply.
  const replyTo = (token: string) =>
    on.telegram.sent.find(({ text }) => text?.split('\n')[0] === `done ${token}`);
  await eventually(() => tokens.every((token) => replyTo(token) !== undefined), 'every turn ends');
  let unknown = 0;
  for (const [n, token] of tokens.entries()) {
    const left = await takeOut(n, token);
    const lines = (written.get(token) ?? 0) + left;
    const interrupted = told.get(token)?.startsWith('Interrupted') ?? false;
    expect(lines, `${token} stands once, or its outcome is said to be unknown`).toBeLessThanOrEqual(1);
    if (interrupted) unknown++;
    else expect(lines).toBe(1);
    const note = `\n\n— remembered: line of ${token}`;
    // A line that was taken out may have been there when its reply was written.
    if (left === 1) expect(replyTo(token)?.text).toBe(`done ${token}${note}`);
    if (lines === 0) expect(replyTo(token)?.text).toBe(`done ${token}`);
  }
  process.stdout.write(`tool kills: ${tokens.length}, outcome unknown: ${unknown}\n`);
}, 90_000);
