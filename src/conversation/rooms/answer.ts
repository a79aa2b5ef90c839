/**
 * Steps 4 to 6 of the route for one turn, from top to bottom: build the context, ask the model (compacting until the
 * request fits), show the reply while it is written, finish.
 */
import { describe, Fault, sentenceOf } from '../../core/errors.js';
import type { PersonaId } from '../../core/ids.js';
import type { Usage } from '../../core/model.js';
import { personaName } from '../../core/persona.js';
import type { Alarm } from '../../core/route-store.js';
import type { Step, StoredMessage } from '../../core/transcript.js';
import type { Measured } from '../../core/view.js';
import { buildContext, type Context } from '../context/context.js';
import { recipientIn, replyOf, type Said } from '../deliver/reply.js';
import { savedNote } from '../deliver/saved.js';
import { attemptOf } from '../deliver/send-one.js';
import { type Live, NOT_LIVE } from '../deliver/showing.js';
import { spokenReply } from '../deliver/voice-note.js';
import { greet } from '../greeting.js';
import { appearanceOf, presentIn } from '../participants.js';
import { stepMessages } from '../turn/steps.js';
import { tokensOf } from '../turn/tokens.js';
import { runTurn, type TurnOutcome } from '../turn/turn.js';
import { calledOf, turnedTo } from './addressing.js';
import { withFiles, withFilesOf } from './files-of-turn.js';
import type { RoomServices, Turn } from './room-services.js';
import { spoken } from './speakers.js';

export type AnswerEnd =
  | { kind: 'finished'; isSomebodyNext: boolean }
  | { kind: 'suspended'; alarm: Alarm | null }
  /** Aborted, or the claim was lost: nothing was said. */
  | { kind: 'dropped' };

const HOUR_MS = 3_600_000;

export async function answer(services: RoomServices, begun: Turn, signal: AbortSignal): Promise<AnswerEnd> {
  const { store, windows, clock, log, metrics } = services;
  const started = clock.now();
  const work = await withFiles(services, begun, signal);
  if (work === null) return { kind: 'dropped' };

  const { chat, room, turn, batch, personas, claim } = work;
  const { personaId } = turn;
  const senderId = senderOf(batch);
  const lateByHours = waitedTooLong(batch, turn.startedAt, services.settings.maxAgeMs);
  const tools = services.toolsFor({
    kind: 'answer',
    chatId: chat.id,
    personaId,
    senderId,
    channel: chat.channel,
    chatKind: chat.kind,
  });
  const subject = { chat, room, personaId, personas };
  let { revision } = work;
  const gather = () =>
    buildContext(services, services.windowCopies, {
      ...subject,
      revision,
      batch,
      tools,
      now: started,
      lateByHours,
    });
  const ask = async (context: Context, live: Live) => {
    const stopWaiting = windows.giveWay();
    return runTurn(services, {
      turnId: turn.id,
      room,
      tools,
      maxToolRounds: services.settings.maxToolRounds,
      persona: context.persona,
      messages: context.messages,
      seen: context.seen,
      authorisation: {
        chatId: chat.id,
        personaId,
        senderId,
        channel: chat.channel,
        controlChats: services.rulesFor(chat.channel).controlChats,
      },
      cause: { kind: 'turn', personaId, turnId: turn.id },
      steps: turn.steps,
      save(step) {
        stopWaiting();
        return step.kind === 'waiting'
          ? store.suspend(claim, turn.id, step, clock.now())
          : store.addStep(claim, turn.id, step);
      },
      show(text) {
        if (text !== '') stopWaiting();
        live.tell(text);
      },
      signal,
    }).finally(stopWaiting);
  };

  let context = await gather();
  if (context.unread.length > 0) {
    const read = await withFilesOf(services, work, context.unread, signal);
    if (read === null) return { kind: 'dropped' };
    revision = read.revision;
    context = await gather();
  }
  // A persona that has said nothing here yet greets a person first, and is to know that it did.
  const isFirst = context.sizes.messages <= batch.length + 1 && turn.steps.length === 0 && senderId !== '';
  const appearing = { chat, room, persona: context.persona, personas };
  if (isFirst && (await greet(services, appearing, batch))) context = await gather();
  if (windows.isFull(subject, context.sizes, context.view.measured)) {
    await windows.makeRoom(subject, turn.id, null);
    context = await gather();
  }
  const live = liveFor(services, work, context.persona.name, lateByHours);
  signal.addEventListener('abort', live.end, { once: true });
  let outcome: TurnOutcome;
  try {
    outcome = await ask(context, live);
    if (outcome.kind === 'failed' && outcome.fault.code === 'context_too_long' && !signal.aborted) {
      log.warn({ room, why: describe(outcome.fault) }, 'a request did not fit; compacting first');
      await windows.makeRoom(subject, turn.id, context.requestTokens);
      context = await gather();
      outcome = await ask(context, live);
    }
  } finally {
    live.end();
  }
  if (outcome.kind === 'dropped') return { kind: 'dropped' };
  if (outcome.kind === 'suspended') {
    services.recall.heard(room);
    const { waitsFor, until } = outcome;
    return { kind: 'suspended', alarm: until === null ? null : { waitsFor, at: until } };
  }

  const fault = faultOf(outcome);
  if (fault) {
    log.warn(
      { code: fault.code, room, turn: turn.id, why: describe(fault) },
      'the model gave no answer; the chat is told',
    );
  }
  const measured = windows.credible(room, personaId, measuredOf(outcome, context, turn.steps));
  const finished = await finish(services, work, {
    outcome: fault ? 'failed' : 'answered',
    text: fault ? fault.sentence : outcome.kind === 'answered' ? outcome.text : '',
    wordless: (outcome.kind === 'answered' && outcome.wordless) || null,
    speaker: context.persona.name,
    lateByHours,
    usage: outcome.usage,
    measured,
    promptMemory: context.promptMemory,
  });
  if (outcome.kind === 'answered') {
    windows.consider(subject, context.sizes, measured ?? context.view.measured, outcome.cut === true);
  }
  metrics.observe('turn_seconds', (clock.now() - started) / 1000);
  return finished;
}

