/**
 * Steps 4 to 6 of the route for one turn, from top to bottom: build the context, ask the model (compacting until the
 * request fits), show the reply while it is written, finish (`finish.ts`).
 */
import { createHash } from 'node:crypto';
import type { AskedCall, NewQuestion } from '../../core/access.js';
import { wordsSoFar } from '../../core/artifacts.js';
import { describe, Fault } from '../../core/errors.js';
import { roomParts } from '../../core/ids.js';
import type { TurnRecorder, TurnSight } from '../../core/journal.js';
import type { Notice } from '../../core/model.js';
import { personaName } from '../../core/persona.js';
import type { Alarm } from '../../core/store.js';
import { haveFiles, type Measured, type Step } from '../../core/transcript.js';
import { questionAbout, sentence, shownName, wordsOfQuestion } from '../approvals.js';
import { buildContext, type TurnContext } from '../context/context.js';
import { isLimit } from '../daily-limits.js';
import { NOT_LIVE } from '../deliver/live.js';
import { recipientIn, replyOf } from '../deliver/reply.js';
import { greet } from '../participants.js';
import { oneLine, code as quoted } from '../quoting.js';
import type { LiveReply, MeteredModel } from '../services.js';
import { callsToRun, cutOffCalls, isTainted, type StepExtras, stepMessages } from '../turn/steps.js';
import { tokensOf } from '../turn/tokens.js';
import { runTurn, type TurnOutcome } from '../turn/turn.js';
import { type Finished, failureIn, finish, madeIn, refuse, saidBy } from './finish.js';
import {
  authorisationOf,
  causeOf,
  hoursLate,
  payerOf,
  type RoomServices,
  type Turn,
  withFiles,
  withFilesOf,
} from './turn.js';

type AnswerEnd = Finished | { kind: 'suspended'; alarm: Alarm | null };

export async function answer(services: RoomServices, begun: Turn, signal: AbortSignal): Promise<AnswerEnd> {
  const meter = services.dailyLimits.meter(payerOf(begun));
  const { chat, room, turn } = begun;
  const { personaId } = turn;
  const record = services.records.open({ turnId: turn.id, chatId: chat.id, room, personaId }, signal);
  // What a turn has used that was aborted, or waits, is stored by itself.
  return answerFrom(meter, record, services, begun, signal).finally(record.end).finally(meter.settle);
}

