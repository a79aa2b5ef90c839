/**
 * What an owner chose about a stranger who waits: lets them in as `coterie pair approve CODE` does, or refuses them for
 * a while. Nobody can type it.
 */
import { type Command, type CommandAnswer, type CommandServices, changesAlways } from './command.js';
import { verbAndRest } from './parse.js';
import { oneLine, code as quoted } from './quoting.js';

const QUIET_DAYS = 7;
const DAY_MS = 86_400_000;
/** Somebody may call themselves anything. */
export const NAME_CHARS = 60;

/** What somebody is told who was let in. */
export const WELCOME = {
  member: 'You are in. Write to me whenever you like; /help shows what I can do.',
  owner: 'You are in, and as the first one you are my owner. /help shows what I can do.',
};

export const pairing: Command = {
  name: 'pairing',
  aliases: [],
  description: 'Let in who waits, or refuse them',
  ownersOnly: true,
  changes: changesAlways,
  run(call, services) {
    const { verb, rest } = verbAndRest(call.command.argument);
    return verb === 'approve' ? approve(services, rest) : refuse(services, rest);
  },
};

const OVER = { text: 'That request is over: somebody has decided already, or the code has expired.' };

async function approve({ store, clock }: CommandServices, code: string): Promise<CommandAnswer> {
  const [waiting] = (await store.waiting(clock.now())).filter((each) => each.code === code);
  // There is an owner, who has just pressed the button: nobody else becomes one by it.
  const told = { member: plain(WELCOME.member), owner: plain(WELCOME.owner) };
  const approved = await store.approve({ codeOrId: code, now: clock.now(), told, asMember: true });
  if (!approved) return OVER;
  const { id, toldIn } = approved;
  return {
    text: `${quoted(oneLine(waiting?.name ?? id, NAME_CHARS))} may talk now. \`coterie pair remove ${id}\` takes it back.`,
    wakes: toldIn === null ? [] : [toldIn],
  };
}

async function refuse({ store, clock }: CommandServices, code: string): Promise<CommandAnswer> {
  const quietUntil = clock.now() + QUIET_DAYS * DAY_MS;
  const name = await store.refuse({ code, now: clock.now(), quietUntil });
  if (name === null) return OVER;
  return {
    text: `${quoted(oneLine(name, NAME_CHARS))} is not let in, and not asked about again for ${QUIET_DAYS} days.`,
  };
}

function plain(text: string) {
  return { text, marks: [] };
}