/** Gives up on a turn: its messages count as answered, and the chat gets one plain sentence about the failure. */
export async function park(services: RoomServices, work: Turn): Promise<void> {
  const { id, personaId, crashes, attempts } = work.turn;
  services.log.error(
    { turn: id, room: work.room, crashes, attempts },
    'a turn failed too often and is given up (parked); the chat is told',
  );
  await finish(services, work, {
    outcome: 'parked',
    text: sentenceOf(new Fault('internal', 'parked')),
    wordless: null,
    speaker: personaName(work.personas, personaId),
    lateByHours: null,
    usage: null,
    measured: null,
    promptMemory: null,
  });
}

interface Ending extends Pick<Context, 'promptMemory'> {
  outcome: 'answered' | 'failed' | 'parked';
  /** What the persona said, or the error sentence of a turn that failed. */
  text: string;
  /** What it did instead of saying anything; null if it spoke. */
  wordless: string | null;
  speaker: string;
  lateByHours: number | null;
  usage: Usage | null;
  /** Size of the turn's last request, if the server counted it. */
  measured: Measured | null;
}

/**
 * Step 6, one transaction: marks the messages as answered, adds the reply to the transcript and the outbox, makes the
 * personas it addresses the next speakers, and releases the room. This is the only place that decides what is delivered.
 */
