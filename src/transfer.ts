/** `coterie backup`, `restore`, `export` and `import`. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { openAudit } from './audit-start.js';
import { type Export, exportOf, writePieces } from './chat-export/export.js';
import {
  askAtTerminal,
  BY_OPERATOR,
  commandConfig,
  commandLog,
  endWithReader,
  momentsGiven,
  quoted,
  say,
  tell,
  wrongOption,
} from './command.js';
import type { Config } from './config.js';
import { EXPORT_FORMATS, type ExportFormat } from './core/chat-record.js';
import { systemClock } from './core/clock.js';
import { printableLine } from './core/cut.js';
import { createZone, type Zone } from './core/dates.js';
import { Fault } from './core/errors.js';
import type { Log } from './core/log.js';
import { isChatId, isPersonaId, slug } from './groups/paths.js';
import { createPersonas } from './groups/personas.js';
import { type Imported, importFrom } from './importing/import.js';
import { refuseLiving } from './nodes.js';
import { backup } from './operating/backup.js';
import { restore } from './operating/restore.js';
import { openFile, openStore } from './parts.js';
import { enterData, enterStopped, foldersOf, SQLITE_MIGRATIONS, storeOf } from './paths.js';
import { PLATFORMS, userName } from './platforms.js';
import { copyToServer } from './store/copy.js';
import { inspectStore, withReads } from './store/inspect.js';
import { refuseForeign } from './store/migrate.js';
import { openServer } from './store/open.js';

/** Kept free after a restore: a migration may enlarge the database. */
const RESERVE_BYTES = 100_000_000;

export interface BackupOptions {
  withCredentials?: boolean;
  withMedia?: boolean;
  encrypt?: boolean;
}

export async function backUp(
  configFile: string | undefined,
  file: string,
  { withCredentials = false, withMedia = false, encrypt = false }: BackupOptions,
  version: string,
): Promise<void> {
  const { config } = await commandConfig(configFile);
  const log = commandLog(config);
  const audit = openAudit(config, log);
  const secret = encrypt ? { passphrase: await askPassphrase(true) } : null;
  const by = `to ${resolve(file)}, by the user ${userName()}`;
  // Anyone with the logins can write as the account, so such a backup must be in the audit log.
  if (withCredentials) {
    const what = `a backup with the logins of platforms ${by}`;
    await audit.record({ ...BY_OPERATOR, kind: 'credentials', what });
  } else await audit.note({ ...BY_OPERATOR, kind: 'backup', what: `a backup ${by}` });
  const data = await enterData(config, log);
  const store = await openStore(config, log);
  try {
    await refuseNewer(config);
    const from = { store, dataDir: config.dataDir, groupsDir: config.groupsDir };
    const options = { withMedia, logins: withCredentials, secret };
    const made = await backup(file, from, options, Date.now(), version);
    for (const skipped of made.skipped) log.warn({}, `not in the backup: ${skipped}`);
    const media = withMedia
      ? `, ${made.mediaFiles} files that people sent, ${made.workFiles} files of personas`
      : '';
    say(`${made.file}: the database and ${made.groupFiles} files of groups${media}, ${made.bytes} bytes.`);
    if (withCredentials) say('It holds the logins of platforms; keep the file secret.');
  } finally {
    await store.close();
    data.release();
  }
}

/** A gateway works beside a newer version; a copy would leave out what it does not know. */
async function refuseNewer(config: Config): Promise<void> {
  const found = await inspectStore(storeOf(config), systemClock);
  await found?.close();
  if (found?.newer !== true) return;
  const what = `${found.place} was migrated by a newer coterie, which keeps more than this version would copy. Make the backup with that.`;
  throw new Fault('store_newer', what);
}

const PASSPHRASE = 'COTERIE_PASSPHRASE';
const FEWEST_CHARACTERS = 8;

