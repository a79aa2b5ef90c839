/**
 * Steps 4 to 6 of the route for one turn, from top to bottom: build the context, ask the model (compacting until the
 * request fits), show the reply while it is written, finish.
 */
import { describe, Fault, sentenceOf } from '../../core/errors.js';
import type { PersonaId } from '../../core/ids.js';
import { personaName } from '../../core/persona.js';
import type { Alarm } from '../../core/route-store.js';
import type { TurnRecorder } from '../../core/turn-record.js';
import type { Measured } from '../../core/view.js';
import { isLimit, type Purse, type Standing } from '../budgets.js';
import { buildContext, type Context } from '../context/context.js';
import { filesOfReply, recipientIn, replyOf } from '../deliver/reply.js';
import { savedNote } from '../deliver/saved.js';
import { attemptOf } from '../deliver/send-one.js';
import type { Live } from '../deliver/showing.js';
import { spokenReply } from '../deliver/voice-note.js';
import { greet } from '../greeting.js';
import { presentIn } from '../participants.js';
import { callsToRun, isTainted } from '../turn/steps.js';
import { runTurn, type TurnOutcome } from '../turn/turn.js';
import { calledOf, turnedTo } from './addressing.js';
import { authorisationOf } from './authorisation.js';
import { causeOf, hoursLate, payerOf } from './batch.js';
import { withFiles, withFilesOf } from './files-of-turn.js';
import { liveFor, saidBy } from './live-reply.js';
import { type Made, madeIn, shownWords } from './made.js';
import { failureIn, faultOf, measuredOf, sightOf, taskEndsIn } from './outcome.js';
import type { RoomServices, Turn } from './room-services.js';
import { saveStep } from './save-step.js';
import { spoken } from './speakers.js';

export type AnswerEnd =
  | { kind: 'finished'; isSomebodyNext: boolean }
  | { kind: 'suspended'; alarm: Alarm | null }
  /** Aborted, or the claim was lost: nothing was said. */
  | { kind: 'dropped' };

export async function answer(services: RoomServices, begun: Turn, signal: AbortSignal): Promise<AnswerEnd> {
  const purse = services.budgets.open(payerOf(begun));
  const { chat, room, turn } = begun;
  const { personaId } = turn;
  const record = services.records.open({ turnId: turn.id, chatId: chat.id, room, personaId }, signal);
  // What a turn has used that was aborted, or waits, is stored by itself.
  return answerFrom(purse, record, services, begun, signal).finally(record.end).finally(purse.settle);
}

