/** `/again`, `/continue`, `/edit`, `/undo`: the newest answer of the room, said anew or taken back (docs/decisions/0066). */
import type { Permission } from '../../core/access.js';
import type { Anew, HowAnew, NewestAnswer } from '../../core/anew.js';
import type { CommandEffect } from '../../core/store.js';
import { isAfter, type Step } from '../../core/transcript.js';
import { keepMemory } from '../anew-memory.js';
import type { Rights } from '../rights.js';
import type { BaseServices } from '../services.js';
import { withoutRepeatable } from '../turn/steps.js';
import { type CommandAnswer, type CommandCall, commandOf, NOT_CHECKED } from './command.js';

const NOTHING = 'There is no answer here that I could say anew.';
const A_GREETING = 'My newest message here is a greeting, which answers nobody. /edit TEXT changes it.';
const NOT_THEIRS = 'Only the person who was answered, an administrator or an owner can do that.';
const BUSY = {
  answering: 'An answer is being written. Wait for it or stop it (/stop), then try again.',
  sending: 'My last answer is still being sent. Please try again when it is there.',
  waiting: 'There are messages that I have not answered yet. Wait for the answer, then try again.',
};
const NOT_THE_NEWEST = 'Something was said meanwhile, so nothing was changed.';
const TEXT_IS_MISSING = 'Write the new text behind it: /edit TEXT';
const TOO_FAR_BACK =
  'That is too far back: I remember it only as a summary. /reset forgets the conversation.';

/** Beyond this many turns between personas, nobody counts as answered. */
const MOST_TURNS_BACK = 20;

export const again = commandOf(
  'again',
  'Answer anew, as you wish, or show the version with a number',
  (call) =>
    onNewest(call, async (answer) => {
      const argument = call.command.argument.trim();
      if (!/^\d{1,6}$/.test(argument)) return sayAgain(call, answer, argument);
      return showVersion(call, answer, Number(argument));
    }),
  {
    async mayTake(services, { room, actor: { chat, sender }, rights }) {
      const answer = await services.store.newestAnswer(room);
      if (answer === null) return false;
      return (await mayChangeAnswer(services, answer, chat.kind, sender.id, rights)) === 'yes';
    },
  },
);

export const goOn = commandOf('continue', 'Go on with my last answer', (call) =>
  onNewest(call, async (answer) => {
    if (answer.batch.length === 0) return { text: A_GREETING };
    const steps = await stepsOf(call, answer.turnId);
    return begin(call, answer, { how: 'more', version: null, text: '', memory: answer.shown.memory }, steps);
  }),
);

export const edit = commandOf('edit', 'Replace my last answer with your text', (call) =>
  onNewest(call, async (answer) => {
    const text = call.command.argument.trim();
    if (text === '') return { text: TEXT_IS_MISSING };
    const steps = await stepsOf(call, answer.turnId);
    return begin(call, answer, { how: 'edit', version: null, text, memory: answer.shown.memory }, steps);
  }),
);

export const undo = commandOf('undo', 'Take back the last exchange', (call) =>
  onNewest(call, async ({ messageId, personaId, shown }) => {
    const { store, command } = call;
    const { windowAfter } = await store.view(command.room, personaId);
    const place = { heardAfter: messageId - 1, messageId };
    if (!isAfter(place, windowAfter)) return { text: TOO_FAR_BACK };
    // Nothing of the exchange may be written to memory meanwhile.
    await call.windows.halt(command.room, personaId);
    const kept = await keepMemory(call, command.chat.id, { held: shown.memory, memory: [] });
    const effects: CommandEffect[] = [{ kind: 'unsay', room: command.room, messageId }];
    const text = ['Taken back.', kept].filter((line) => line !== null).join(' ');
    return { text, effects, refused: NOT_THE_NEWEST };
  }),
);

/** Runs if there is a newest answer that this person may change now. */
async function onNewest(
  call: CommandCall,
  act: (answer: NewestAnswer) => Promise<CommandAnswer>,
): Promise<CommandAnswer> {
  const { command } = call;
  const answer = await newestAtRest(call);
  if (answer === null) return { text: NOTHING };
  const permission = await mayChangeAnswer(call, answer, command.chat.kind, command.sender.id, call);
  if (permission === 'unknown') return { text: NOT_CHECKED };
  if (permission === 'no') return { text: NOT_THEIRS };
  return answer.busy === null ? act(answer) : { text: BUSY[answer.busy] };
}

