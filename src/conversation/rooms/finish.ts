/** Step 6 of the route: ends a turn. Its answer, or a sentence on why there is none, goes to transcript and outbox. */
import type { OutgoingFile } from '../../core/channel.js';
import type { FaultCode } from '../../core/errors.js';
import type { PersonaId } from '../../core/ids.js';
import type { TracedStep } from '../../core/tracing.js';
import type { Measured } from '../../core/transcript.js';
import type { TurnContext } from '../context/context.js';
import { savedNote } from '../deliver/memory-note.js';
import { filesOfReply, type ReplyInfo, recipientIn, replyOf } from '../deliver/reply.js';
import { attemptOf } from '../deliver/sender.js';
import { spokenReply } from '../deliver/voice.js';
import { appearanceOf, presentIn } from '../participants.js';
import type { MeteredModel } from '../services.js';
import { roundAfterReply } from './group-round.js';
import { calledOf, turnedTo } from './names.js';
import type { RoomServices, Turn } from './turn.js';
import { deliveriesAnew, versionOffer } from './versions.js';

export type Finished =
  | { kind: 'finished'; isSomebodyNext: boolean }
  /** Aborted, or the claim was lost: nothing was said. */
  | { kind: 'dropped' };

export interface Ending {
  outcome: 'answered' | 'failed' | 'parked';
  /** Why there is no answer; for traces. */
  code?: FaultCode;
  /** The persona's answer, or the error sentence of a failed turn. */
  text: string;
  /** The text for the transcript, if artifacts were taken out of it. */
  kept?: string;
  files?: OutgoingFile[];
  /** The action that replaced words. */
  wordless?: string | undefined;
  speaker: string;
  lateByHours?: number | null;
  /** Meters the turn's usage. */
  meter?: MeteredModel;
  /** Size of the turn's last request, if the server counted it. */
  measured?: Measured | null;
  promptMemory?: TurnContext['promptMemory'];
  /** A line below it: what could not follow an answer that is said anew. */
  aside?: string | null;
  /** It answers untrusted text or was given some. */
  tainted?: boolean;
}

/** In one transaction: messages answered, reply stored, next speakers set, room released. Only this decides what is sent. */
export async function finish(services: RoomServices, work: Turn, ending: Ending): Promise<Finished> {
  const { store, deliver, speech, clock, metrics } = services;
  const { chat, room, channel, personas, turn, claim, batch, revision } = work;
  const { outcome, text, wordless, meter, files, measured = null, promptMemory = null } = ending;
  const spent = meter?.spent(turn.personaId);
  const isAnswered = outcome === 'answered';
  const addressed = isAnswered && !turn.anew ? othersCalled(work, text) : [];
  const exchange = work.exchange && roundAfterReply(work.exchange, addressed, services.settings.caps);
  const late = isAnswered && wordless === undefined ? (ending.lateByHours ?? null) : null;
  const saved = turn.steps.length === 0 ? null : await savedNote(services, chat, turn);
  const note = [saved, isAnswered ? ending.aside : null].filter((line) => line).join('\n') || null;
  const said = { ...saidBy(work, ending.speaker, late), note };
  const offer = isAnswered ? await versionOffer(services, work) : null;
  const deliveries = deliveriesAnew(work, replyOf(channel, said, text), isAnswered, offer);
  if (isAnswered && speech !== null && channel.voiceNotes) {
    const persona = personas.find(({ id }) => id === turn.personaId);
    deliveries.push(...spokenReply(speech, channel, chat, turn.id, persona, batch, text, deliveries));
  }
  if (files) deliveries.push(...filesOfReply(channel, said, files, deliveries.length === 0));
  // If the chat's delivery lane is free, the first delivery is claimed in the same transaction and sent at once.
  const lane = deliver.take(chat.id, chat.kind, channel);
  try {
    const finished = await store.finish({
      claim,
      turnId: turn.id,
      outcome,
      reply: isAnswered ? (wordless ?? ending.kept ?? text) : null,
      wordless: wordless !== undefined,
      tainted: ending.tainted ?? false,
      hearers: [...new Set([...presentIn(chat, personas), ...(work.exchange?.party ?? [])])],
      addressed,
      exchange,
      deliveries,
      send: lane ? attemptOf(services, channel, recipientIn(chat, room)) : null,
      usage: spent?.usage ?? null,
      personId: spent?.personId,
      measured,
      given: isAnswered ? promptMemory : null,
      ...(offer && { offer }),
      now: clock.now(),
    });
    if (finished === 'lost') return { kind: 'dropped' };
    meter?.paid();
    services.tracing?.tell(traced(work, ending, clock.now()));
    if (lane && finished.first) lane.send(finished.first, deliveries.length);
    else deliver.wake(chat.id);
  } finally {
    lane?.leave();
  }
  if (isAnswered && promptMemory) {
    services.lastRequests.keep({ room, personaId: turn.personaId, revision }, { memory: promptMemory });
  }
  if (isAnswered && turn.anew) services.lastRequests.saidAnew(room, revision);
  services.recall.heard(room);
  metrics.count('turns_total', { outcome });
  return { kind: 'finished', isSomebodyNext: exchange !== null };
}

/** The whole turn, from its begin, whichever processes worked on it. */
function traced({ room, turn, batch }: Turn, { outcome, code }: Ending, until: number): TracedStep {
  return {
    kind: 'turn',
    turnId: turn.id,
    agent: turn.personaId,
    outcome,
    error: outcome === 'answered' ? undefined : (code ?? outcome),
    answers: batch.flatMap(({ author, platformMessageId }) =>
      author.kind === 'person' && platformMessageId !== null ? [{ room, platformMessageId }] : [],
    ),
    from: turn.startedAt,
    until,
  };
}

/** The data a reply carries besides its text, both while it is written and when it is final. */
export function saidBy(
  { chat, channel, personas, turn, batch }: Turn,
  speaker: string,
  lateByHours: number | null,
): ReplyInfo {
  const { id: turnId, personaId } = turn;
  const appearance = appearanceOf(channel, chat, personas, personaId);
  return { turnId, personaId, speaker, appearance, kind: chat.kind, batch, lateByHours, note: null };
}

/** The other personas present that the reply addresses. */
function othersCalled({ chat, personas, turn }: Turn, reply: string): PersonaId[] {
  const others = presentIn(chat, personas).filter((id) => id !== turn.personaId);
  if (others.length === 0) return [];
  return turnedTo(reply, personas.filter(({ id }) => others.includes(id)).map(calledOf));
}
