/** Steps 4 to 6 of the route for one turn: reads files, builds a request and context that fit, asks the model, finishes. */
import { createHash } from 'node:crypto';
import type { AskedCall, NewQuestion } from '../../core/access.js';
import { wordsSoFar } from '../../core/artifacts.js';
import { describe, Fault } from '../../core/errors.js';
import { eventIdOf, roomParts } from '../../core/ids.js';
import type { TurnRecorder } from '../../core/journal.js';
import { personaName } from '../../core/persona.js';
import type { Alarm } from '../../core/store.js';
import { haveFiles, type Measured, type Step } from '../../core/transcript.js';
import { questionAbout, sentence, shownName } from '../approvals.js';
import { buildContext, type ContextRequest, type TurnContext } from '../context/context.js';
import { readFiles } from '../context/files.js';
import { isLimit } from '../daily-limits.js';
import { NOT_LIVE } from '../deliver/live.js';
import { recipientIn, replyOf } from '../deliver/reply.js';
import { greet } from '../participants.js';
import { oneLine, code as quoted } from '../quoting.js';
import { askerOfTurn } from '../rights.js';
import type { LiveReply, MeteredModel } from '../services.js';
import { callsToRun, cutOffCalls, isTainted, type StepExtras, stepMessages } from '../turn/steps.js';
import { tokensOf } from '../turn/tokens.js';
import { runTurn, type TurnOutcome } from '../turn/turn.js';
import { type Finished, failureIn, finish, madeIn, refuse, saidBy } from './finish.js';
import { payerOf, type RoomServices, senderOf, type Turn, withFiles } from './turn.js';

export type AnswerEnd = Finished | { kind: 'suspended'; alarm: Alarm | null };

const DROPPED = { kind: 'dropped' } as const;
const HOUR_MS = 3_600_000;
const NAME_CHARS = 60;

export async function answer(services: RoomServices, begun: Turn, signal: AbortSignal): Promise<AnswerEnd> {
  const { clock, dailyLimits, metrics, records } = services;
  const started = clock.now();
  const meter = dailyLimits.meter(payerOf(begun));
  const { chat, room, turn } = begun;
  const { id: turnId, personaId } = turn;
  const record = records.open({ turnId, chatId: chat.id, room, personaId }, signal);
  try {
    const batch = haveFiles(begun.batch) ? await withFiles(services, begun, signal) : begun.batch;
    if (batch === null) return DROPPED;
    const work = { ...begun, batch };
    const request = await prepare(services, work, started, signal);
    const context = await contextThatFits(services, work, request, signal);
    if (context === null) return DROPPED;
    const asked = await ask(services, work, request, context, meter, record, signal);
    const end = await endTurn(services, work, request, asked.context, asked.outcome, meter, signal);
    if (end.kind === 'finished') metrics.observe('turn_seconds', (clock.now() - started) / 1000);
    return end;
  } finally {
    record.end();
    // Also stores the usage of a turn that was aborted or waits.
    await meter.settle();
  }
}

/** The turn's tools and the rights of its calls. */
async function prepare(
  services: RoomServices,
  { chat, room, revision, personas, turn, batch, exchange }: Turn,
  now: number,
  signal: AbortSignal,
): Promise<ContextRequest> {
  const { settings, rulesFor, toolsFor, toolsReady } = services;
  const { personaId, startedAt, steps } = turn;
  const senderId = senderOf(batch);
  const kind = {
    kind: 'answer' as const,
    chatId: chat.id,
    personaId,
    senderId,
    allowed: personas.find(({ id }) => id === personaId)?.tools ?? null,
    channel: chat.channel,
    chatKind: chat.kind,
  };
  await toolsReady?.(kind, callsToRun(steps), signal);
  const waited = startedAt - Math.min(...batch.map((message) => message.receivedAt));
  return {
    chat,
    room,
    personaId,
    personas,
    revision,
    batch,
    tools: toolsFor(kind),
    authorisation: {
      chatId: chat.id,
      personaId,
      senderId,
      channel: chat.channel,
      controlChats: rulesFor(chat.channel).controlChats,
      asker: askerOfTurn(services, chat, batch, exchange),
    },
    now,
    lateByHours: waited > settings.maxAgeMs ? Math.floor(waited / HOUR_MS) : null,
  };
}

