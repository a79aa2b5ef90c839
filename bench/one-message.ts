/**
 * Part of `npm run bench`: the files and lines of `src/` that run for one plain "hi" on Telegram, by V8's coverage of
 * the compiled modules before bundling: the calls of a long talk minus those of a short one, so that the start is not
 * counted. Exits with 1 if a message was lost, answered twice or out of order.
 */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gateway } from './bots.js';
import { layOutGroups } from './fill.js';
import { readOptions } from './options.js';
import { createProcesses } from './processes.js';

const options = readOptions();
const SHORT = 5;
const LONG = 25;
const FILES_AIM = 65;
const LINES_AIM = 8_500;
/** By then recall has indexed the messages. */
const REST_MS = 2_000;
const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

interface Coverage {
  result: {
    url: string;
    functions: { functionName: string; ranges: { startOffset: number; count: number }[] }[];
  }[];
}

const processes = createProcesses();
const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-one-message-'));
/** A copy of the checkout with the compiled modules in place of the bundle. */
const app = join(folder, 'app');
const MODULES = '/app/dist/';
let faults = 0;

/** Calls per function (`file:offset`) of a gateway that answers this many messages, from start to end. */
async function callsOf(messages: number): Promise<Map<string, number>> {
  const home = join(folder, String(messages));
  const coverageFolder = join(home, 'coverage');
  await mkdir(coverageFolder, { recursive: true });
  await layOutGroups(home);
  const main = join(app, 'dist/main.js');
  const { servers, start } = await gateway(processes, { ...options, main }, home, { coverageFolder });
  const bot = start();
  const { lost, doubled, outOfOrder } = await servers.oneByOne({ people: [1], each: messages });
  faults += lost + doubled + outOfOrder;
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  await bot.stop('SIGTERM');
  const calls = new Map<string, number>();
  for (const name of await readdir(coverageFolder)) {
    const { result } = JSON.parse(await readFile(join(coverageFolder, name), 'utf8')) as Coverage;
    for (const { url, functions } of result) {
      const file = url.split(MODULES)[1]?.replace(/\.js$/, '.ts');
      if (file === undefined) continue;
      for (const { ranges } of functions) {
        const key = `${file}:${ranges[0]?.startOffset}`;
        calls.set(key, (calls.get(key) ?? 0) + (ranges[0]?.count ?? 0));
      }
    }
  }
  return calls;
}

/** Includes the files that modules look for beside themselves. */
async function layOutApp(): Promise<void> {
  const checkout = dirname(dirname(options.main));
  await cp(join(checkout, 'dist/modules'), join(app, 'dist'), { recursive: true });
  for (const name of ['package.json', 'migrations', 'node_modules'])
    await symlink(join(checkout, name), join(app, name));
}

try {
  await layOutApp();
  const short = await callsOf(SHORT);
  const long = await callsOf(LONG);
  const perMessage = new Map<string, number>();
  for (const [key, calls] of long) {
    const more = (calls - (short.get(key) ?? 0)) / (LONG - SHORT);
    const file = key.slice(0, key.lastIndexOf(':'));
    // Less than one call in two messages comes from a timer.
    if (more >= 0.5) perMessage.set(file, (perMessage.get(file) ?? 0) + more);
  }
  const files = await Promise.all(
    [...perMessage].map(async ([file, calls]) => {
      const lines = (await readFile(join(SRC, file), 'utf8')).trimEnd().split('\n').length;
      return { file, lines, calls: Math.round(calls) };
    }),
  );
  const lines = files.reduce((sum, file) => sum + file.lines, 0);
  const calls = files.reduce((sum, file) => sum + file.calls, 0);
  for (const { file, lines, calls } of files.sort((a, b) => a.file.localeCompare(b.file)))
    console.log(`${String(lines).padStart(6)} lines ${String(calls).padStart(6)} calls  ${file}`);
  console.log(
    `\nOne "hi": ${files.length} files (aim: ${FILES_AIM}), ${lines} lines (aim: ${LINES_AIM}), ${calls} calls\n`,
  );
} finally {
  await processes.endAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
if (faults > 0) console.error('messages were lost, answered twice or out of order');
process.exit(faults > 0 ? 1 : 0);
