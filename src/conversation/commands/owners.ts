/**
 * Owners' commands: `/approve ID` and `/deny ID` decide a tool call of any chat (the first decision counts; without an
 * ID they list the pending calls), and the buttons below a pairing request.
 */
import { type AskedCall, isAboutRun } from '../../core/access.js';
import { denialOf, shownName } from '../approvals.js';
import { counted, oneLine, code as quoted } from '../quoting.js';
import {
  type ChatCommand,
  type CommandAnswer,
  type CommandCall,
  type CommandServices,
  changesAlways,
} from './command.js';
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
  changes: changesAlways,
  // It writes its own audit entry.
  audited: null,
  run: (call, services) => decide(call, services, 'approved'),
};

export const deny: ChatCommand = {
  ...approve,
  name: 'deny',
  description: 'Refuse a tool call',
  run: (call, services) => decide(call, services, 'denied'),
};

async function decide(
  { command }: CommandCall,
  services: CommandServices,
  decision: 'approved' | 'denied',
): Promise<CommandAnswer> {
  const { store, clock, audit } = services;
  // Tolerates formatting around a copied ID.
  const id = unquoted(command.argument)
    .replaceAll(/[\s`.]/g, '')
    .toUpperCase();
  if (id === '') return { text: await waiting(services) };
  const call = /^[A-Z0-9]{1,20}$/.test(id) ? await store.askedCall(id, clock.now()) : null;
  if (call === null) return { text: 'No pending approval has that ID. /approve lists them.' };
  const { chat, sender } = command;
  if (call.isOpen) {
    const what = `${call.tool} ${decision} (${id})`;
    await audit.record({ kind: 'call', who: sender.id, where: call.chatId, what, word: sender.id });
  }
  const refusal = decision === 'approved' ? null : await denialOf(services, call);
  const isTold = call.room === command.room;
  const decided = await store.decide({
    ...{ id, by: sender.id, commandId: command.id, now: clock.now() },
    // If that chat reads this answer, it needs no second notice.
    refusal: refusal && (isTold ? { ...refusal, told: null } : refusal),
  });
  if (!('wakes' in decided)) return { text: OVER };
  const allowed = isAboutRun(call) ? 'is allowed, with its whole run.' : 'is allowed, once.';
  const text = `${shownName(call.tool)} (${id}) ${decided.kind === 'approved' ? allowed : 'is denied and will not run.'}`;
  return { text, wakes: [call.chatId].filter((each) => each !== chat.id), resumes: decided.wakes };
}

async function waiting({ store, clock }: CommandServices): Promise<string> {
  const now = clock.now();
  const calls = await store.askedCalls(now);
  if (calls.length === 0) return 'There are no pending approvals.';
  const lines = calls.slice(0, MOST_LISTED).map((call) => `- ${lineOf(call, now)}`);
  const more = calls.length > MOST_LISTED ? [`And ${calls.length - MOST_LISTED} more.`] : [];
  return ['Pending approvals. Use /approve ID or /deny ID:', '', ...lines, ...more].join('\n');
}

function lineOf(call: AskedCall, now: number): string {
  const minutes = counted(Math.max(1, Math.ceil((call.until - now) / MINUTE_MS)), 'minute');
  return `${call.id}: ${shownName(call.tool)}, for ${call.chatId}/${call.personaId}, ${minutes} left`;
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
  changes: changesAlways,
  audited: null,
  run(call, services) {
    const { verb, rest } = verbAndRest(call.command.argument);
    return verb === 'approve' ? letIn(call, services, rest) : refuse(call, services, rest);
  },
};

const REQUEST_OVER = { text: 'That request was already decided, or its code has expired.' };

async function letIn(call: CommandCall, services: CommandServices, code: string): Promise<CommandAnswer> {
  const { store, clock } = services;
  const waiting = await whoWaits(services, code);
  if (!waiting) return REQUEST_OVER;
  // Chats never make anybody an owner; only the command line and the configuration do.
  const told = { member: plain(WELCOME.member), owner: plain(WELCOME.owner) };
  await enter(call, services, `${waiting.id} is let in`);
  const asked = { codeOrId: code, looksLike: null, asOwner: false, now: clock.now() };
  const approved = await store.approve({ ...asked, told });
  if (!approved) return REQUEST_OVER;
  const { id, toldIn } = approved;
  return {
    text: `${quoted(oneLine(waiting.name, NAME_CHARS))} may write to me now. \`coterie pair remove ${id}\` undoes this.`,
    wakes: toldIn === null ? [] : [toldIn],
  };
}

async function refuse(call: CommandCall, services: CommandServices, code: string): Promise<CommandAnswer> {
  const { store, clock } = services;
  const waiting = await whoWaits(services, code);
  if (!waiting) return REQUEST_OVER;
  await enter(call, services, `${waiting.id} is refused`);
  const quietUntil = clock.now() + QUIET_DAYS * DAY_MS;
  const name = await store.refuse({ code, now: clock.now(), quietUntil });
  if (name === null) return REQUEST_OVER;
  return {
    text: `${quoted(oneLine(name, NAME_CHARS))} is refused. I will not ask about them again for ${QUIET_DAYS} days.`,
  };
}

async function whoWaits({ store, clock }: CommandServices, code: string) {
  return (await store.waiting(clock.now())).find((each) => each.code === code);
}

/** Writes the audit entry before the decision takes effect. */
async function enter({ command }: CommandCall, { audit }: CommandServices, what: string): Promise<void> {
  const { sender, chat } = command;
  await audit.record({ kind: 'approval', who: sender.id, where: chat.id, what, word: sender.id });
}

function plain(text: string) {
  return { text, marks: [] };
}
