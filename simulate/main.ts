/**
 * `npm run simulate`: the real gateway between fake platforms, to be talked to in a terminal without any account.
 * With a script it replays a conversation and ends with 0 or 1. docs/simulator.md says how.
 */
import { copyFile, readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { castOf } from './cast.js';
import { PLATFORMS, type PlatformName } from './platforms.js';
import { openScreen, type Screen } from './screen.js';
import { Failed, openSession, type Session } from './session.js';
import { HELP } from './words.js';
import { makeWorld, type World } from './world.js';

interface Options {
  platform: PlatformName | 'all';
  script?: string;
  model?: string[];
  groups?: string;
  personaBots: string[];
  pace: number;
  patience: number;
  silence: number;
  natural: boolean;
  keep: boolean;
}

const ALL = Object.keys(PLATFORMS) as PlatformName[];

/** Is loaded into the gateway's process as it is, so no compiler has put it beside the fakes. */
const AS_IT_IS = 'test/harness/whatsapp-media.mjs';

const options = new Command('simulate')
  .description('Talk with the gateway on fake platforms, or replay a conversation.')
  .addOption(new Option('--platform <name>', 'where people talk').choices([...ALL, 'all']).default('all'))
  .option('--script <file>', 'replay this conversation and end with 0, or 1 where it goes another way')
  .option(
    '--model <url-and-name...>',
    'a real model: an OpenAI-compatible address and a name (key: MODEL_API_KEY)',
  )
  .option('--groups <dir>', 'work in this folder of groups')
  .option('--persona-bots <names...>', 'personas that have a bot of their own on Telegram', [])
  .option('--pace <characters>', 'how fast the stand-in writes, a second; 0 is at once', number, 60)
  .option('--patience <seconds>', 'how long to wait for what is expected', number, 30)
  .option('--silence <seconds>', 'after how much of it nothing more is waited for', number, 2)
  .option('--natural', 'let an arbiter pick who answers (personas.natural)', false)
  .option('--keep', 'leave the home there at the end', false)
  .parse()
  .opts<Options>();

const waiting = { patienceMs: options.patience * 1_000, silenceMs: options.silence * 1_000 };

function number(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new InvalidArgumentError('A number is expected.');
  return value;
}

function serverOf(given: string[] | undefined): { url: string; name: string } | null {
  if (given === undefined) return null;
  const [url, name] = given;
  if (url === undefined || name === undefined || given.length > 2)
    throw new Failed('usage: --model URL NAME');
  return { url, name };
}

/** Every line of a script, on one platform after the other unless it chooses them itself. */
async function replay(text: string, world: World, screen: Screen): Promise<void> {
  const lines = text.split('\n');
  const choosesItself = lines.some((line) => line.startsWith(':platform'));
  const rounds = choosesItself ? world.platforms.slice(0, 1) : world.platforms;
  for (const platform of rounds) {
    const session = openSession(world, screen, { ...waiting, platform });
    try {
      await follow(session, lines);
    } finally {
      session.close();
    }
  }
}

async function follow(session: Session, lines: string[]): Promise<void> {
  for (const [index, line] of lines.entries()) {
    try {
      if (!(await session.perform(line))) return;
    } catch (error) {
      if (error instanceof Failed) throw new Failed(`line ${index + 1}, ${line.trim()}\n${error.message}`);
      throw error;
    }
  }
  await session.rest();
}

/** At a terminal what cannot be done is said and forgotten; piped lines wait for what comes of each. */
async function converse(world: World, screen: Screen): Promise<void> {
  const session = openSession(world, screen, waiting);
  if (process.stdin.isTTY) screen.print({ text: HELP, key: null });
  try {
    for await (const line of screen.lines) {
      const goesOn = await session.perform(line).catch((error: unknown) => {
        if (!(error instanceof Failed) || !process.stdin.isTTY) throw error;
        screen.print({ text: `   ${error.message}`, key: null });
        return true;
      });
      if (!goesOn) return;
      if (!process.stdin.isTTY) await session.rest();
    }
  } finally {
    session.close();
  }
}

function scriptIn(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw new Failed(`the script cannot be read: ${error instanceof Error ? error.message : file}`);
  });
}

async function main(): Promise<void> {
  await copyFile(new URL(`../../${AS_IT_IS}`, import.meta.url), new URL(`../${AS_IT_IS}`, import.meta.url));
  const script = options.script === undefined ? null : await scriptIn(options.script);
  const screen = openScreen(process.stdin, process.stdout);
  const world = await makeWorld({
    platforms: options.platform === 'all' ? ALL : [options.platform],
    groupsDir: options.groups === undefined ? null : resolve(options.groups),
    personaBots: options.personaBots,
    server: serverOf(options.model),
    reply: castOf(options.pace),
    natural: options.natural,
  });
  // Ctrl-C ends what was started, too.
  process.once('SIGINT', () => void world.close(options).then(() => process.exit(130)));
  process.once('SIGTERM', () => void world.close(options).then(() => process.exit(143)));
  try {
    await world.start();
    await (script === null ? converse(world, screen) : replay(script, world, screen));
    if (script !== null) screen.print({ text: '── everything came as expected', key: null });
  } finally {
    screen.close();
    await world.close(options);
    if (options.keep) process.stdout.write(`its files are in ${world.home.folder}\n`);
  }
}

try {
  await main();
  process.exit(0);
} catch (error) {
  console.error(error instanceof Failed ? error.message : error);
  process.exit(1);
}
