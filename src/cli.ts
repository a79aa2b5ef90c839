/** The command line: `coterie <command>`. Exit codes: 0 success, 1 failed while running, 2 wrong usage or setup. */
import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import type { AuditOptions } from './audit.js';
import { printableLine } from './core/cut.js';
import { describe, Fault, type FaultCode } from './core/errors.js';
import { closest, isNear } from './core/known-keys.js';
import type { DoctorOptions } from './doctor.js';
import type { ImportChatOptions } from './import-chat.js';
import type { MigrateOptions } from './migrate-store.js';
import type { PersonaExportOptions, PersonaImportOptions } from './persona-files.js';
import type { ReplayOptions } from './replay.js';
import type { BackupOptions, ExportOptions } from './transfer.js';

const FAILED = 1;
const WRONG_USAGE = 2;

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

const program = new Command('coterie').enablePositionalOptions().showHelpAfterError('(see --help)');
const persona = new Command('persona');
const pair = new Command('pair');
const commands = () => import('./commands.js');

withOptions(program, 'A self-hosted gateway through which people chat with personas');
for (const [name, description, isDefault] of [
  ['start', 'run every configured channel (the default)', true],
  ['chat', 'chat in the terminal only', false],
  ['worker', 'compute embeddings beside a GPU, for the queue in Redis', false],
] as const) {
  withOptions(program.command(name, { isDefault }), description).action(async (...given) => {
    // Signals are handled before the code is loaded, which takes longer than some supervisors wait.
    const stop = stopSignal();
    const run = await import('./run.js');
    await run[name](configOf(given), version, stop);
  });
}
withOptions(
  program.command('setup'),
  'connect a model and platforms, step by step; the page of the board does the same',
).action(async (...given) => (await commands()).setUp(configOf(given)));
withOptions(program.command('doctor'), 'check the configuration and everything it names')
  .option('--message <chat-id/message-id>', 'also show where one message went')
  .option('--security', 'only show what the configuration leaves open')
  .action(async (options: DoctorOptions, ...given) => (await commands()).doctor(configOf(given), options));
program.addCommand(withOptions(pair, 'approve people and groups'));
withOptions(pair.command('list'), 'list pending requests').action(async (...given) =>
  (await commands()).list(configOf(given)),
);
withOptions(pair.command('approve'), 'approve by code, or a person or group by ID')
  .argument('<code-or-chat-id>')
  .option('--owner', 'as an owner, who may change everything and approve others')
  .action(async (codeOrId: string, options: { owner?: true }, ...given) => {
    const { approve, terminalAsk } = await commands();
    await approve(configOf(given), codeOrId, options.owner === true, terminalAsk());
  });
withOptions(pair.command('remove'), 'withdraw an approval or a request')
  .argument('<id>')
  .action(async (id: string, ...given) => (await commands()).remove(configOf(given), id));
withOptions(pair.command('whatsapp'), 'link WhatsApp by a code instead of a QR code; stop the gateway first')
  .requiredOption('--phone <number>', 'the number of the account, with its country code')
  .action(async (options: { phone: string }, ...given) =>
    (await commands()).linkWhatsApp(configOf(given), options.phone),
  );
withOptions(program.command('backup'), 'write database and groups into one file; the gateway may run')
  .argument('<file>')
  .option('--with-credentials', 'include platform logins (a linked WhatsApp device)')
  .option('--with-media', 'include files that people sent, and those of personas')
  .option('--encrypt', 'with a passphrase, in the format of age (asked for, or COTERIE_PASSPHRASE)')
  .action(async (file: string, options: BackupOptions, ...given) =>
    (await commands()).backUp(configOf(given), file, options, version),
  );
withOptions(program.command('restore'), 'restore a backup; stop the gateway first')
  .argument('<file>')
  .action(async (file: string, ...given) => (await commands()).restoreFrom(configOf(given), file));
withOptions(
  program.command('migrate-store'),
  'copy the SQLite store into a PostgreSQL database and compare both; stop the gateway first',
)
  .requiredOption('--to <url>', 'an empty database: postgres://user:password@host:5432/database')
  .option('--from <file>', 'an SQLite file (default: that of data_dir), which is only read')
  .option('--resume', 'go on behind the rows that an interrupted copy left there')
  .action(async (options: MigrateOptions, ...given) =>
    (await commands()).migrateStore(configOf(given), options),
  );
withOptions(program.command('nodes'), 'list the gateways on this store, and what each holds').action(
  async (...given) => (await commands()).listNodes(configOf(given)),
);
withOptions(program.command('export'), 'write a chat as people saw it, as Markdown or JSON')
  .argument('<chat-id>')
  .option('--format <format>', 'markdown (the default) or json')
  .option('--since <time>', 'a date, a time, or how long ago: 2026-01-31, 2026-01-31T14:30, 7d, 12h, 30m')
  .option('--until <time>', 'the same; a date counts to its end')
  .option('--output <file>', 'into this file (default: stdout)')
  .action(async (chatId: string, options: ExportOptions, ...given) =>
    (await commands()).exportChat(configOf(given), chatId, options),
  );
withOptions(program.command('import'), 'import an OpenClaw or MicroClaw folder, which stays as it is')
  .argument('<folder>')
  .option('--dry-run', 'only show what would be done')
  .action(async (folder: string, options: { dryRun?: boolean }, ...given) =>
    (await commands()).importFolder(configOf(given), folder, options.dryRun === true),
  );