/** From the environment, or typed at the terminal; a new one twice. Throws Fault if there is none or it is too short. */
async function askPassphrase(isNew: boolean): Promise<string> {
  const given = process.env[PASSPHRASE];
  if (!given && !process.stdin.isTTY) {
    throw new Fault('configuration', `A passphrase is needed: set ${PASSPHRASE}, or run this at a terminal.`);
  }
  const ask = (question: string) =>
    askAtTerminal(question, 'No passphrase was given; nothing was done.', true);
  const passphrase = given || (await ask('Passphrase: '));
  if (Array.from(passphrase).length < FEWEST_CHARACTERS) {
    throw new Fault('configuration', `A passphrase has at least ${FEWEST_CHARACTERS} characters.`);
  }
  if (isNew && !given && (await ask('Once more: ')) !== passphrase) {
    throw new Fault('configuration', 'The two passphrases differ; nothing was done.');
  }
  return passphrase;
}

export async function restoreFrom(configFile: string | undefined, file: string): Promise<void> {
  const { config } = await commandConfig(configFile);
  const log = commandLog(config);
  const locks = await enterStopped(config, log, 'restore');
  try {
    await refuseLiving(storeOf(config), log, 'restore');
    const hash = await hashOfFile(file);
    // Anything but a readable file is refused below.
    if (hash !== null) {
      const what = `a restore from ${resolve(file)} (sha256 ${hash}), by the user ${userName()}`;
      await openAudit(config, log).record({ ...BY_OPERATOR, kind: 'restore', what });
    }
    const done = await restore(file, config, {
      passphrase: () => askPassphrase(false),
      openStore: async (database) => {
        refuseForeign(database, SQLITE_MIGRATIONS);
        return openFile(config, log, database);
      },
      ...(config.store.url !== null && { takeDatabase: (file) => takeToServer(config, log, file) }),
      freeBytes: async (folder) => {
        const { bavail, bsize } = await statfs(folder);
        return bavail * bsize - RESERVE_BYTES;
      },
      now: Date.now(),
    });
    say(`Restored what coterie ${done.madeBy} saved at ${done.madeAt}.`);
    say(`Parked, not sent: ${done.deliveries} replies. Counted as answered: ${done.messages} messages.`);
    if (!done.logins) say('It held no logins: link WhatsApp devices again.');
    for (const kept of done.kept) say(`What was there before is kept as ${kept}`);
  } finally {
    for (const lock of locks) lock.release();
  }
}

async function takeToServer(config: Config, log: Log, file: string): Promise<void> {
  const server = await openServer(storeOf(config), { clock: systemClock, log });
  try {
    await copyToServer(file, server);
  } finally {
    await server.close();
  }
}

/** null if it is not a file (reading a pipe would block) or cannot be read. */
async function hashOfFile(file: string): Promise<string | null> {
  if (!(await stat(file).catch(() => null))?.isFile()) return null;
  const hash = createHash('sha256');
  return pipeline(createReadStream(file), hash).then(
    () => hash.digest('hex'),
    () => null,
  );
}

export interface ExportOptions {
  format?: string;
  since?: string;
  until?: string;
  output?: string;
}

export async function exportChat(
  configFile: string | undefined,
  chatId: string,
  options: ExportOptions,
): Promise<void> {
  const { config } = await commandConfig(configFile);
  const zone = createZone(config.timezone);
  const asked = parseExport(options, zone);
  const personas = createPersonas({
    groupsDir: config.groupsDir,
    clock: systemClock,
    log: commandLog(config),
    mostInChat: config.limits.personasPerChat,
  });
  const isDone = await withReads(storeOf(config), systemClock, async (feed) => {
    const made = await exportOf({ feed, personas, zone, now: Date.now() }, { ...asked, chatId, by: null });
    if (made === null) return false;
    await (options.output === undefined ? print(made) : write(made, options.output));
    return true;
  });
  if (!isDone) throw new Fault('internal', `Nobody has ever written in a chat ${quoted(chatId)}.`);
}

