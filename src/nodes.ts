/** `coterie nodes`: the gateways on this store. */
import { join } from 'node:path';
import { commandConfig, commandLog, say } from './command.js';
import { systemClock } from './core/clock.js';
import { Fault } from './core/errors.js';
import type { Log } from './core/log.js';
import type { LivingNode } from './core/node.js';
import { takeLock } from './operating/lock.js';
import { storeOf } from './paths.js';
import { openNodes, type StorePlace } from './store/open.js';

export async function listNodes(configFile: string | undefined): Promise<void> {
  const { config } = await commandConfig(configFile);
  if (config.store.url === null) {
    const lock = await takeLock(join(config.dataDir, 'gateway.lock'));
    lock?.release();
    return say(`SQLite serves one gateway, and ${lock ? 'none' : 'one'} runs on ${config.dataDir}.`);
  }
  const nodes = await openNodes(storeOf(config), { clock: systemClock, log: commandLog(config) });
  try {
    const living = await nodes.living();
    say(living.length === 0 ? 'No gateway lives on this store.' : living.map(lineOf).join('\n'));
  } finally {
    await nodes.close();
  }
}

/** Before what would pull the store from under a gateway. Throws Fault `already_running` if one lives on it, on any machine. */
export async function refuseLiving(at: StorePlace, log: Log, purpose: string): Promise<void> {
  if (at.url === null) return;
  const nodes = await openNodes(at, { clock: systemClock, log });
  const [first] = await nodes.living().finally(() => nodes.close());
  if (first === undefined) return;
  const what = `A coterie named ${first.name} lives on the store; stop it before you ${purpose}, or wait until its lease runs out.`;
  throw new Fault('already_running', what);
}

/** Name, version, since, last sign of life, leases. */
function lineOf({ name, version, since, seenAt, holds }: LivingNode): string {
  const [began, seen] = [since, seenAt].map((at) => new Date(at).toISOString());
  return `${name}  ${version}  since ${began}  seen ${seen}  ${holds.length === 0 ? 'stands by' : holds.join(' ')}`;
}