/** People see an answer a moment before its end is stored, and may be quick. */
async function newestAtRest({ store, clock, command }: CommandCall): Promise<NewestAnswer | null> {
  const began = clock.now();
  for (;;) {
    const answer = await store.newestAnswer(command.room);
    const patience = answer?.busy ? PATIENCE_MS[answer.busy] : 0;
    if (clock.now() - began >= patience) return answer;
    await clock.sleep(LOOK_AGAIN_MS);
  }
}

const PATIENCE_MS = { answering: 300, waiting: 0, sending: 5_000 };
const LOOK_AGAIN_MS = 50;

/** Those whom it answered may, and who may change things in the chat. */
export async function mayChangeAnswer(
  services: BaseServices,
  answer: NewestAnswer,
  chatKind: 'direct' | 'group',
  senderId: string,
  rights: Rights,
): Promise<Permission> {
  if (chatKind === 'direct') return 'yes';
  return (await isForThem(services, answer, senderId)) ? 'yes' : rights.mayChange();
}

/** Also if personas spoke to each other since. */
async function isForThem(
  { store }: BaseServices,
  { batch }: NewestAnswer,
  senderId: string,
): Promise<boolean> {
  const seen = new Set<string>();
  const left = [...batch];
  for (let message = left.shift(); message && seen.size < MOST_TURNS_BACK; message = left.shift()) {
    const { author, turnId } = message;
    if (author.kind === 'person' && author.id === senderId) return true;
    if (author.kind !== 'persona' || turnId === null || seen.has(turnId)) continue;
    seen.add(turnId);
    left.push(...(await store.messages({ turnId })));
  }
  return false;
}

async function stepsOf({ store }: CommandCall, turnId: string | null): Promise<Step[]> {
  return turnId === null ? [] : store.stepsOf(turnId);
}

async function sayAgain(call: CommandCall, answer: NewestAnswer, wish: string): Promise<CommandAnswer> {
  if (answer.batch.length === 0) return { text: A_GREETING };
  const { chat } = call.command;
  const { personaId } = answer;
  const persona = await call.personas.get(chat.id, personaId);
  const whose = { chatId: chat.id, personaId, senderId: call.command.sender.id, channel: chat.channel };
  const allowed = persona?.tools ?? null;
  const { tools } = call.toolsFor({ ...whose, kind: 'answer', allowed, chatKind: chat.kind });
  await call.windows.halt(call.command.room, personaId);
  const steps = withoutRepeatable(await stepsOf(call, answer.turnId), tools);
  return begin(call, answer, { how: 'again', version: null, text: wish, memory: [] }, steps);
}

async function showVersion(call: CommandCall, answer: NewestAnswer, number: number): Promise<CommandAnswer> {
  const { versions, shown } = answer;
  const version = versions.find((each) => each.number === number);
  if (version === undefined) {
    const numbers = versions.map((each) => each.number).join(', ');
    const there = versions.length === 1 ? 'There is only one version.' : `There are the versions ${numbers}.`;
    return { text: `${there} /again makes another.` };
  }
  if (version.number === shown.number) return { text: `Version ${number} is the one that is shown.` };
  const { text, memory, tainted } = version;
  const steps = await stepsOf(call, version.turnId);
  const how = { how: 'version' as const, version: number, text, memory, ...(tainted && { tainted }) };
  return begin(call, answer, how, steps);
}

/** Replaces the shown answer. */
export async function begin(
  { command, channels, newId }: CommandCall,
  { messageId, turnId, shown }: NewestAnswer,
  how: HowAnew,
  steps: Step[],
): Promise<CommandAnswer> {
  const { room, chat, sender, platformMessageId } = command;
  const taint = shown.tainted && how.how === 'edit' ? { tainted: true as const } : {};
  const anew: Anew = { ...how, ...taint, messageId, turnId, by: sender, held: shown.memory };
  const effects: CommandEffect[] = [{ kind: 'anew', room, turnId: newId(), anew, steps }];
  // The answer is shown where it stands; a native command waits for words of its own.
  const isAwaited = (await channels.get(chat.channel)?.awaitsAnswer?.(platformMessageId)) === true;
  return { text: isAwaited ? SIGN[how.how] : '', effects, refused: NOT_THE_NEWEST };
}

const SIGN: Record<Anew['how'], string> = { again: '🔁', more: '…', edit: '✏️', version: '↔️' };