withOptions(
  program.command('import-chat'),
  'import the history of a chat from another program; the gateway may run',
)
  .argument('[file]', 'of Telegram, WhatsApp, SillyTavern, ChatGPT or Claude; without it: show the imports')
  .requiredOption('--chat <chat-id>', 'into this chat')
  .option(
    '--persona <name>',
    'of this persona, whose lines are those of its name (default: the active one, without lines)',
  )
  .option('--me <name>', 'the speaker who is you')
  .option('--only <name>', 'this chat, where the file holds several')
  .option('--undo <id>', 'remove what this import brought')
  .option('--propose', 'let the persona propose in the chat what to remember of it; a person decides')
  .option('--dry-run', 'only show what would be done')
  .action(async (file: string | undefined, options: ImportChatOptions, ...given) =>
    (await commands()).importChat(configOf(given), file, options),
  );
program.addCommand(
  withOptions(persona, 'bring characters along, and take them elsewhere; the gateway may run'),
);
withOptions(
  persona.command('import'),
  'import character cards and lorebooks: PNG, JPEG, WebP, CHARX, JSON, YAML',
)
  .argument('<files...>')
  .option('--chat <chat-id>', 'into this chat (default: into the library, for all chats)')
  .option('--name <name>', 'under this name; the text of a persona of this name is replaced')
  .action(async (files: string[], options: PersonaImportOptions, ...given) =>
    (await commands()).importPersonas(configOf(given), files, options),
  );
withOptions(
  persona.command('export'),
  'write a persona as a character card; only edited texts differ from its own',
)
  .argument('<chat-id>')
  .argument('<name>')
  .argument('[file]')
  .option('--as <form>', 'png, json or charx (default: as it came)')
  .action(
    async (chatId: string, name: string, file: string | undefined, options: PersonaExportOptions, ...given) =>
      (await commands()).exportPersona(configOf(given), chatId, name, file, options),
  );
withOptions(program.command('replay'), 'show everything that a turn saw and did')
  .argument('<turn-id>', 'its ID, or that of any of its journal entries')
  .option('--again', 'ask the model again and show the difference; nothing is done or sent')
  .option('--json', 'as JSON')
  .action(async (turnId: string, options: ReplayOptions, ...given) =>
    (await commands()).replay(configOf(given), turnId, options),
  );
withOptions(program.command('audit'), 'show who changed what, when and on whose word, or verify that log')
  .option('--kind <kind>', 'only these: start, configuration, approval, command, tool, restore, …')
  .option('--who <id>', 'only what this person did, or what was done on their word')
  .option('--chat <id>', 'only this chat')
  .option('--since <time>', 'a date, a time, or how long ago: 2026-01-31, 2026-01-31T14:30, 7d, 12h, 30m')
  .option('--until <time>', 'the same; a date counts to its end')
  .option('--limit <number>', 'how many of the newest (default: 50, at most 10000)')
  .option('--json', 'one JSON object a line')
  .option('--verify', 'check the whole chain over all files; exit code 1 if it is broken')
  .action(async (options: AuditOptions, ...given) => (await commands()).audit(configOf(given), options));

function withOptions(command: Command, description: string): Command {
  return command
    .description(description)
    .option('-c, --config <file>', 'configuration file (else COTERIE_CONFIG, else ./config.yaml)')
    .version(version)
    .exitOverride();
}

/** `--config` may come before or after the command's name. */
function configOf(given: unknown[]): string | undefined {
  const command = given.at(-1) as Command;
  return command.optsWithGlobals<{ config?: string }>().config;
}

function stopSignal(): AbortSignal {
  const stop = new AbortController();
  // `on`, not `once`: a second signal (npm forwards one, too) must not interrupt an orderly shutdown.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => stop.abort());
  return stop.signal;
}

/** The default command would take an unknown word as its own argument. */
function refuseUnknown(command: Command, given: string[], before: string[] = []): void {
  if (command.commands.length === 0) return;
  const { operands, unknown } = command.parseOptions(given);
  const words = [...operands, ...unknown];
  const at = words.findIndex((word) => !['-h', '--help', 'help'].includes(word));
  const word = words[at];
  if (word === undefined || word.startsWith('-')) return;
  const found = command.commands.find((each) => each.name() === word);
  if (found) {
    refuseUnknown(found, words.slice(at + 1), [...before, word]);
    return;
  }
  const known = command.commands.map((each) => each.name()).filter((name) => isNear(word, name));
  const called = (name: string) => `'${printableLine([...before, name].join(' '))}'`;
  const meant = closest(word, known);
  const hint = meant === null ? '' : `; did you mean ${called(meant)}?`;
  program.error(`error: unknown command ${called(word)}${hint}`);
}

/** A supervisor's next try would not mend these. */
const WRONG_SETUP: FaultCode[] = ['configuration', 'already_running', 'store_newer'];

async function main(): Promise<void> {
  try {
    refuseUnknown(program, process.argv.slice(2));
    await program.parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? 0 : WRONG_USAGE;
      return;
    }
    process.stderr.write(`coterie: ${describe(error)}\n`);
    const wrongSetup = error instanceof Fault && WRONG_SETUP.includes(error.code);
    process.exitCode = wrongSetup ? WRONG_USAGE : FAILED;
  }
}

await main();
// A failed start may have left a socket or a timer open.
if (process.exitCode) process.exit();