async function answerFrom(
  meter: MeteredModel,
  record: TurnRecorder,
  services: RoomServices,
  begun: Turn,
  signal: AbortSignal,
): Promise<AnswerEnd> {
  const { windows, clock, log, metrics } = services;
  const started = clock.now();
  const work = haveFiles(begun.batch) ? await withFiles(services, begun, signal) : begun;
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
  const ask = async (context: TurnContext, live: LiveReply) => {
    const stopWaiting = windows.giveWay();
    record.saw(sightOf(context));
    const paying = { ...services, model: record.watch(meter.model) };
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

  let request = {
    ...subject,
    revision: work.revision,
    batch,
    tools,
    authorisation,
    now: started,
    lateByHours,
  };
  let context = await buildContext(services, request);
  const { faults = [] } = context.persona;
  if (faults.length > 0) void services.deliver.tellOwners(faultyPersona(faults));
  if (context.unread.length > 0) {
    const read = await withFilesOf(services, work, context.unread, signal);
    if (read === null) return { kind: 'dropped' };
    request = { ...request, revision: read.revision };
    context = await buildContext(services, request);
  }
  // A persona that has said nothing here yet greets a person first, and is to know that it did.
  const isFirst = context.sizes.messages <= batch.length + 1 && turn.steps.length === 0 && senderId !== '';
  if (isFirst && (await greet(services, chat, room, context.persona, personas, batch)))
    context = await buildContext(services, request);
  if (windows.isFull(subject, context.sizes, context.view.measured)) {
    await windows.makeRoom(subject, turn.id, null);
    context = await buildContext(services, request);
  }
  // Blocks of artifacts in an answer are taken for such where its tools could make them.
  const mayMake =
    services.artifacts !== undefined && tools.tools.some(({ name }) => name === 'write_artifact');
  const live = liveFor(services, work, context.persona.name, lateByHours, mayMake);
  signal.addEventListener('abort', live.end, { once: true });
  let outcome: TurnOutcome;
  try {
    outcome = await ask(context, live);
    if (outcome.kind === 'failed' && outcome.fault.code === 'context_too_long' && !signal.aborted) {
      log.warn({ room, why: describe(outcome.fault) }, 'a request did not fit; compacting first');
      await windows.makeRoom(subject, turn.id, context.requestTokens);
      context = await buildContext(services, request);
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
  const limit = fault && isLimit(fault) ? await services.dailyLimits.reached(payerOf(work)) : null;
  if (limit) return refuse(services, work, limit, meter);
  if (fault) {
    log.warn(
      { code: fault.code, room, turn: turn.id, why: describe(fault) },
      'the model gave no answer; the chat is told',
    );
  }
  const measured = windows.credible(room, personaId, measuredOf(outcome, context, turn.steps));
  const words = outcome.kind === 'answered' ? outcome.text : '';
  const said = { text: fault ? failureIn(work, fault.sentence) : words };
  const made = mayMake && !fault ? await madeIn(services, work, words, signal) : said;
  if (made === null) return { kind: 'dropped' };
  const finished = await finish(services, work, {
    outcome: fault ? 'failed' : 'answered',
    ...made,
    wordless: (outcome.kind === 'answered' && outcome.wordless) || null,
    speaker: context.persona.name,
    lateByHours,
    meter,
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

/** Once for these very words: an edit that leaves something else is told again. */
function faultyPersona(faults: readonly string[]): Notice {
  const text = `What a persona’s file says and cannot be used here:\n${faults.map((fault) => `- ${fault}`).join('\n')}`;
  return { key: `persona.${createHash('sha256').update(text).digest('hex').slice(0, 16)}`, text };
}

/**
 * Shows the reply while it is written, if the channel can and the configuration allows it; `mayMake`: without the blocks
 * that become files.
 */
function liveFor(
  services: RoomServices,
  work: Turn,
  speaker: string,
  lateByHours: number | null,
  mayMake: boolean,
): LiveReply {
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
    deliveriesOf: (text) => replyOf(channel, said, mayMake ? wordsSoFar(text) : text),
  });
}

/** The reason why there is no reply; null when there is one. */
function faultOf(outcome: TurnOutcome & { kind: 'answered' | 'failed' }): Fault | null {
  if (outcome.kind === 'failed') return outcome.fault;
  const isSilent = outcome.text === '' && outcome.wordless === undefined;
  return isSilent ? new Fault('model_empty', 'no words') : null;
}

/** What `coterie replay` is to know of a request's making. */
function sightOf({ recalled, view, sizes, requestTokens }: TurnContext): TurnSight {
  const { windowAfter, summary } = view;
  return { recalled, summary, windowAfter, messages: sizes.messages, estimatedTokens: requestTokens };
}

/** The server's token count for the turn's last request, next to our estimate of the same request. */
function measuredOf(outcome: TurnOutcome, context: TurnContext, steps: Step[]): Measured | null {
  // What a server counts of a request that it has cut says nothing about its size.
  if (outcome.kind !== 'answered' || outcome.cut || !outcome.last || outcome.last.inputTokens <= 0)
    return null;
  const estimated = context.requestTokens + tokensOf(stepMessages(steps));
  return { counted: outcome.last.inputTokens, estimated };
}

// Step 5 of the route: stores a step of a turn, and with a call that needs a person's yes the question to people.

/** False when the claim is lost. */
async function saveStep(
  services: RoomServices,
  work: Turn,
  step: Step,
  { entries = [], asked }: StepExtras = {},
): Promise<boolean> {
  const { store, clock, deliver } = services;
  const { claim, turn } = work;
  if (step.kind !== 'waiting') return store.addStep(claim, turn.id, step, entries);
  const question = asked && (await questionOf(services, work, asked));
  const more = { entries, ...(question && { question }) };
  const isStored = await store.suspend(claim, turn.id, step, clock.now(), more);
  if (isStored) for (const { chatId } of question?.posts ?? []) deliver.wake(chatId);
  return isStored;
}

// Step 5 of the route: the question to people about a call of a persona's turn.

function questionOf(services: RoomServices, work: Turn, call: AskedCall): Promise<NewQuestion> {
  const { chat, room, personas, turn } = work;
  const { controlChats } = services.rulesFor(chat.channel);
  const who = `${shownName(personaName(personas, turn.personaId))} in the chat ${shownName(chat.title)} (${shownName(chat.id)})`;
  const wants = `${who} wants to call ${shownName(call.tool)}. ${sentence(call.why)}`;
  const words = wordsOfQuestion(call, { wants, yes: 'To allow it once' });
  return questionAbout(services, { chat, room, controlChats }, call, words);
}

// Step 5 of the route: calls that were cut off when the gateway ended, or was made to leave them. None is run again, so the
// chat is told, once for a turn: somebody there may know whether it was done.

const NAME_CHARS = 60;

export async function tellCutOff(services: RoomServices, { chat, room, turn }: Turn): Promise<void> {
  const calls = cutOffCalls(turn.steps);
  if (calls.length === 0) return;
  const names = [...new Set(calls.map(({ name }) => quoted(oneLine(name, NAME_CHARS))))].join(', ');
  const text = `I was cut off while ${names} ran: I cannot tell whether it was done, and do not run it again by myself.`;
  await services.deliver.say({ chat, threadId: roomParts(room).threadId }, `interrupted:${turn.id}`, text);
}
