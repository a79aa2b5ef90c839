/** `coterie backup` and `coterie restore`: database and groups in one file. */
import { join } from 'node:path';
import { openStore } from './compose.js';
import { processConfig, secretsOf } from './config.js';
import { Fault } from './core/errors.js';
import { backup } from './operating/backup.js';
import { takeLock } from './operating/lock.js';
import { createLog } from './operating/log.js';
import { restore } from './operating/restore.js';

export async function backUp(configFile: string | undefined, file: string, version: string): Promise<void> {
  const { config, log } = await open(configFile);
  const store = await openStore(config, log);
  try {
    const made = await backup({
      file,
      store,
      groupsDir: config.groupsDir,
      clock: { now: Date.now },
      version,
    });
    for (const skipped of made.skipped) log.warn({}, `not in the backup: ${skipped}`);
    say(`${made.file}: the database and ${made.groupFiles} files of groups, ${made.bytes} bytes.`);
  } finally {
    await store.close();
  }
}

export async function restoreFrom(configFile: string | undefined, file: string): Promise<void> {
  const { config, log } = await open(configFile);
  const locks = [
    await takeLock(join(config.dataDir, 'gateway.lock')),
    await takeLock(join(config.dataDir, 'terminal.lock')),
  ];
  try {
    if (locks.includes(null)) {
      throw new Fault('already_running', `A coterie runs on ${config.dataDir}; stop it before you restore.`);
    }
    const done = await restore({
      file,
      dataDir: config.dataDir,
      groupsDir: config.groupsDir,
      openStore: (database) => openStore(config, log, database),
      now: Date.now(),
    });
    say(`Restored what coterie ${done.madeBy} saved at ${done.madeAt}.`);
    say(`Parked, not sent: ${done.deliveries} replies. Counted as answered: ${done.messages} messages.`);
    for (const kept of done.kept) say(`What was there before is kept as ${kept}`);
  } finally {
    for (const lock of locks) lock?.release();
  }
}

async function open(configFile: string | undefined) {
  const { config } = await processConfig(configFile);
  return { config, log: createLog({ ...config.log, level: 'warn', secrets: secretsOf(config) }) };
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
