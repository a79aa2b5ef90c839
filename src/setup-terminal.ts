/** `coterie setup`: the steps of the page's setup as questions in the terminal. An empty answer skips a step. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openAudit } from './audit-start.js';
import { askAtTerminal, BY_OPERATOR, commandConfig, commandLog, say } from './command.js';
import { type Config, configIn, configPlace, processFrom } from './config.js';
import { createConfigWriter } from './config-write.js';
import { BOARD_MAIN } from './core/board.js';
import { systemClock } from './core/clock.js';
import { printableLine } from './core/cut.js';
import { Fault } from './core/errors.js';
import type { Personas } from './core/persona.js';
import type { FoundServer, Saved, Setup, TokenPlatform } from './core/setup.js';
import { createPersonas } from './groups/personas.js';
import { takeLock } from './operating/lock.js';
import { openStore } from './parts.js';
import { enterData } from './paths.js';
import { createLinks } from './platforms.js';
import { checkPremises } from './premises.js';
import { createSetup } from './setup.js';

interface SetupTalk {
  setup: Setup;
  personas: Personas;
  ask(question: string, isHidden?: boolean): Promise<string>;
}

const NO_TERMINAL =
  'coterie setup asks questions, so it needs a terminal. Without one, write config.yaml (config.example.yaml explains every key), or use the page of the board.';
const ENDED = 'The setup was left; what was saved stays.';
const AGAIN_MS = 3_000;

export async function setUp(configFile: string | undefined): Promise<void> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) throw new Fault('configuration', NO_TERMINAL);
  const from = processFrom(configFile, true);
  const place = configPlace(from);
  const { config } = existsSync(place) ? await commandConfig(configFile) : configIn('', place, from);
  await checkPremises(config);
  const log = commandLog(config);
  const data = await enterData(config, log);
  const store = await openStore(config, log);
  let isChanged = false;
  try {
    const { groupsDir, limits } = config;
    const personas = createPersonas({
      groupsDir,
      clock: systemClock,
      log,
      mostInChat: limits.personasPerChat,
    });
    const audit = openAudit(config, log);
    const setup = createSetup({
      ...{ config, store, personas, audit, serving: [], links: createLinks(), who: BY_OPERATOR },
      heldBy: () => null,
      writer: createConfigWriter(from, audit),
      clock: systemClock,
      takeIn() {
        isChanged = true;
      },
    });
    const ask = async (question: string, isHidden = false) =>
      (await askAtTerminal(question, ENDED, isHidden)).trim();
    await askAll({ setup, personas, ask });
    await setup.leave('finished');
  } finally {
    await store.close();
    data.release();
    if (isChanged) await tellGateway(config);
  }
}

async function askAll(asking: SetupTalk): Promise<void> {
  say('Press Enter to skip a step, Ctrl-C to leave.');
  await askModel(asking);
  await askToken(asking, 'telegram', 'Telegram: the token that @BotFather gave');
  await askToken(asking, 'discord', 'Discord: the token from the page Bot of the developer portal');
  if (isYes(await asking.ask('Connect WhatsApp? (y/N) '))) {
    if (tell(await asking.setup.connectWhatsApp())) {
      say(
        'The gateway shows a QR code when it runs; or link by a code: coterie pair whatsapp --phone NUMBER',
      );
    }
  }
  const name = await asking.ask('A persona for the chat on the page; its name: ');
  if (name === '') return;
  const character = await asking.ask('Its character, in a sentence: ');
  const made = await asking.personas.create(BOARD_MAIN, name, null, character);
  say(made.ok ? `${made.persona.name} is there.` : made.reason);
}

async function askModel({ setup, ask }: SetupTalk): Promise<void> {
  const found = await setup.servers();
  for (const [n, { name, address, models }] of found.entries()) {
    say(`  ${n + 1}  ${name} at ${address}: ${printableLine(models.slice(0, 5).join(', '))}`);
  }
  for (;;) {
    const given = await ask(
      `Model server: ${found.length > 0 ? 'a number from above, or ' : ''}its address: `,
    );
    if (given === '') return;
    const server: FoundServer | undefined = found[Number(given) - 1];
    const address = server?.address ?? given;
    const [usual = ''] = server?.models ?? [];
    const model = (await ask(`Model${usual === '' ? '' : ` (Enter: ${printableLine(usual)})`}: `)) || usual;
    const key = server
      ? null
      : (await ask('Key (Enter: none, or the stored one of this address): ', true)) || null;
    const wish = { address, key, model };
    say('SetupTalk…');
    const tried = await setup.tryModel(wish);
    say(tried.works ? `${tried.says} works.` : `It did not answer: ${tried.says}`);
    if (!tried.works && !isYes(await ask('Save it all the same? (y/N) '))) continue;
    if (tell(await setup.saveModel(wish))) return;
  }
}

async function askToken({ setup, ask }: SetupTalk, platform: TokenPlatform, question: string): Promise<void> {
  for (;;) {
    const token = await ask(`${question}: `, true);
    if (token === '') return;
    const checked = await setup.checkToken(platform, token);
    if (!checked.works) {
      say(checked.says);
      continue;
    }
    say(`It is ${checked.says}.`);
    for (const warning of checked.warnings) say(warning);
    if (checked.invite) say(`Invite the bot: ${checked.invite}`);
    if (tell(await setup.saveToken(platform, token))) return;
  }
}

function tell(saved: Saved): boolean {
  if (!saved.saved) {
    say(saved.says);
    return false;
  }
  say(saved.isSame ? 'It was saved so already.' : `Saved in ${saved.file}.`);
  for (const warning of saved.warnings) say(warning);
  return true;
}

function isYes(answer: string): boolean {
  return /^y(es)?$/i.test(answer);
}

/** A running gateway takes in what was saved; without its listener it needs a restart. */
async function tellGateway({ dataDir, board: { host, port, token } }: Config): Promise<void> {
  const lock = await takeLock(join(dataDir, 'gateway.lock'));
  if (lock !== null) {
    lock.release();
    return say('Start it: coterie start');
  }
  const at = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  try {
    const response = await fetch(
      `http://${at.includes(':') ? `[${at}]` : at}:${port}/api/board/setup/again`,
      {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(token !== null && { authorization: `Bearer ${token}` }),
        },
        body: '{}',
        redirect: 'error',
        signal: AbortSignal.timeout(AGAIN_MS),
      },
    );
    if (!response.ok) throw new Error(`${response.status}`);
    say('The running gateway takes it in.');
  } catch {
    say('A gateway runs; restart it to take this in.');
  }
}
