/** `npm run simulate`, as it is compiled: a script on each platform, what is seen of it, and how it ends. */
import { spawn } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { actOf } from '../../simulate/lines.js';

const MAIN = fileURLToPath(new URL('../../dist-simulate/simulate/main.js', import.meta.url));
const FIRST_DAYS = fileURLToPath(new URL('../../simulate/scripts/first-days.txt', import.meta.url));
const VOICE = fileURLToPath(new URL('../../simulate/scripts/voice.txt', import.meta.url));
const COMPANY = fileURLToPath(new URL('../../simulate/scripts/company.txt', import.meta.url));
const WHAT_PEOPLE_SEND = fileURLToPath(
  new URL('../../simulate/scripts/what-people-send.txt', import.meta.url),
);

/** A script on each platform, as part of the long tests; else what differs by platform is shown on one. */
const EVERYWHERE = process.env.COTERIE_LONG
  ? { platform: 'all', count: 3 }
  : { platform: 'telegram', count: 1 };

/** The stand-in writes at once, and what is not there soon is not waited for. */
const HASTE = ['--pace', '0', '--silence', '0.3'];

interface Ending {
  code: number | null;
  out: string;
  err: string;
}

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-simulate-'));
});
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));

/** Its homes are made in a folder of this test. */
function simulate(args: string[], input = ''): Promise<Ending> {
  const child = spawn(process.execPath, [MAIN, ...args], { env: { ...process.env, TMPDIR: folder } });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  return new Promise((resolve) => {
    child.on('close', (code) => resolve({ code, out, err }));
  });
}

async function scriptOf(lines: string[]): Promise<string> {
  const file = join(folder, 'script.txt');
  await writeFile(file, lines.join('\n'));
  return file;
}

const SAID = { kind: 'say', mention: false, replyTo: null, photos: [], forwardedFrom: null };

describe('a line', () => {
  it.each([
    ['', { kind: 'nothing' }],
    ['# a comment', { kind: 'nothing' }],
    ['hello', { ...SAID, text: 'hello' }],
    [':say :kill', { ...SAID, text: ':kill' }],
    [':mention hi', { ...SAID, text: 'hi', mention: true }],
    [':reply 3 so be it', { ...SAID, text: 'so be it', replyTo: 3 }],
    [':reply @Luna no', { ...SAID, text: 'no', replyTo: { by: 'Luna' } }],
    [':photo a.png look', { ...SAID, text: 'look', photos: ['a.png'] }],
    [':album a.png b.JPG our trip.png', { ...SAID, text: 'our trip.png', photos: ['a.png', 'b.JPG'] }],
    [':album a.png b.jpg', { ...SAID, text: '', photos: ['a.png', 'b.jpg'] }],
    [
      ':reply 3 :mention :photo a.png so?',
      { ...SAID, text: 'so?', mention: true, replyTo: 3, photos: ['a.png'] },
    ],
    [':reply 3 :say :kill', { ...SAID, text: ':kill', replyTo: 3 }],
    [':forward Cara the tram is late', { ...SAID, text: 'the tram is late', forwardedFrom: 'Cara' }],
    ['/persona new Luna', { kind: 'command', text: '/persona new Luna' }],
    [':delete last', { kind: 'delete', which: 'last' }],
    [':react @Luna 👍', { kind: 'react', which: { by: 'Luna' }, sign: '👍' }],
    [':press 2', { kind: 'press', number: 2 }],
    [':group 2', { kind: 'go', group: 2 }],
    [':direct', { kind: 'go', group: null }],
    [':expect @Luna a kite', { kind: 'expect', sought: { by: 'Luna', words: 'a kite' } }],
    [':never /b.d/', { kind: 'never', sought: { by: null, words: /b.d/iu } }],
  ])('%s', (line, act) => expect(actOf(line)).toEqual(act));

  it.each([
    ':platform signal',
    ':group one',
    ':expect',
    ':expect /(/',
    ':reply 3',
    ':react 3',
    ':delete',
    ':album a.png our trip',
    ':forward Cara',
    ':reply 3 :photo',
    ':nonsense',
  ])('that is wrong says why: %s', (line) => expect(actOf(line)).toMatchObject({ kind: 'wrong' }));
});

