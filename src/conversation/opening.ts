/**
 * Step 3 of the route, for a claimed room: what of what waits is for whom. Who decides it is pure (`admit.ts`); here is
 * gathered what that takes: spoken words, the chat's personas, and where nobody was named, an arbiter's word.
 */
import type { Channel } from '../core/channel.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Usage } from '../core/model.js';
import type { Persona, Personas } from '../core/persona.js';
import type { ChatRecord, ChatStore, Claimed } from '../core/store.js';
import type { StoredMessage } from '../core/transcript.js';
import type { AccessRules } from './access.js';
import { type Admission, admit } from './admit.js';
import type { Arbiter, Choice } from './arbiter.js';
import type { Deliver } from './deliver.js';
import type { Caps } from './exchange.js';
import { type FilesParts, type FilesRead, mayAddress, readVoices } from './files.js';
import { presentIn } from './presence.js';
import { recipientIn } from './reply.js';

export interface OpeningParts {
  store: Pick<ChatStore, 'lastReply'>;
  log: Log;
  files: FilesParts;
  deliver: Pick<Deliver, 'typing'>;
  personas: Personas;
  rulesFor(channel: string): AccessRules;
  /** How often in a row programs are answered is bounded by the replies. */
  caps: Caps;
  /** Where an arbiter says who answers, when nobody was named. */
  arbiter: Arbiter | null;
}

export interface Opening {
  /** Of the chat, as just read. */
  personas: Persona[];
  admission: Admission;
  /** What an arbiter was asked for, where the server counted it. */
  usage: Usage | null;
  /** What is to be told of files that could not be listened to. */
  notices: FilesRead['notices'];
}

/** null when it was given up, or the claim is lost. */
export async function openRoom(
  parts: OpeningParts,
  claimed: Claimed,
  channel: Channel,
  signal: AbortSignal,
): Promise<Opening | null> {
  const heard = await withSpokenWords(parts, claimed, channel, signal);
  if (heard === null) return null;
  const { messages, notices } = heard;
  const personas = await met(parts, claimed.chat, messages);
  const admitted = await admitWaiting(parts, { ...claimed, waiting: messages }, personas, signal);
  return { personas, ...admitted, notices };
}

/** A voice note may name whom it is for: so it is heard before anybody decides that. */
async function withSpokenWords(
  parts: OpeningParts,
  { claim, chat, waiting }: Claimed,
  channel: Channel,
  signal: AbortSignal,
): Promise<FilesRead | null> {
  const { files, deliver } = parts;
  if (!waiting.some((message) => mayAddress(files.media, message))) return { messages: waiting, notices: [] };
  // Whoever speaks to the bot sees that it listens; in a group it is not known yet whether anybody will answer.
  const stopTyping =
    chat.kind === 'direct'
      ? deliver.typing(channel, chat.id, recipientIn({ claim, chat }), chat.activePersona)
      : () => {};
  const ask = { claim, channel, signal, messages: waiting, chatId: chat.id };
  return readVoices(files, ask).finally(stopTyping);
}

/** The chat's personas; one whose own account somebody has written to comes to be there. */
async function met(
  { personas, log }: OpeningParts,
  { id, away }: ChatRecord,
  messages: StoredMessage[],
): Promise<Persona[]> {
  const there = await personas.list(id);
  const called = new Set(messages.flatMap(({ addresses }) => addresses ?? []));
  const strangers = [...called].filter(
    (each) => !there.some((persona) => persona.id === each) && !away?.includes(each),
  );
  const made = await Promise.all(
    strangers.map((stranger) =>
      // Somebody else answers where a folder cannot be written.
      personas.meet(id, stranger).catch((error) => {
        log.warn({ chat: id, persona: stranger, reason: describe(error) }, 'a persona could not be made');
        return false;
      }),
    ),
  );
  return made.includes(true) ? personas.list(id) : there;
}

async function admitWaiting(
  parts: OpeningParts,
  claimed: Claimed,
  personas: Persona[],
  signal: AbortSignal,
): Promise<Pick<Opening, 'admission' | 'usage'>> {
  const { chat, waiting, turnsForBots } = claimed;
  const admission = admit(waiting, personas, {
    ...chat,
    requireMention: parts.rulesFor(chat.channel).requireMention,
    tiredOfBots: turnsForBots >= parts.caps.replies,
  });
  const { turn } = admission;
  if (parts.arbiter === null || turn === null || turn.open === null) return { admission, usage: null };
  const { personaId, usage } = await arbitrate(parts, parts.arbiter, { claimed, turn, personas, signal });
  if (personaId !== null) return { admission: { ...admission, turn: { ...turn, personaId } }, usage };
  const noted = [...admission.noted, ...turn.batch].sort((a, b) => a.id - b.id);
  return { admission: { turn: null, noted }, usage };
}

async function arbitrate(
  parts: OpeningParts,
  arbiter: Arbiter,
  ask: {
    claimed: Claimed;
    turn: NonNullable<Admission['turn']>;
    personas: Persona[];
    signal: AbortSignal;
  },
): Promise<Choice> {
  const { turn, personas, signal } = ask;
  const { claim, chat } = ask.claimed;
  const last = await parts.store.lastReply(claim.room);
  const present = presentIn(chat, personas).flatMap((id) => personas.filter((each) => each.id === id));
  return arbiter.choose({
    ...{ room: claim.room, present, batch: turn.batch, signal },
    ...{ last: last?.personaId ?? null, sure: turn.open === 'sure' },
  });
}
