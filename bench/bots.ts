/** The two bots under measurement, each with servers of its own: the gateway as compiled, and the floor. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Bot, createProcesses, Servers } from './processes.js';

export interface Subject {
  servers: Servers;
  start(): Bot;
}

type Processes = ReturnType<typeof createProcesses>;

const GATEWAY = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const FLOOR = fileURLToPath(new URL('./floor.js', import.meta.url));

export async function floor(processes: Processes, node: string, folder: string): Promise<Subject> {
  const servers = await processes.startServers();
  const { telegram, token, model } = await servers.addresses();
  await mkdir(folder, { recursive: true });
  const environment = { FLOOR_TELEGRAM: telegram, FLOOR_TOKEN: token, FLOOR_MODEL: model };
  return { servers, start: () => processes.startBot({ node, args: [FLOOR], folder, environment }) };
}

/** `unbounded`: answers at once and sends as fast as it can, as the floor does. Else everything is default. */
export async function gateway(
  processes: Processes,
  node: string,
  folder: string,
  manner: 'unbounded' | 'default',
  more: { streaming?: boolean } = {},
): Promise<Subject> {
  const servers = await processes.startServers();
  const { telegram, token, model } = await servers.addresses();
  const unbounded = manner === 'unbounded';
  await mkdir(folder, { recursive: true });
  // JSON is YAML.
  await writeFile(
    join(folder, 'config.yaml'),
    JSON.stringify({
      model: { base_url: model, name: 'scripted' },
      channels: {
        telegram: {
          ...{ token, api_root: telegram, ...more },
          ...(unbounded ? { messages_per_second: 100_000, per_chat_burst: 100_000 } : {}),
        },
      },
      ...(unbounded ? { conversation: { debounce_ms: 0 } } : {}),
      access: { direct: 'open' },
      log: { level: 'warn' },
      board: { port: 0 },
    }),
  );
  return { servers, start: () => processes.startBot({ node, args: [GATEWAY, 'start'], folder }) };
}