function parseExport({ format = 'markdown', since, until }: ExportOptions, zone: Zone) {
  const known = EXPORT_FORMATS.find((each): each is ExportFormat => each === format);
  if (known === undefined) throw wrongOption('format', format, `one of ${EXPORT_FORMATS.join(', ')}`);
  const from = momentsGiven('since', since, zone, Date.now())?.from ?? null;
  const to = momentsGiven('until', until, zone, Date.now())?.to ?? null;
  if (from !== null && to !== null && from > to) {
    throw wrongOption('since', since ?? '', `a time before --until ${quoted(until ?? '')}`);
  }
  return { format: known, since: from, until: to };
}

async function print({ pieces }: Export): Promise<void> {
  endWithReader();
  for await (const piece of pieces()) {
    if (!process.stdout.write(piece)) await once(process.stdout, 'drain');
  }
}

async function write({ pieces, messages }: Export, output: string): Promise<void> {
  const file = resolve(output);
  await writePieces(file, pieces()).catch((error) => {
    throw new Fault('internal', `${file} could not be written`, error);
  });
  say(`${file}: ${messages} ${messages === 1 ? 'message' : 'messages'}.`);
}

/** Imports an OpenClaw or MicroClaw folder. The gateway may run: no file is changed, and each new one appears whole. */
export async function importFolder(
  configFile: string | undefined,
  given: string,
  isDryRun: boolean,
): Promise<void> {
  const { config } = await commandConfig(configFile);
  const folder = resolve(given);
  const found = await stat(folder).catch(() => null);
  if (!found?.isDirectory()) {
    const what = found === null ? 'no' : 'a file, and no';
    throw new Fault('internal', `There is ${what} folder ${printableLine(folder)}.`);
  }
  const order = {
    folder,
    groups: config.groupsDir,
    workspace: foldersOf(config).workspace,
    skills: foldersOf(config).skills,
    names: { isChatId, isPersonaId, idOf: slug, channels: PLATFORMS },
    isDryRun,
  };
  // A dry run takes no lock.
  const data = isDryRun ? null : await enterData(config, commandLog(config));
  try {
    tellImport(folder, await importFrom(order), isDryRun);
  } finally {
    data?.release();
  }
}

const SAID = { new: 'new', beside: 'beside', same: 'there already', impossible: 'FAILED' } as const;

function tellImport(folder: string, { found, done, passedOver }: Imported, isDryRun: boolean): void {
  for (const each of done) {
    const from = each.from.length === 0 ? 'made' : `from ${each.from.join(' and ')}`;
    const hint = 'hint' in each && each.hint !== undefined ? `. ${each.hint}` : '';
    const why = each.kind === 'impossible' ? `: ${each.why}` : hint;
    tell(`${SAID[each.kind].padEnd(13)}  ${relative(process.cwd(), each.path)}  (${from})${why}`);
  }
  for (const { path, why } of passedOver) tell(`passed over    ${path}: ${why}`);
  if (done.length === 0) {
    throw new Fault(
      'internal',
      `There is nothing to import in ${printableLine(folder)}. Looked for: an OpenClaw workspace (MEMORY.md, SOUL.md, USER.md, ` +
        'IDENTITY.md, AGENTS.md or memory/, there or in workspace/), MicroClaw’s groups (groups/ or runtime/groups/), and skills/.',
    );
  }
  const count = (kind: Imported['done'][number]['kind']) => done.filter((each) => each.kind === kind).length;
  tell(
    `${found.join(', ')}: ${count('new')} new, ${count('beside')} beside what was there, ` +
      `${count('same')} there already, ${passedOver.length} passed over. ${folder} is as it was.`,
  );
  if (isDryRun) say('This was a dry run: nothing was written.');
  const failures = count('impossible');
  if (failures > 0) throw new Fault('internal', `${failures} of the files could not be written; see above.`);
}