describe('a script', () => {
  it('is replayed on every platform, with a kill in it, and leaves nothing behind', async () => {
    const { code, out, err } = await simulate(['--platform', 'all', ...HASTE, '--script', FIRST_DAYS]);
    expect(err).toBe('');
    expect(code).toBe(0);
    for (const name of ['telegram', 'discord', 'whatsapp']) {
      const [, ...rounds] = out.split(`── ${name}, direct, as Anna`);
      expect(rounds.length, name).toBe(1);
      const round = rounds[0]?.split(/── \w+, direct/)[0];
      expect(round).toContain('[1] Anna: hello\n');
      expect(round).toMatch(/\[2\] Coterie: Anna, you said “hello”/);
      expect(round).toContain('kill -9');
    }
    expect(await homes()).toEqual([]);
  });

  it('shows voice notes of ours, and our signs on messages', async () => {
    // A sign is waited for as long as something new may come: longer than messages are collected.
    const pace = ['--pace', '0', '--silence', '1.5'];
    const { code, out, err } = await simulate([
      '--platform',
      EVERYWHERE.platform,
      ...pace,
      '--script',
      VOICE,
    ]);
    expect(err).toBe('');
    expect(code).toBe(0);
    expect(out.match(/^ {4}\[voice note, \d+ s\]$/gm)).toHaveLength(EVERYWHERE.count);
    expect(out.match(/^\[1\] has 🎉 from Coterie$/gm)).toHaveLength(EVERYWHERE.count);
  });

  it('that goes another way ends with 1 and says where', async () => {
    const script = await scriptOf(['hello', '', ':expect good night']);
    const { code, err } = await simulate([
      '--platform',
      'telegram',
      '--pace',
      '0',
      '--patience',
      '2',
      '--script',
      script,
    ]);
    expect(code).toBe(1);
    expect(err).toContain('line 3, :expect good night');
    expect(await homes()).toEqual([]);
  });

  it('shows pictures, albums, questions about a picture, and what is passed on', async () => {
    const { code, out, err } = await simulate([
      ...['--platform', EVERYWHERE.platform],
      ...HASTE,
      ...['--script', WHAT_PEOPLE_SEND],
    ]);
    expect(err).toBe('');
    expect(code).toBe(0);
    expect(
      out.match(/^\[3\] Anna: without her, and with her\n {4}\[file: simulate\/pictures\/quay.png\]$/gm),
    ).toHaveLength(EVERYWHERE.count);
    expect(out.match(/^\[3\] Coterie to \[2\]: Anna, you said “what do you see\?[^\n]*image/gm)).toHaveLength(
      EVERYWHERE.count,
    );
    expect(out.match(/^\[4\] Anna: \(from Cara\) @Coterie the boat leaves at nine$/gm)).toHaveLength(
      EVERYWHERE.count,
    );
    expect(out.match(/^\[\d+\] Anna: \(from Cara\) \/reset$/gm)).toHaveLength(EVERYWHERE.count);
  });

  it('shows each persona of a company under its name', async () => {
    const { code, out, err } = await simulate(['--platform', 'discord', ...HASTE, '--script', COMPANY]);
    expect(err).toBe('');
    expect(code).toBe(0);
    expect(out).toMatch(
      /^\[12\] Luna to \[11\]: Anna, you said “Luna and Max, where shall we go on Sunday\?”/m,
    );
    expect(out).toMatch(/^\[13\] Max to \[11\]: Anna, you said .*Luna is for/m);
  });
});

it('piped lines are followed, edits and deletions are seen, and the home is kept if that is wished', async () => {
  const lines = [
    ...[':group 3', ':as Ben', ':mention good mornin', ':edit 1 good morning', ':delete @Coterie'],
    ...[':delete 1', ':quit', 'never said'],
  ];
  const { code, out } = await simulate(['--platform', 'discord', '--pace', '0', '--keep'], lines.join('\n'));
  expect(code).toBe(0);
  expect(out).toContain('── discord, group 3, as Ben\n[1] Ben: @Coterie good mornin\n');
  expect(out).toContain('[2] Coterie to [1]: Ben, you said “good mornin”.');
  expect(out).toContain('[2] was taken back');
  expect(out).toContain('[1] was taken back');
  expect(out).not.toContain('never said');
  const [home = ''] = await homes();
  expect(out).toContain(`its files are in ${join(folder, home)}`);
  expect(await readdir(join(folder, home, 'groups'))).toContain('AGENTS.md');
});

async function homes(): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name.startsWith('coterie-e2e-'));
}
