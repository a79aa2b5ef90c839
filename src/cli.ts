/**
 * The command line, loaded by `main.ts`: `coterie <command>`. Exit codes: 0 success, 1 failed while running, 2 wrong
 * usage or configuration.
 */
import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import type { ShowWishes } from './audit.js';
import { describe, Fault } from './core/errors.js';
import type { DoctorWishes } from './doctor.js';
import type { ReplayWishes } from './replay.js';
import type { BackupOptions, ExportOptions } from './transfer.js';

const FAILED = 1;
const WRONG_USAGE = 2;

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

const program = new Command('coterie')
  .enablePositionalOptions()
  .showHelpAfterError('(--help shows what there is)');
const pair = new Command('pair');
const otherCommands = () => import('./commands.js');

/** What runs until it is stopped hears of that from its first moment on: to load its code takes longer than some wait. */
function stopAsked(): AbortSignal {
  const asked = new AbortController();
  // `on`, not `once`: a second signal (npm forwards one, too) must not interrupt an orderly shutdown.
  process.on('SIGTERM', () => asked.abort());
  process.on('SIGINT', () => asked.abort());
  // The terminal was closed, or a supervisor means the same by it.
  process.on('SIGHUP', () => asked.abort());
  return asked.signal;
}

withOptions(program, 'A self-hosted gateway through which people chat with personas');
withOptions(
  program.command('start', { isDefault: true }),
  'run every configured channel (the default)',
).action(async (...given) => {
  const stop = stopAsked();
  await (await import('./run.js')).start(configOf(given), version, stop);
});
withOptions(program.command('chat'), 'chat in the terminal only').action(async (...given) => {
  const stop = stopAsked();
  await (await import('./run.js')).chat(configOf(given), version, stop);
});
withOptions(program.command('worker'), 'make vectors beside a GPU, for the queue in Redis').action(
  async (...given) => {
    const stop = stopAsked();
    await (await import('./worker.js')).worker(configOf(given), stop);
  },
);
withOptions(program.command('doctor'), 'check the configuration and everything it names')
  .option('--message <chat-id/message-id>', 'say where one message went')
  .option('--security', 'say only what the configuration leaves open')
  .action(async (wishes: DoctorWishes, ...given) => (await otherCommands()).doctor(configOf(given), wishes));
program.addCommand(withOptions(pair, 'let people and groups in'));
withOptions(pair.command('list'), 'list who waits to be let in').action(async (...given) =>
  (await otherCommands()).list(configOf(given)),
);
withOptions(pair.command('approve'), 'let somebody in by code, or a person or a group by id')
  .argument('<code-or-chat-id>')
  .option('--owner', 'as an owner, who may change everything and let others in')
  .action(async (codeOrId: string, options: { owner?: true }, ...given) => {
    const { approve, terminalAsk } = await otherCommands();
    await approve(configOf(given), codeOrId, options.owner === true, terminalAsk());
  });
withOptions(pair.command('remove'), 'take an approval or a request back')
  .argument('<id>')
  .action(async (id: string, ...given) => (await otherCommands()).remove(configOf(given), id));
withOptions(pair.command('whatsapp'), 'link WhatsApp by a code instead of a QR; the gateway must not run')
  .requiredOption('--phone <number>', 'the number of the account, with its country code')
  .action(async (options: { phone: string }, ...given) =>
    (await otherCommands()).linkWhatsApp(configOf(given), options.phone),
  );
withOptions(program.command('backup'), 'write database and groups into one file; the gateway may run')
  .argument('<file>')
  .option('--with-credentials', 'also the logins of platforms (a linked WhatsApp device)')
  .option('--with-media', 'also the files that people sent, and those of personas')
  .option('--encrypt', 'with a passphrase, in the format of age (asked for, or COTERIE_PASSPHRASE)')
  .action(async (file: string, wishes: BackupOptions, ...given) =>
    (await otherCommands()).backUp(configOf(given), file, wishes, version),
  );
withOptions(program.command('restore'), 'put a backup back; the gateway must not run')
  .argument('<file>')
  .action(async (file: string, ...given) => (await otherCommands()).restoreFrom(configOf(given), file));
