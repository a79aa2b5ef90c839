/** `coterie backup` and `coterie restore`: database and groups in one file. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { openAudit } from './audit.js';
import { openStore } from './compose.js';
import { commandConfig } from './config.js';
import { Fault } from './core/errors.js';
import { OPERATOR } from './core/journal.js';
import { backup } from './operating/backup.js';
import { askPassphrase } from './operating/encryption.js';
import { takeLock } from './operating/lock.js';
import { createLog } from './operating/log.js';
import { restore } from './operating/restore.js';
import { aloneInData, enterData, mediaFolderOf, workFolderOf } from './paths.js';
import { userName } from './platforms.js';
import { hiddenInLogs } from './secrets.js';
import { refuseForeign } from './store/sqlite/migrate.js';

/** What a restore leaves free: the database in it may grow when it is brought up to date. */
const RESERVE_BYTES = 100_000_000;
const MIGRATIONS = fileURLToPath(new URL('../migrations/sqlite', import.meta.url));

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
  const audit = openAudit(config, log);
  const entered = { who: OPERATOR, where: null, word: null };
  const secret = wishes.encrypt ? { passphrase: await askPassphrase(true) } : null;
  const by = `to ${resolve(file)}, by the user ${userName()}`;
  // Whoever has the logins can write as the account, so this is not done without an entry.
  if (wishes.withCredentials) {
    await audit.record({
      ...entered,
      kind: 'credentials',
      what: `a backup with the logins of platforms ${by}`,
    });
  } else {
    await audit.note({ ...entered, kind: 'backup', what: `a backup ${by}` });
  }
  const data = await enterData(config, log);
  const store = await openStore(config, log);
  try {
    const made = await backup({
      file,
      store,
      dataDir: config.dataDir,
      groupsDir: config.groupsDir,
      mediaDir: wishes.withMedia ? mediaFolderOf(config) : null,
      workDir: wishes.withMedia ? workFolderOf(config) : null,
      logins: wishes.withCredentials === true,
      secret,
      clock: { now: Date.now },
      version,
    });
    for (const skipped of made.skipped) log.warn({}, `not in the backup: ${skipped}`);
    const media = wishes.withMedia
      ? `, ${made.mediaFiles} files that people sent, ${made.workFiles} files of personas`
      : '';
    say(`${made.file}: the database and ${made.groupFiles} files of groups${media}, ${made.bytes} bytes.`);
    if (wishes.withCredentials) say('The logins of platforms are in it: whoever has the file can use them.');
  } finally {
    await store.close();
    data.release();
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
    locks.push(await aloneInData(config, log));
    const hash = await hashOfFile(file);
    // What is no file, or cannot be read, is refused below.
    if (hash !== null) {
      const what = `a restore from ${resolve(file)} (sha256 ${hash}), by the user ${userName()}`;
      await openAudit(config, log).record({ kind: 'restore', who: OPERATOR, where: null, what, word: null });
    }
    const done = await restore({
      file,
      dataDir: config.dataDir,
      groupsDir: config.groupsDir,
      mediaDir: mediaFolderOf(config),
      workDir: workFolderOf(config),
      passphrase: () => askPassphrase(false),
      openStore: async (database) => {
        refuseForeign(database, MIGRATIONS);
        return openStore(config, log, database);
      },
      roomOf: async (folder) => {
        const { bavail, bsize } = await statfs(folder);
        return bavail * bsize - RESERVE_BYTES;
      },
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
  const { config } = await commandConfig(configFile);
  return { config, log: createLog({ ...config.log, level: 'warn', secrets: hiddenInLogs(config) }) };
}

/** null where it is no file (a pipe would keep us waiting), or cannot be read. */
async function hashOfFile(file: string): Promise<string | null> {
  if (!(await stat(file).catch(() => null))?.isFile()) return null;
  const hash = createHash('sha256');
  return pipeline(createReadStream(file), hash).then(
    () => hash.digest('hex'),
    () => null,
  );
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
