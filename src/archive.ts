/** `coterie backup` and `coterie restore`: database and groups in one file. */
import { join } from 'node:path';
import { mediaFolderOf, openStore } from './compose.js';
import { processConfig, secretsOf } from './config.js';
import { Fault } from './core/errors.js';
import { backup } from './operating/backup.js';
import { takeLock } from './operating/lock.js';
import { createLog } from './operating/log.js';
import { askPassphrase } from './operating/passphrase.js';
import { restore } from './operating/restore.js';

export interface BackupWishes {
  withCredentials?: boolean;
  withMedia?: boolean;
  encrypt?: boolean;
}

export async function backUp(
  configFile: string | undefined,
  file: string,
  wishes: BackupWishes,
  version: string,
): Promise<void> {
  const { config, log } = await open(configFile);
  const secret = wishes.encrypt ? { passphrase: await askPassphrase(true) } : null;
  const store = await openStore(config, log);
  try {
    const made = await backup({
      file,
      store,
      groupsDir: config.groupsDir,
      mediaDir: wishes.withMedia ? mediaFolderOf(config) : null,
      logins: wishes.withCredentials === true,
      secret,
      clock: { now: Date.now },
      version,
    });
    for (const skipped of made.skipped) log.warn({}, `not in the backup: ${skipped}`);
    const media = wishes.withMedia ? `, ${made.mediaFiles} files that people sent` : '';
    say(`${made.file}: the database and ${made.groupFiles} files of groups${media}, ${made.bytes} bytes.`);
    if (wishes.withCredentials) say('The logins of platforms are in it: whoever has the file can use them.');
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
      mediaDir: mediaFolderOf(config),
      passphrase: () => askPassphrase(false),
      openStore: (database) => openStore(config, log, database),
      now: Date.now(),
    });
    say(`Restored what coterie ${done.madeBy} saved at ${done.madeAt}.`);
    say(`Parked, not sent: ${done.deliveries} replies. Counted as answered: ${done.messages} messages.`);
    if (!done.logins) say('It held no logins: what was linked (a WhatsApp device) has to be linked again.');
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
