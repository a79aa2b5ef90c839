/**
 * What an owner chose about a stranger who waits: lets them in as `coterie pair approve CODE` does, or refuses them for
 * a while. Nobody can type it.
 */
import { oneLine, code as quoted } from '../quoting.js';
import {
  type Command,
  type CommandAnswer,
  type CommandCall,
  type CommandServices,
  changesAlways,
} from './command.js';
import { verbAndRest } from './parse.js';

const QUIET_DAYS = 7;
const DAY_MS = 86_400_000;
/** Somebody may call themselves anything. */
export const NAME_CHARS = 60;

/** What somebody is told who was let in. */
export const WELCOME = {
  member: 'You are in. Write to me whenever you like; /help shows what I can do.',
  owner: 'You are in, and my owner from now on. /help shows what I can do.',
};

export const pairing: Command = {
  name: 'pairing',
  aliases: [],
  description: 'Let in who waits, or refuse them',
  ownersOnly: true,
  changes: changesAlways,
  audited: null,
  run(call, services) {
    const { verb, rest } = verbAndRest(call.command.argument);
    return verb === 'approve' ? approve(call, services, rest) : refuse(call, services, rest);
  },
};

const OVER = { text: 'That request is over: somebody has decided already, or the code has expired.' };

async function approve(call: CommandCall, services: CommandServices, code: string): Promise<CommandAnswer> {
  const { store, clock } = services;
  const waiting = await whoWaits(services, code);
  if (!waiting) return OVER;
  // Nobody becomes an owner in a chat: that is said on the command line, or in the configuration.
  const told = { member: plain(WELCOME.member), owner: plain(WELCOME.owner) };
  await enter(call, services, `${waiting.id} is let in`);
  const asked = { codeOrId: code, looksLike: null, asOwner: false, now: clock.now() };
  const approved = await store.approve({ ...asked, told });
  if (!approved) return OVER;
  const { id, toldIn } = approved;
  return {
    text: `${quoted(oneLine(waiting.name, NAME_CHARS))} may talk now. \`coterie pair remove ${id}\` takes it back.`,
    wakes: toldIn === null ? [] : [toldIn],
  };
}

async function refuse(call: CommandCall, services: CommandServices, code: string): Promise<CommandAnswer> {
  const { store, clock } = services;
  const waiting = await whoWaits(services, code);
  if (!waiting) return OVER;
  await enter(call, services, `${waiting.id} is refused`);
  const quietUntil = clock.now() + QUIET_DAYS * DAY_MS;
  const name = await store.refuse({ code, now: clock.now(), quietUntil });
  if (name === null) return OVER;
  return {
    text: `${quoted(oneLine(name, NAME_CHARS))} is not let in, and not asked about again for ${QUIET_DAYS} days.`,
  };
}

async function whoWaits({ store, clock }: CommandServices, code: string) {
  return (await store.waiting(clock.now())).find((each) => each.code === code);
}

/** By whom it was decided; before it is. */
async function enter({ command }: CommandCall, { audit }: CommandServices, what: string): Promise<void> {
  const { sender, chat } = command;
  await audit.record({ kind: 'approval', who: sender.id, where: chat.id, what, word: sender.id });
}

function plain(text: string) {
  return { text, marks: [] };
}
