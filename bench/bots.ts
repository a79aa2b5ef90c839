/** The bots under measurement on Telegram, each with servers of its own: the gateway as compiled, and two to compare it with. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Options } from './options.js';
import type { Bot, Processes, Servers } from './processes.js';

export interface Subject {
  servers: Servers;
  start(): Bot;
}

export interface GatewaySettings {
  /** Answers at once and sends as fast as it can, as the other bots do. */
  unbounded?: boolean;
  /** Shows replies while they are written. */
  streaming?: boolean;
  /** How many messages a window holds at most. */
  compactAfter?: number;
  /** Where its statements are counted. */
  countsFile?: string;
  /** Where V8 writes which functions it called, when it ends. */
  coverageFolder?: string;
}

const COUNTER = new URL('./count-statements.js', import.meta.url).href;

export async function smallBot(
  processes: Processes,
  { node }: Options,
  kind: 'floor' | 'limit',
  folder: string,
): Promise<Subject> {
  const servers = await processes.startServers();
  const { telegram, token, model } = await servers.addresses();
  await mkdir(folder, { recursive: true });
  const script = fileURLToPath(new URL(`./${kind}.js`, import.meta.url));
  const environment = { BOT_TELEGRAM: telegram, BOT_TOKEN: token, BOT_MODEL: model };
  return { servers, start: () => processes.startBot({ node, args: [script], folder, environment }) };
}

/** What is not set is default. */
export async function gateway(
  processes: Processes,
  { node, main }: Options,
  folder: string,
  { unbounded, streaming, compactAfter, countsFile, coverageFolder }: GatewaySettings,
): Promise<Subject> {
  const servers = await processes.startServers();
  const { telegram, token, model } = await servers.addresses();
  await mkdir(folder, { recursive: true });
  // JSON is YAML, and leaves out what is undefined.
  await writeFile(
    join(folder, 'config.yaml'),
    JSON.stringify({
      model: { base_url: model, name: 'scripted' },
      channels: {
        telegram: {
          token,
          api_root: telegram,
          streaming,
          messages_per_second: unbounded ? 100_000 : undefined,
          per_chat_burst: unbounded ? 100_000 : undefined,
        },
      },
      conversation: { debounce_ms: unbounded ? 0 : undefined, compact_after_messages: compactAfter },
      access: { direct: 'open' },
      log: { level: 'warn' },
      board: { port: 0 },
    }),
  );
  const args = [...(countsFile ? ['--import', COUNTER] : []), main, 'start'];
  const environment: Record<string, string> = {};
  if (countsFile) environment.COUNTS_FILE = countsFile;
  if (coverageFolder) environment.NODE_V8_COVERAGE = coverageFolder;
  return { servers, start: () => processes.startBot({ node, args, folder, environment }) };
}