withOptions(program.command('export'), 'write a chat as people saw it, as Markdown or JSON')
  .argument('<chat-id>')
  .option('--format <format>', 'markdown (the default) or json')
  .option('--since <time>', 'a date, a time, or how long ago: 2026-01-31, 2026-01-31T14:30, 7d, 12h, 30m')
  .option('--until <time>', 'the same; a date counts to its end')
  .option('--output <file>', 'into this file (default: stdout)')
  .action(async (chatId: string, wishes: ExportOptions, ...given) =>
    (await otherCommands()).exportChat(configOf(given), chatId, wishes),
  );
withOptions(
  program.command('import'),
  'bring in a folder that OpenClaw or MicroClaw laid out; it stays as it is',
)
  .argument('<folder>')
  .option('--dry-run', 'write nothing, and say what would be done')
  .action(async (folder: string, wishes: { dryRun?: boolean }, ...given) =>
    (await otherCommands()).importFolder(configOf(given), folder, wishes.dryRun === true),
  );
withOptions(program.command('replay'), 'show everything that a turn saw and did')
  .argument('<turn-id>', 'its id, or that of any entry of it in the journal')
  .option('--again', 'ask the model once more, and show what it answers differently; nothing is done or sent')
  .option('--json', 'as JSON')
  .action(async (turnId: string, wishes: ReplayWishes, ...given) =>
    (await otherCommands()).replay(configOf(given), turnId, wishes),
  );
withOptions(
  program.command('audit'),
  'show who changed what, where, when and on whose word; or verify that log',
)
  .option('--kind <kind>', 'only these: start, configuration, approval, command, tool, restore, …')
  .option('--who <id>', 'only what this one did, or what was done on their word')
  .option('--chat <id>', 'only what concerns this chat')
  .option('--since <time>', 'a date, a time, or how long ago: 2026-01-31, 2026-01-31T14:30, 7d, 12h, 30m')
  .option('--until <time>', 'the same; a date counts to its end')
  .option('--limit <number>', 'how many of the newest (default: 50, at most 10000)')
  .option('--json', 'one JSON object a line')
  .option('--verify', 'check the whole chain, over all its files; exit code 1 where it is broken')
  .action(async (wishes: ShowWishes, ...given) => (await otherCommands()).audit(configOf(given), wishes));

/** Every command takes `--config`, `--version` and `--help`. */
function withOptions(command: Command, description: string): Command {
  return command
    .description(description)
    .option('-c, --config <file>', 'configuration file (else COTERIE_CONFIG, else ./config.yaml)')
    .version(version)
    .exitOverride();
}

/** `--config` may stand before or behind the command's name. */
function configOf(given: unknown[]): string | undefined {
  const command = given.at(-1) as Command;
  return command.optsWithGlobals<{ config?: string }>().config;
}

/** The default command would take such a word for an argument of its own, and --help would be the help of all. */
async function refuseUnknown(command: Command, given: string[], before: string[] = []): Promise<void> {
  if (command.commands.length === 0) return;
  const { operands, unknown } = command.parseOptions(given);
  const words = [...operands, ...unknown];
  const at = words.findIndex((word) => !['-h', '--help', 'help'].includes(word));
  const word = words[at];
  if (word === undefined || word.startsWith('-')) return;
  const found = command.commands.find((each) => each.name() === word);
  if (found) return refuseUnknown(found, words.slice(at + 1), [...before, word]);
  const { unknownCommand } = await otherCommands();
  const known = command.commands.map((each) => each.name());
  program.error(`error: ${unknownCommand(word, before, known)}`);
}

async function main(): Promise<void> {
  try {
    await refuseUnknown(program, process.argv.slice(2));
    await program.parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? 0 : WRONG_USAGE;
      return;
    }
    process.stderr.write(`coterie: ${describe(error)}\n`);
    const wrongSetup =
      error instanceof Fault && (error.code === 'configuration' || error.code === 'already_running');
    process.exitCode = wrongSetup ? WRONG_USAGE : FAILED;
  }
}

await main();
// A start that failed may have left a socket or a timer behind.
if (process.exitCode) process.exit();