/** null if the turn was aborted or the claim was lost. */
async function contextThatFits(
  services: RoomServices,
  { channel, claim, turn }: Turn,
  request: ContextRequest,
  signal: AbortSignal,
): Promise<TurnContext | null> {
  const { deliver, windows } = services;
  const { chat, room, personas, batch, authorisation } = request;
  let context = await buildContext(services, request);
  const { faults = [] } = context.persona;
  if (faults.length > 0) {
    const text = `What a persona’s file says and cannot be used here:\n${faults.map((fault) => `- ${fault}`).join('\n')}`;
    const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
    void deliver.tellOwners({ key: `persona.${digest}`, text });
  }
  const { unread } = context;
  if (unread.length > 0) {
    // These messages were only overheard, so nobody is told about files that could not be fetched.
    const read = await readFiles(services, { claim, channel, signal, chatId: chat.id, messages: unread });
    if (read === null) return null;
    request.revision += unread.length;
    context = await buildContext(services, request);
  }
  // A persona new to this room first greets the person; its context must show that it did.
  const isFirst = context.sizes.messages <= batch.length + 1 && turn.steps.length === 0;
  if (
    isFirst &&
    authorisation.senderId !== '' &&
    (await greet(services, chat, room, context.persona, personas, batch))
  ) {
    context = await buildContext(services, request);
  }
  if (windows.isFull(request, context.sizes, context.view.measured)) {
    await windows.makeRoom(request, turn.id, null);
    context = await buildContext(services, request);
  }
  return context;
}

/** Shows the reply while it is written. A request that does not fit is shortened and sent once more. */
async function ask(
  services: RoomServices,
  work: Turn,
  request: ContextRequest,
  context: TurnContext,
  meter: MeteredModel,
  record: TurnRecorder,
  signal: AbortSignal,
): Promise<{ outcome: TurnOutcome; context: TurnContext }> {
  const { log, windows } = services;
  const { room, turn } = work;
  const live = liveReply(services, work, request, context.persona.name);
  signal.addEventListener('abort', live.end, { once: true });
  try {
    const outcome = await askOnce(services, work, request, context, meter, record, live, signal);
    if (outcome.kind !== 'failed' || outcome.fault.code !== 'context_too_long' || signal.aborted) {
      return { outcome, context };
    }
    log.warn({ room, why: describe(outcome.fault) }, 'a request did not fit; compacting the window');
    await windows.makeRoom(request, turn.id, context.requestTokens);
    const shorter = await buildContext(services, request);
    return {
      outcome: await askOnce(services, work, request, shorter, meter, record, live, signal),
      context: shorter,
    };
  } finally {
    live.end();
  }
}

