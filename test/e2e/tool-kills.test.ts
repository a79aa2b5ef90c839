import { afterEach, expect, it } from 'vitest';
import { eventually } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

let on: Stage;
afterEach(() => on.close());

/**
 * The model asks for one line in the daily log; the process is killed a little later each time: before the call
 * is stored, before it runs, while it runs, before its result is stored, afterwards.
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
  const tokens = Array.from({ length: 10 }, (_, n) => `token${n}`);
  for (const [n, token] of tokens.entries()) {
    const gateway = on.launch();
    const reached = new Promise<void>((resolve) => {
      // Turns that an earlier end cut off ask again, too; they are not this one's.
      answered = (asked) => asked === token && resolve();
    });
    on.telegram.say({ from: { id: 700 + n, first_name: 'P' }, text: `write ${token}` });
    await reached;
    await new Promise((resolve) => setTimeout(resolve, n * 1.5));
    await gateway.stop('SIGKILL');
  }
  await on.start();
  // What was saved is told below the reply.
  const replyTo = (token: string) =>
    on.telegram.sent.find(({ text }) => text?.split('\n')[0] === `done ${token}`);
  await eventually(() => tokens.every((token) => replyTo(token) !== undefined), 'every turn ends');
  let unknown = 0;
  for (const [n, token] of tokens.entries()) {
    const day = new Date().toLocaleDateString('sv-SE', { timeZone: 'Europe/Berlin' });
    const log = (await on.home.read(`groups/telegram_${700 + n}/memory/${day}.md`)) ?? '';
    const lines = log.split('\n').filter((line) => line.includes(`line of ${token}`)).length;
    const interrupted = told.get(token)?.startsWith('Interrupted') ?? false;
    expect(lines, `${token} stands once, or its outcome is said to be unknown`).toBeLessThanOrEqual(1);
    if (interrupted) unknown++;
    else expect(lines).toBe(1);
    const note = lines === 1 ? `\n\n— remembered: line of ${token}` : '';
    expect(replyTo(token)?.text, 'the note is there where the line is').toBe(`done ${token}${note}`);
  }
  process.stdout.write(`tool kills: ${tokens.length}, outcome unknown: ${unknown}\n`);
}, 90_000);
