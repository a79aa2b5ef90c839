/**
 * `npm run bench:channels`: the gateway on fake Discord and WhatsApp servers on this machine, compared with the
 * smallest possible bot for each, and its memory after a thousand chats. Exits with 1 if the gateway lost, doubled or
 * reordered a message. `--quick` takes a minute.
 */
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Row } from './figures.js';
import { machine } from './machine.js';
import { begin, figures, type Measurable, measure, type Running, type Sizes } from './measure.js';
import { readOptions } from './options.js';
import { createProcesses, type PlatformServers } from './processes.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('channels');
const { quick, node, main: gatewayScript } = readOptions();
const AIM = 1.5;
const TOGETHER = 50;
const CHATS = quick ? 200 : 1_000;
const peopleFrom = (first: number, count: number) => Array.from({ length: count }, (_, n) => first + n);
const sizes: Sizes = {
  starts: 0,
  blocks: quick ? 1 : 3,
  each: quick ? 2 : 4,
  burstEach: quick ? 2 : 4,
  groups: [1, 2, 3].map((n) => peopleFrom(n * 1_000, TOGETHER)),
};

interface Subject extends Measurable {
  servers: PlatformServers;
}

const processes = createProcesses();
const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-'));
let faulty = false;

/** Plain JavaScript loaded by the bots; tsc does not copy it. */
const MEDIA_SCRIPT = 'test/harness/whatsapp-media.mjs';

async function main(): Promise<void> {
  await copyFile(
    new URL(`../../${MEDIA_SCRIPT}`, import.meta.url),
    new URL(`../${MEDIA_SCRIPT}`, import.meta.url),
  );
  console.log(`${machine(node, folder)}\n`);
  for (const name of ['discord', 'whatsapp']) await beside(name);
}

async function beside(name: string): Promise<void> {
  const us = await beginConnected(await gateway(name));
  const them = await beginConnected(await floor(name));
  await measure([us, them], sizes);
  const memory = await Promise.all([us, them].map(memoryWithMany));
  const rows: Row[] = [
    ...rowsOf([us, them]),
    { what: `memory with ${CHATS.toLocaleString('en')} chats`, values: memory, unit: 'MB' },
  ];
  console.log(`${name}: answering at once, sending without a budget, in short conversations\n`);
  console.log(`${table(['coterie', 'floor'], rows, AIM)}\n`);
  for (const [who, { faults }] of [
    ['coterie', us],
    ['floor', them],
  ] as const) {
    const { messages, lost, doubled, outOfOrder } = faults;
    console.log(
      `${who}: ${messages} messages; ${lost} lost, ${doubled} answered twice, ${outOfOrder} chats out of order`,
    );
  }
  console.log('');
  const { lost, doubled, outOfOrder } = us.faults;
  faulty ||= lost + doubled + outOfOrder > 0;
  await Promise.all([us.bot.stop('SIGTERM'), them.bot.stop()]);
  await Promise.all([us.servers.close(), them.servers.close()]);
}

/** Resolves when it runs and has answered its first message. */
function beginConnected(subject: Subject): Promise<Subject & Running> {
  return begin({
    ...subject,
    servers: {
      ...callsOf(subject.servers),
      // Not every platform keeps messages for a bot that is not connected yet.
      async oneByOne(ask) {
        await subject.servers.connected();
        return subject.servers.oneByOne(ask);
      },
    },
  });
}

/** A proxy has no own keys that a spread would copy. */
function callsOf(servers: PlatformServers): PlatformServers {
  const { addresses, logged, connected, oneByOne, conversations, burst, close } = servers;
  return { addresses, logged, connected, oneByOne, conversations, burst, close };
}

async function gateway(name: string): Promise<Subject> {
  const servers = await processes.startPlatform(name);
  const { config, environment, model } = await servers.addresses();
  const home = join(folder, name);
  await mkdir(home, { recursive: true });
  // JSON is YAML.
  await writeFile(
    join(home, 'config.yaml'),
    JSON.stringify({
      model: { base_url: model, name: 'scripted' },
      conversation: { debounce_ms: 0 },
      channels: { [name]: { ...config, messages_per_second: 100_000, per_chat_burst: 100_000 } },
      access: { direct: 'open' },
      // WhatsApp is linked by a line in the log.
      log: { level: 'info' },
      board: { port: 0 },
    }),
  );
  const start = () =>
    processes.startBot({
      node,
      args: [gatewayScript, 'start'],
      folder: home,
      environment,
      onLog: logTo(servers),
    });
  return { servers, start };
}

async function floor(name: string): Promise<Subject> {
  const servers = await processes.startPlatform(name);
  const { config, environment, model } = await servers.addresses();
  const script = fileURLToPath(new URL(`./floor-${name}.js`, import.meta.url));
  const forBot = {
    ...environment,
    BOT_API: String(config.api_root),
    BOT_TOKEN: String(config.token),
    BOT_SOCKET: String(config.web_socket_url),
    BOT_MODEL: model,
  };
  const start = () =>
    processes.startBot({ node, args: [script], folder, environment: forBot, onLog: logTo(servers) });
  return { servers, start };
}

function logTo(servers: PlatformServers): (text: string) => void {
  return (text) => {
    if (text.includes('whatsapp qr: ')) void servers.logged(text);
    else if (!/"level":"(trace|debug|info)"/.test(text)) console.error(text.trimEnd());
  };
}

async function memoryWithMany({ servers, bot }: Subject & Running): Promise<number | null> {
  for (let done = 0; done < CHATS; done += TOGETHER) {
    await servers.conversations({ people: peopleFrom(100_000 + done, TOGETHER), each: 1 });
  }
  return bot.memory()?.now ?? null;
}

function rowsOf(runs: Running[]): Row[] {
  const found = runs.map(figures);
  const row = (what: string, unit: Row['unit'], key: keyof ReturnType<typeof figures>): Row => ({
    what,
    unit,
    values: found.map((each) => each[key]),
  });
  return [
    row('message to model request, median', 'ms', 'toModel'),
    row('model answer to the platform, median', 'ms', 'toPlatform'),
    row(`messages a second, ${TOGETHER} chats talking`, '/s', 'perSecond'),
    row('messages a second, all at once', '/s', 'burstPerSecond'),
    row('processor time per message', 'ms', 'cpuMs'),
    row('processor time per message, one by one', 'ms', 'aloneCpuMs'),
    row('memory, idle', 'MB', 'idleMb'),
  ];
}

try {
  await main();
} catch (error) {
  console.error(error);
  faulty = true;
}
await processes.endAll();
await rm(folder, { recursive: true, force: true, maxRetries: 5 });
process.exit(faulty ? 1 : 0);