async function askOnce(
  services: RoomServices,
  work: Turn,
  { room, personaId, batch, tools, authorisation }: ContextRequest,
  context: TurnContext,
  meter: MeteredModel,
  record: TurnRecorder,
  live: LiveReply,
  signal: AbortSignal,
): Promise<TurnOutcome> {
  const { settings, windows } = services;
  const { id: turnId, steps } = work.turn;
  const { recalled, view, sizes, requestTokens } = context;
  const { windowAfter, summary } = view;
  record.saw({ recalled, summary, windowAfter, messages: sizes.messages, estimatedTokens: requestTokens });
  const stopWaiting = windows.giveWay();
  const cause = batch.findLast(({ author }) => author.kind !== 'persona');
  const paying = { ...services, model: record.watch(meter.model) };
  return runTurn(paying, {
    turnId,
    room,
    tools,
    maxToolRounds: settings.maxToolRounds,
    bounds: { ...settings.callLimits, tokens: context.stepTokens },
    persona: context.persona,
    messages: context.messages,
    seen: context.seen,
    authorisation,
    cause: { kind: 'turn', personaId, turnId },
    record: { room, turnId, parentEventId: cause === undefined ? null : eventIdOf(cause.id) },
    trust: context.trust,
    approvalMs: settings.approvalMs,
    steps,
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
}

async function endTurn(
  services: RoomServices,
  work: Turn,
  request: ContextRequest,
  context: TurnContext,
  outcome: TurnOutcome,
  meter: MeteredModel,
  signal: AbortSignal,
): Promise<AnswerEnd> {
  const { dailyLimits, log, recall, windows } = services;
  const { room, turn } = work;
  if (outcome.kind === 'dropped') return DROPPED;
  if (outcome.kind === 'suspended') {
    recall.heard(room);
    const { waitsFor, until } = outcome;
    return { kind: 'suspended', alarm: until === null ? null : { waitsFor, at: until } };
  }
  const fault = faultOf(outcome);
  const limit = fault && isLimit(fault) ? await dailyLimits.reached(payerOf(work)) : null;
  if (limit) return refuse(services, work, limit, meter);
  if (fault) {
    const fields = { code: fault.code, room, turn: turn.id, why: describe(fault) };
    log.warn(fields, 'the model gave no answer; chat notified');
  }
  const measured = windows.credible(room, turn.personaId, measuredOf(outcome, context, turn.steps));
  const words = outcome.kind === 'answered' ? outcome.text : '';
  const said = { text: fault ? failureIn(work, fault.sentence) : words };
  const made = mayMake(services, request) && !fault ? await madeIn(services, work, words, signal) : said;
  if (made === null) return DROPPED;
  const finished = await finish(services, work, {
    outcome: fault ? 'failed' : 'answered',
    ...made,
    wordless: (outcome.kind === 'answered' && outcome.wordless) || null,
    speaker: context.persona.name,
    lateByHours: request.lateByHours,
    meter,
    measured,
    promptMemory: context.promptMemory,
    tainted: isTainted(context.trust, turn.steps),
  });
  if (outcome.kind === 'answered') {
    windows.consider(request, context.sizes, measured ?? context.view.measured, outcome.cut === true);
  }
  return finished;
}

/** Artifact blocks in an answer become files only if the turn's tools could make them. */
function mayMake({ artifacts }: RoomServices, { tools }: ContextRequest): boolean {
  return artifacts !== undefined && tools.tools.some(({ name }) => name === 'write_artifact');
}

/** Requires a channel that can show a reply while it is written, and a configuration that allows it. */
function liveReply(services: RoomServices, work: Turn, request: ContextRequest, speaker: string): LiveReply {
  const { chat, room, channel, turn } = work;
  const canShow =
    channel.preview !== undefined || (channel.edit !== undefined && channel.remove !== undefined);
  if (!canShow || !services.streams(channel.name)) return NOT_LIVE;
  const said = saidBy(work, speaker, request.lateByHours);
  const makes = mayMake(services, request);
  return services.deliver.live({
    turnId: turn.id,
    chatId: chat.id,
    channel,
    to: recipientIn(chat, room),
    shown: turn.shown,
    deliveriesOf: (text) => replyOf(channel, said, makes ? wordsSoFar(text) : text),
  });
}

/** Why there is no reply; null if there is one. */
function faultOf(outcome: TurnOutcome & { kind: 'answered' | 'failed' }): Fault | null {
  if (outcome.kind === 'failed') return outcome.fault;
  const isSilent = outcome.text === '' && outcome.wordless === undefined;
  return isSilent ? new Fault('model_empty', 'no words') : null;
}

/** The server's token count for the turn's last request, next to our estimate of it. */
function measuredOf(outcome: TurnOutcome, context: TurnContext, steps: Step[]): Measured | null {
  if (outcome.kind !== 'answered' || !outcome.last || outcome.last.inputTokens <= 0) return null;
  // The count of a request that the server cut says nothing about its size.
  if (outcome.cut) return null;
  const estimated = context.requestTokens + tokensOf(stepMessages(steps));
  return { counted: outcome.last.inputTokens, estimated };
}

/** Stores a step and, if its call needs approval, the question to people. False if the claim is lost. */
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

function questionOf(services: RoomServices, work: Turn, call: AskedCall): Promise<NewQuestion> {
  const { chat, room, personas, turn } = work;
  const { controlChats } = services.rulesFor(chat.channel);
  const who = `${shownName(personaName(personas, turn.personaId))} in the chat ${shownName(chat.title)} (${shownName(chat.id)})`;
  const wants = `${who} wants to call ${shownName(call.tool)}. ${sentence(call.why)}`;
  return questionAbout(services, { chat, room, controlChats }, call, wants, 'To allow it once');
}

/** Interrupted calls are not repeated, so the chat is told once per turn: somebody there may know the outcome. */
export async function tellCutOff(services: RoomServices, { chat, room, turn }: Turn): Promise<void> {
  const calls = cutOffCalls(turn.steps);
  if (calls.length === 0) return;
  const names = [...new Set(calls.map(({ name }) => quoted(oneLine(name, NAME_CHARS))))].join(', ');
  const text = `I was cut off while ${names} ran: I cannot tell whether it was done, and do not run it again by myself.`;
  await services.deliver.say({ chat, threadId: roomParts(room).threadId }, `interrupted:${turn.id}`, text);
}
