/** `/approve` and `/deny`: decide a tool call of any chat; the buttons below a pairing request. */
import { isAboutRun } from '../../core/access.js';
import { refusalTo, shownName } from '../approvals.js';
import { counted, oneLine, code as quoted } from '../quoting.js';
import { type ChatCommand, type CommandAnswer, type CommandCall, firstOf } from './command.js';
import { unquoted, verbAndRest } from './parse.js';

const MOST_LISTED = 20;
const MINUTE_MS = 60_000;
const OVER =
  'That approval is closed: it was decided, has expired, or was stopped. /approve lists the pending ones.';

export const approve: ChatCommand = {
  name: 'approve',
  aliases: [],
  description: 'Allow a tool call; without an ID, list pending approvals',
  ownersOnly: true,
  changes: () => true,
  // It writes its own audit entry.
  audited: null,
  run: (call) => decide(call, 'approved'),
};

export const deny: ChatCommand = {
  ...approve,
  name: 'deny',
  description: 'Refuse a tool call',
  run: (call) => decide(call, 'denied'),
};

async function decide(call: CommandCall, decision: 'approved' | 'denied'): Promise<CommandAnswer> {
  const { command, store, clock, audit } = call;
  // Tolerates formatting around a copied ID.
  const id = unquoted(command.argument)
    .replaceAll(/[\s`.]/g, '')
    .toUpperCase();
  if (id === '') return { text: await waiting(call) };
  const [asked] = /^[A-Z0-9]{1,20}$/.test(id) ? await store.askedCalls({ id }, clock.now()) : [];
  if (asked === undefined) return { text: 'No pending approval has that ID. /approve lists them.' };
  const { chat, sender } = command;
  if (asked.isOpen) {
    const what = `${asked.tool} ${decision} (${id})`;
    await audit.record({ kind: 'call', who: sender.id, where: asked.chatId, what, word: sender.id });
  }
  const refusal = decision === 'approved' ? null : await refusalTo(call, asked, 'denied');
  // If that chat reads this answer, it needs no second notice.
  if (refusal && asked.room === command.room) refusal.told = null;
  const resumes = await store.decide({ id, by: sender.id, commandId: command.id, now: clock.now(), refusal });
  if (resumes === null) return { text: OVER };
  const allowed = isAboutRun(asked) ? 'is allowed, with its whole run.' : 'is allowed, once.';
  const text = `${shownName(asked.tool)} (${id}) ${refusal === null ? allowed : 'is denied and will not run.'}`;
  return { text, wakes: [asked.chatId].filter((each) => each !== chat.id), resumes };
}

async function waiting({ store, clock }: CommandCall): Promise<string> {
  const now = clock.now();
  const calls = await store.askedCalls('open', now);
  if (calls.length === 0) return 'There are no pending approvals.';
  const lines = calls.map(({ id, tool, chatId, personaId, until }) => {
    const minutes = counted(Math.max(1, Math.ceil((until - now) / MINUTE_MS)), 'minute');
    return `- ${id}: ${shownName(tool)}, for ${chatId}/${personaId}, ${minutes} left`;
  });
  const shown = firstOf(lines, MOST_LISTED, (left) => `And ${left} more.`);
  return ['Pending approvals. Use /approve ID or /deny ID:', '', ...shown].join('\n');
}

const QUIET_DAYS = 7;
const DAY_MS = 86_400_000;
/** People choose their own names, of any length. */
export const NAME_CHARS = 60;

/** Sent to an approved person. */
export const WELCOME = {
  member: 'You are in. Write to me whenever you like; /help shows what I can do.',
  owner: 'You are in, and my owner from now on. /help shows what I can do.',
};

/** An owner's choice about a pairing request: approves it like `coterie pair approve CODE`, or refuses it for a while. */
export const pairing: ChatCommand = {
  name: 'pairing',
  aliases: [],
  description: 'Approve or refuse a pairing request',
  ownersOnly: true,
  changes: () => true,
  audited: null,
  async run({ store, clock, audit, command: { argument, sender, chat } }) {
    const { verb, rest: code } = verbAndRest(argument);
    const now = clock.now();
    const waits = (await store.waiting(now)).find((each) => each.code === code);
    if (!waits) return REQUEST_OVER;
    const name = quoted(oneLine(waits.name, NAME_CHARS));
    const what = `${waits.id} is ${verb === 'approve' ? 'let in' : 'refused'}`;
    // The entry is written before the decision takes effect.
    await audit.record({ kind: 'approval', who: sender.id, where: chat.id, what, word: sender.id });
    if (verb !== 'approve') {
      const refused = await store.refuse({ code, now, quietUntil: now + QUIET_DAYS * DAY_MS });
      const text = `${name} is refused. I will not ask about them again for ${QUIET_DAYS} days.`;
      return refused ? { text } : REQUEST_OVER;
    }
    // Chats never make anybody an owner; only the command line and the configuration do.
    const told = { member: { text: WELCOME.member, marks: [] }, owner: { text: WELCOME.owner, marks: [] } };
    const approved = await store.approve({ codeOrId: code, looksLike: null, asOwner: false, now, told });
    if (!approved) return REQUEST_OVER;
    const { id, toldIn } = approved;
    const text = `${name} may write to me now. \`coterie pair remove ${id}\` undoes this.`;
    return { text, wakes: toldIn === null ? [] : [toldIn] };
  },
};

const REQUEST_OVER = { text: 'That request was already decided, or its code has expired.' };
