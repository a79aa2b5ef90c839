/** The measured bots on Telegram, each with its own servers: the compiled gateway, and two bots to compare it with. */
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Options } from './options.js';
import type { Bot, Processes, Servers } from './processes.js';

export interface Subject {
  servers: Servers;
  start(): Bot;
}

export interface GatewaySettings {
  /** No debouncing and no rate limits, like the other bots. */
  unbounded?: boolean;
  streaming?: boolean;
  /** Maximum number of messages in a window. */
  compactAfter?: number;
  /** Statements are counted in this file. */
  countsFile?: string;
  /** V8 writes its coverage here at exit. */
  coverageFolder?: string;
  /** Of the page. Default: any. */
  boardPort?: number;
  /** For Node, before the script. */
  nodeArgs?: string[];
  onLog?: (text: string) => void;
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

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Unset options have the gateway's defaults. */
export async function gateway(
  processes: Processes,
  { node, main }: Options,
  folder: string,
  {
    unbounded,
    streaming,
    compactAfter,
    countsFile,
    coverageFolder,
    boardPort = 0,
    nodeArgs = [],
    onLog,
  }: GatewaySettings,
): Promise<Subject> {
  const servers = await processes.startServers();
  const { telegram, token, model } = await servers.addresses();
  await mkdir(folder, { recursive: true });
  // JSON is YAML, and omits undefined values.
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
      board: { port: boardPort },
    }),
  );
  const args = [...nodeArgs, ...(countsFile ? ['--import', COUNTER] : []), main, 'start'];
  const environment: Record<string, string> = {};
  if (countsFile) environment.COUNTS_FILE = countsFile;
  if (coverageFolder) environment.NODE_V8_COVERAGE = coverageFolder;
  return {
    servers,
    start: () => processes.startBot({ node, args, folder, environment, ...(onLog && { onLog }) }),
  };
}