async function finish(services: RoomServices, work: Turn, ending: Ending): Promise<AnswerEnd> {
  const { store, deliver, clock, metrics } = services;
  const { chat, room, channel, personas, turn, claim } = work;
  const isAnswered = ending.outcome === 'answered';
  const addressed = isAnswered ? othersCalled(work, ending.text) : [];
  const exchange = work.exchange && spoken(work.exchange, addressed, services.settings.caps);
  const late = isAnswered && ending.wordless === null ? ending.lateByHours : null;
  const said = { ...saidBy(work, ending.speaker, late), note: await savedNote(services, chat, turn) };
  const deliveries = replyOf(channel, said, ending.text);
  if (isAnswered) deliveries.push(...spokenReply(services, work, ending.text, deliveries));
  // If the chat's delivery lane is free, the first delivery is claimed in the same transaction and sent at once.
  const lane = deliver.take(chat.id, chat.kind, channel);
  try {
    const finished = await store.finish({
      claim,
      turnId: turn.id,
      outcome: ending.outcome,
      reply: isAnswered ? (ending.wordless ?? ending.text) : null,
      wordless: ending.wordless !== null,
      hearers: [...new Set([...presentIn(chat, personas), ...(work.exchange?.party ?? [])])],
      addressed,
      exchange,
      deliveries,
      send: lane ? attemptOf(services, channel, recipientIn(chat, room)) : null,
      usage: ending.usage,
      measured: ending.measured,
      given: isAnswered ? ending.promptMemory : null,
      now: clock.now(),
    });
    if (finished === 'lost') return { kind: 'dropped' };
    if (lane && finished.first) lane.send(finished.first, deliveries.length);
    else deliver.wake(chat.id);
  } finally {
    lane?.leave();
  }
  if (isAnswered && ending.promptMemory)
    services.windowCopies.noteGiven(room, turn.personaId, ending.promptMemory);
  services.recall.heard(room);
  metrics.count('turns_total', { outcome: ending.outcome });
  return { kind: 'finished', isSomebodyNext: exchange !== null };
}

/** Shows the reply while it is written, if the channel can and the configuration allows it. */
function liveFor(services: RoomServices, work: Turn, speaker: string, lateByHours: number | null): Live {
  const { chat, room, channel, turn } = work;
  const canShow =
    channel.preview !== undefined || (channel.edit !== undefined && channel.remove !== undefined);
  if (!canShow || !services.streams(channel.name)) return NOT_LIVE;
  const said = saidBy(work, speaker, lateByHours);
  return services.deliver.live({
    turnId: turn.id,
    chatId: chat.id,
    channel,
    to: recipientIn(chat, room),
    shown: turn.shown,
    deliveriesOf: (text) => replyOf(channel, said, text),
  });
}

/** What a reply carries besides its text: the same while it is written and when it is final. */
function saidBy(
  { chat, channel, personas, turn, batch }: Turn,
  speaker: string,
  lateByHours: number | null,
): Said {
  const { id: turnId, personaId } = turn;
  const appearance = appearanceOf(channel, chat, personas, personaId);
  return { turnId, personaId, speaker, appearance, kind: chat.kind, batch, lateByHours, note: null };
}

/** Which of the other personas present the reply addresses. */
function othersCalled({ chat, personas, turn }: Turn, reply: string): PersonaId[] {
  const others = presentIn(chat, personas).filter((id) => id !== turn.personaId);
  if (others.length === 0) return [];
  return turnedTo(reply, personas.filter(({ id }) => others.includes(id)).map(calledOf));
}

function waitedTooLong(batch: StoredMessage[], startedAt: number, maxAgeMs: number): number | null {
  const waited = startedAt - Math.min(...batch.map((message) => message.receivedAt));
  return waited > maxAgeMs ? Math.floor(waited / HOUR_MS) : null;
}

/** The reason why there is no reply; null when there is one. */
function faultOf(outcome: TurnOutcome & { kind: 'answered' | 'failed' }): Fault | null {
  if (outcome.kind === 'failed') return outcome.fault;
  const isSilent = outcome.text === '' && outcome.wordless === undefined;
  return isSilent ? new Fault('model_empty', 'no words') : null;
}

/** The server's token count for the turn's last request, next to our estimate of the same request. */
function measuredOf(outcome: TurnOutcome, context: Context, steps: Step[]): Measured | null {
  // What a server counts of a request that it has cut says nothing about its size.
  if (outcome.kind !== 'answered' || outcome.cut || !outcome.last || outcome.last.inputTokens <= 0)
    return null;
  const estimated = context.requestTokens + tokensOf(stepMessages(steps));
  return { counted: outcome.last.inputTokens, estimated };
}

/** The sender of the last message by a person; empty when the batch has only events from the gateway. */
function senderOf(batch: StoredMessage[]): string {
  const last = batch.findLast(({ author }) => author.kind === 'person')?.author;
  return last?.kind === 'person' ? last.id : '';
}
