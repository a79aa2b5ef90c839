/** The log: lines that a program or a person can read, without secrets, complete when the process ends. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { GrammyError, HttpError } from 'grammy';
import { describe, expect, it } from 'vitest';
import { createLog, type LogOptions } from '../../src/operating/log.js';

const TOKEN = '123456789:AAF-abcdefghijklmnopqrstuvwxyz_0123';

function capture(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  const log = createLog({
    level: 'info',
    format: 'json',
    secrets: ['hunter2-secret'],
    destination,
    ...options,
  });
  return { log, lines, first: () => JSON.parse(lines[0] ?? '') };
}

describe('the log', () => {
  it('writes one JSON object a line, with level, time and message', () => {
    const { log, lines, first } = capture();
    log.info({ chat: 'telegram_1' }, 'a message came in');
    log.warn({}, 'careful');
    expect(lines).toHaveLength(2);
    expect(first()).toMatchObject({ level: 'info', chat: 'telegram_1', msg: 'a message came in' });
    expect(Date.parse(first().time)).toBeGreaterThan(0);
    expect(lines[0]?.endsWith('}\n')).toBe(true);
  });

  it('keeps quiet below its level', () => {
    const { log, lines } = capture({ level: 'warn' });
    log.debug({}, 'no');
    log.info({}, 'no');
    log.error({}, 'yes');
    expect(lines).toHaveLength(1);
  });

  it('cuts secrets out of messages, fields and stacks, as JSON and for people', () => {
    for (const format of ['json', 'pretty'] as const) {
      const { log, lines } = capture({ format });
      log.info(
        { url: `https://api.telegram.org/bot${TOKEN}/getMe`, deep: { key: 'hunter2-secret' } },
        'hunter2-secret',
      );
      log.error({ err: new Error(`refused: ${TOKEN}`) }, 'x');
      const all = lines.join('');
      expect(all).toContain('[redacted]');
      expect(all).not.toContain('hunter2-secret');
      expect(all).not.toContain(TOKEN);
    }
  });

  it.each(['json', 'pretty'] as const)(
    'lets nothing that strangers wrote steer a terminal or pose as a line (%s)',
    (format) => {
      const { log, lines } = capture({ format, colours: false });
      const signs =
        '\u001b[2J\u009b31m\u0007\u0085\u2028\u2029\u202e\u2066\u200b\u200f\ufeff\u{e0041}\ud800\r\0\u007f';
      const name = `Ann${signs}\n[12:00:00] INFO: an owner was added`;
      const error = new Error(`refused: ${name}`, { cause: new Error(name) });
      log.warn({ chat: name, deep: { [name]: [name] }, reason: name }, `somebody wrote: ${name}`);
      log.error({ err: error, why: error }, name);
      const written = lines.join('');
      expect(written.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
      expect(written).not.toMatch(/^\s*\[12:00:00\] INFO/m);
      expect(written).toContain('Ann\\u001b');
      expect(written).toContain('\\u202e');
      if (format === 'json') {
        expect(lines).toHaveLength(2);
        // A program reads what was said.
        expect(JSON.parse(lines[0] ?? '')).toMatchObject({ chat: name, msg: `somebody wrote: ${name}` });
      }
    },
  );

  it('shows names as they are written, with the joiners of emoji and scripts', () => {
    const { log, lines } = capture({ format: 'pretty', colours: false });
    log.info({ chat: '👩\u200d🚀 ❤\ufe0f می\u200cرود 葛\u{e0100}城' }, 'x');
    expect(lines.join('')).toContain('"👩\u200d🚀 ❤\ufe0f می\u200cرود 葛\u{e0100}城"');
  });

  it('shows stacks to people line by line', () => {
    const { log, lines } = capture({ format: 'pretty', colours: false });
    log.error({ err: new Error('lost') }, 'x');
    expect(lines.join('')).toMatch(/Error: lost\n? +at .*\n +at /);
  });

  it('tells an error with its causes, and the inner error of grammY without its token', () => {
    const { log, lines, first } = capture();
    const inner = new Error(`request to https://api.telegram.org/bot${TOKEN}/getMe failed`, {
      cause: Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
    });
    log.error({ err: new HttpError("Network request for 'getMe' failed!", inner) }, 'polling stopped');
    expect(first().err).toMatchObject({
      type: 'HttpError',
      message: "Network request for 'getMe' failed!",
      error: {
        message: 'request to https://api.telegram.org/bot[redacted]/getMe failed',
        cause: { message: 'connect ECONNREFUSED', code: 'ECONNREFUSED' },
      },
    });
    expect(lines[0]).not.toContain(TOKEN);
  });

  it('takes errors under any name, and no payloads that libraries hang on them', () => {
    const { log, lines, first } = capture();
    const refused = new GrammyError(
      'Call failed',
      { ok: false, error_code: 400, description: 'Bad Request: chat not found' },
      'sendMessage',
      { text: 'something private' },
    );
    log.warn({ reason: refused, all: new AggregateError([new Error('a'), new Error('b')], 'both') }, 'x');
    expect(first().reason.message).toContain('chat not found');
    expect(first().all.errors).toMatchObject([{ message: 'a' }, { message: 'b' }]);
    expect(lines[0]).not.toContain('something private');
  });

  it('survives errors in a circle, and what is thrown without being an error', () => {
    const { log, first } = capture();
    const a = new Error('a');
    a.cause = new Error('b', { cause: a });
    log.error({ err: a, thrown: 'just text' }, 'x');
    expect(first().err.cause.cause.message).toBe('a');
    expect(first().thrown).toBe('just text');
  });

  it('has colours only when told so', () => {
    const { log, lines } = capture({ format: 'pretty', colours: false });
    log.info({ a: 1 }, 'plain');
    expect(lines.join('')).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: plain \{"a":1\}\n$/);
    const coloured = capture({ format: 'pretty', colours: true });
    coloured.log.info({}, 'plain');
    expect(coloured.lines.join('')).toContain('\u001b[');
  });

  it('goes to standard error and loses nothing when the process ends at once', async () => {
    const module = JSON.stringify(new URL('../../dist/modules/operating/log.js', import.meta.url).href);
    const script = `
      const { createLog } = await import(${module});
      const log = createLog({ level: 'info', format: 'json', secrets: [] });
      for (let i = 0; i < 3000; i++) log.info({ i, fill: 'x'.repeat(100) }, 'line');
      process.exit(3);`;
    const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      maxBuffer: 10 ** 8,
    });
    const { stdout, stderr, code } = await run.then(
      () => ({ stdout: '', stderr: '', code: 0 }),
      (error: { stdout: string; stderr: string; code: number }) => error,
    );
    expect(code).toBe(3);
    expect(stdout).toBe('');
    const lines = stderr.trimEnd().split('\n');
    expect(lines).toHaveLength(3000);
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ i: 2999 });
  });
});