async function answerFrom(
  purse: Purse,
  record: TurnRecorder,
  services: RoomServices,
  begun: Turn,
  signal: AbortSignal,
): Promise<AnswerEnd> {
  const { windows, clock, log, metrics } = services;
  const started = clock.now();
  const work = await withFiles(services, begun, signal);
  if (work === null) return { kind: 'dropped' };

  const { chat, room, turn, batch, personas } = work;
  const { personaId } = turn;
  const authorisation = authorisationOf(services, work);
  const { senderId } = authorisation;
  const lateByHours = hoursLate(batch, turn.startedAt, services.settings.maxAgeMs);
  const kind = {
    kind: 'answer' as const,
    chatId: chat.id,
    personaId,
    senderId,
    allowed: personas.find(({ id }) => id === personaId)?.tools ?? null,
    channel: chat.channel,
    chatKind: chat.kind,
  };
  await services.toolsReady?.(kind, callsToRun(turn.steps), signal);
  const tools = services.toolsFor(kind);
  const subject = { chat, room, personaId, personas };
  let { revision } = work;
  const gather = () =>
    buildContext(services, services.windowCopies, {
      ...subject,
      revision,
      batch,
      tools,
      authorisation,
      now: started,
      lateByHours,
    });
  const ask = async (context: Context, live: Live) => {
    const stopWaiting = windows.giveWay();
    record.saw(sightOf(context));
    const paying = { ...services, model: record.watch(purse.model) };
    return runTurn(paying, {
      turnId: turn.id,
      room,
      tools,
      maxToolRounds: services.settings.maxToolRounds,
      bounds: { ...services.settings.callLimits, tokens: context.stepTokens },
      persona: context.persona,
      messages: context.messages,
      seen: context.seen,
      authorisation,
      cause: { kind: 'turn', personaId, turnId: turn.id },
      record: { room, turnId: turn.id, parentEventId: causeOf(batch) },
      trust: context.trust,
      approvalMs: services.settings.approvalMs,
      steps: turn.steps,
      save(step, more) {
        stopWaiting();
        return saveStep(services, work, step, more);
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
  const wordsOf = shownWords(services, tools);
  const live = liveFor(services, work, context.persona.name, lateByHours, wordsOf);
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
  const limit = fault && isLimit(fault) ? await services.budgets.reached(payerOf(work)) : null;
  if (limit) return refuse(services, work, limit, purse);
  if (fault) {
    log.warn(
      { code: fault.code, room, turn: turn.id, why: describe(fault) },
      'the model gave no answer; the chat is told',
    );
  }
  const measured = windows.credible(room, personaId, measuredOf(outcome, context, turn.steps));
  const said = outcome.kind === 'answered' ? outcome.text : '';
  const made = await madeIn(services, work, tools, fault ? failureIn(work, fault.sentence) : said, signal);
  if (made === null) return { kind: 'dropped' };
  const finished = await finish(services, work, {
    outcome: fault ? 'failed' : 'answered',
    ...made,
    wordless: (outcome.kind === 'answered' && outcome.wordless) || null,
    speaker: context.persona.name,
    lateByHours,
    purse,
    measured,
    promptMemory: context.promptMemory,
    tainted: isTainted(context.trust, turn.steps),
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
    text: failureIn(work, sentenceOf(new Fault('internal', 'parked'))),
    wordless: null,
    speaker: personaName(work.personas, personaId),
    lateByHours: null,
    purse: null,
    measured: null,
    promptMemory: null,
  });
}

/** Nothing is left of a limit of the day: its messages count as answered, and what was done stays. */
export async function refuse(
  services: RoomServices,
  work: Turn,
  limit: Standing,
  purse: Purse | null,
): Promise<AnswerEnd> {
  // First, so that a crash in between says it, too.
  await services.refusals.tell(work, limit);
  return finish(services, work, {
    outcome: 'failed',
    text: taskEndsIn(work.batch),
    wordless: null,
    speaker: personaName(work.personas, work.turn.personaId),
    lateByHours: null,
    purse,
    measured: null,
    promptMemory: null,
  });
}

interface Ending extends Pick<Context, 'promptMemory'>, Partial<Made> {
  outcome: 'answered' | 'failed' | 'parked';
  /** What the persona said, or the error sentence of a turn that failed. */
  text: string;
  /** What it did instead of saying anything; null if it spoke. */
  wordless: string | null;
  speaker: string;
  lateByHours: number | null;
  /** What it has used; null: nothing. */
  purse: Purse | null;
  /** Size of the turn's last request, if the server counted it. */
  measured: Measured | null;
  /** It answers words from outside, or was given some. */
  tainted?: boolean;
}

/**
 * Step 6, one transaction: marks the messages as answered, adds the reply to the transcript and the outbox, makes the
 * personas it addresses the next speakers, and releases the room. This is the only place that decides what is delivered.
 */
async function finish(services: RoomServices, work: Turn, ending: Ending): Promise<AnswerEnd> {
  const { store, deliver, clock, metrics } = services;
  const { chat, room, channel, personas, turn, claim } = work;
  const spent = ending.purse?.spent(turn.personaId);
  const isAnswered = ending.outcome === 'answered';
  const addressed = isAnswered ? othersCalled(work, ending.text) : [];
  const exchange = work.exchange && spoken(work.exchange, addressed, services.settings.caps);
  const late = isAnswered && ending.wordless === null ? ending.lateByHours : null;
  const said = { ...saidBy(work, ending.speaker, late), note: await savedNote(services, chat, turn) };
  const deliveries = replyOf(channel, said, ending.text);
  if (isAnswered) deliveries.push(...spokenReply(services, work, ending.text, deliveries));
  if (ending.files) deliveries.push(...filesOfReply(said, ending.files, deliveries));
  // If the chat's delivery lane is free, the first delivery is claimed in the same transaction and sent at once.
  const lane = deliver.take(chat.id, chat.kind, channel);
  try {
    const finished = await store.finish({
      claim,
      turnId: turn.id,
      outcome: ending.outcome,
      reply: isAnswered ? (ending.wordless ?? ending.kept ?? ending.text) : null,
      wordless: ending.wordless !== null,
      tainted: ending.tainted ?? false,
      hearers: [...new Set([...presentIn(chat, personas), ...(work.exchange?.party ?? [])])],
      addressed,
      exchange,
      deliveries,
      send: lane ? attemptOf(services, channel, recipientIn(chat, room)) : null,
      usage: spent?.usage ?? null,
      ...(spent?.personId !== undefined && { personId: spent.personId }),
      measured: ending.measured,
      given: isAnswered ? ending.promptMemory : null,
      now: clock.now(),
    });
    if (finished === 'lost') return { kind: 'dropped' };
    ending.purse?.paid();
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

/** Which of the other personas present the reply addresses. */
function othersCalled({ chat, personas, turn }: Turn, reply: string): PersonaId[] {
  const others = presentIn(chat, personas).filter((id) => id !== turn.personaId);
  if (others.length === 0) return [];
  return turnedTo(reply, personas.filter(({ id }) => others.includes(id)).map(calledOf));
}
