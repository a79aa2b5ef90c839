/** Steps 4 to 6 of the route for one turn: builds a request and context that fit, asks the model, finishes. */
import { wordsSoFar } from '../../core/artifacts.js';
import { describe, Fault } from '../../core/errors.js';
import { eventIdOf } from '../../core/ids.js';
import type { TurnRecorder } from '../../core/journal.js';
import { personaName } from '../../core/persona.js';
import { HISTORY_IMPORTED } from '../../core/receipt.js';
import type { Alarm } from '../../core/store.js';
import type { Measured, Step, StoredMessage } from '../../core/transcript.js';
import { questionAbout, sentence, shownName } from '../approvals.js';
import { askerOfTurn } from '../asker.js';
import { buildContext, type ContextRequest, type TurnContext } from '../context/context.js';
import { readFiles } from '../context/files.js';
import { tellLeftOut } from '../deliver/post.js';
import { recipientIn, replyOf } from '../deliver/reply.js';
import { greet } from '../greeting.js';
import type { LiveReply, MeteredModel } from '../services.js';
import { isTainted, openCalls, type StepExtras, stepMessages } from '../turn/steps.js';
import { pressureOf, requestTokens, tokensOf } from '../turn/tokens.js';
import { runTurn, type TurnOutcome } from '../turn/turn.js';
import {
  asDifferent,
  continued,
  isSameText,
  prepareAnew,
  requestAnew,
  type SayingAnew,
  sayGiven,
  THE_SAME,
  wishOf,
} from './anew.js';
import { fail, tellPersonaFaults } from './failure.js';
import { withFiles } from './files.js';
import { type Finished, finish, saidBy } from './finish.js';
import { madeIn } from './made.js';
import { payerOf, type RoomServices, senderOf, type Turn } from './turn.js';

export type AnswerEnd = Finished | { kind: 'suspended'; alarm: Alarm | null };

/** A turn with its request. */
interface Answering extends Turn, ContextRequest {
  anewSaid: SayingAnew | null;
  meter: MeteredModel;
  record: TurnRecorder;
  signal: AbortSignal;
}

const DROPPED = { kind: 'dropped' } as const;
const HOUR_MS = 3_600_000;
/** After this time without an answer, work on windows gives way: a server may handle one request at a time. */
const WAIT_MS = 60_000;

export async function answer(services: RoomServices, begun: Turn, signal: AbortSignal): Promise<AnswerEnd> {
  const { clock, dailyLimits, metrics, records } = services;
  const started = clock.now();
  const meter = dailyLimits.meter(payerOf(begun));
  const { chat, room, turn } = begun;
  const record = records.open({ turnId: turn.id, chatId: chat.id, room, personaId: turn.personaId }, signal);
  try {
    const anewSaid = await prepareAnew(services, begun);
    if (anewSaid?.how === 'edit' || anewSaid?.how === 'version') {
      return await sayGiven(services, begun, anewSaid);
    }
    const hasFiles = begun.batch.some(({ attachments }) => attachments);
    const batch = hasFiles ? await withFiles(services, begun, signal) : begun.batch;
    if (batch === null) return DROPPED;
    const request = await prepare(services, { ...begun, batch }, started, signal);
    const anew = anewSaid ? requestAnew(anewSaid, batch) : undefined;
    const work: Answering = { ...begun, ...request, anew, anewSaid, meter, record, signal };
    const context = await contextThatFits(services, work);
    if (context === null) return DROPPED;
    const asked = await askForAnother(services, work, context);
    const end = await endTurn(services, work, asked.context, asked.outcome);
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
  const whose = { chatId: chat.id, personaId, senderId: senderOf(batch), channel: chat.channel };
  const allowed = proposes(batch) ? ['search'] : (personas.find(({ id }) => id === personaId)?.tools ?? null);
  const kind = { ...whose, kind: 'answer' as const, allowed, chatKind: chat.kind };
  await toolsReady?.(
    kind,
    openCalls(steps).map(({ name }) => name),
    signal,
  );
  const tools = toolsFor(kind);
  tellLeftOut(services, tools);
  const { controlChats } = rulesFor(chat.channel);
  // A wish of somebody else must not act with the rights of whoever was answered.
  const wish = turn.anew ? wishOf(turn.anew, batch) : null;
  const words = wish ? [...batch, wish] : batch;
  const authorisation = { ...whose, controlChats, asker: askerOfTurn(services, chat, words, exchange) };
  const waited = startedAt - Math.min(...batch.map((message) => message.receivedAt));
  const lateByHours = waited > settings.maxAgeMs && !turn.anew ? Math.floor(waited / HOUR_MS) : null;
  return { chat, room, personaId, personas, revision, batch, tools, authorisation, now, lateByHours };
}

/** Of an imported history it may only propose what to remember; a person decides. */
function proposes(batch: readonly StoredMessage[]): boolean {
  return batch.some(({ author }) => author.kind === 'gateway' && author.about === HISTORY_IMPORTED);
}

/** null if the turn was aborted or the claim was lost. */
async function contextThatFits(services: RoomServices, work: Answering): Promise<TurnContext | null> {
  const { windows } = services;
  const { chat, room, personas, batch, turn, claim, channel, signal } = work;
  let context = await buildContext(services, work);
  if (context.persona.faults?.length) tellPersonaFaults(services, context.persona.faults);
  const { unread } = context;
  if (unread.length > 0) {
    // These messages were only overheard, so nobody is told about files that could not be fetched.
    const read = await readFiles(services, { claim, channel, signal, chatId: chat.id, messages: unread });
    if (read === null) return null;
    work.revision += unread.length;
    context = await buildContext(services, work);
  }
  // A persona new to this room first greets the person; its context must show that it did.
  const isFirst = context.sizes.messages <= batch.length + 1 && turn.steps.length === 0;
  const mayGreet = isFirst && work.authorisation.senderId !== '';
  if (mayGreet && (await greet(services, chat, room, context.persona, personas, batch))) {
    context = await buildContext(services, work);
  }
  if (pressureOn(services, context, context.view.measured) === 'now') {
    await windows.makeRoom(work, turn.id, null);
    context = await buildContext(services, work);
  }
  return context;
}

/** An answer with the words of the one that it replaces is asked for once more. */
async function askForAnother(
  services: RoomServices,
  work: Answering,
  context: TurnContext,
): Promise<{ outcome: TurnOutcome; context: TurnContext }> {
  const first = await ask(services, work, context);
  const { outcome } = first;
  const { anewSaid } = work;
  if (anewSaid?.how !== 'again' || outcome.kind !== 'answered' || work.signal.aborted) return first;
  if (!isSameText(outcome.text, anewSaid.before)) return first;
  const second = asDifferent(work);
  return ask(services, { ...work, ...second }, await buildContext(services, second));
}

/** Shows the reply while it is written. A request that does not fit is shortened and sent once more. */
async function ask(
  services: RoomServices,
  work: Answering,
  context: TurnContext,
): Promise<{ outcome: TurnOutcome; context: TurnContext }> {
  const { room, turn, signal } = work;
  const live = liveReply(services, work, context.persona.name);
  const stopShowing = () => live?.end();
  signal.addEventListener('abort', stopShowing, { once: true });
  try {
    const outcome = await askOnce(services, work, context, live);
    const isTooLong = outcome.kind === 'failed' && outcome.fault.code === 'context_too_long';
    if (!isTooLong || signal.aborted) return { outcome, context };
    const why = describe(outcome.fault);
    services.log.warn({ room, why }, 'a request did not fit; compacting the window');
    await services.windows.makeRoom(work, turn.id, context.requestTokens);
    const shorter = await buildContext(services, work);
    return { outcome: await askOnce(services, work, shorter, live), context: shorter };
  } finally {
    stopShowing();
  }
}

async function askOnce(
  services: RoomServices,
  work: Answering,
  context: TurnContext,
  live: LiveReply | null,
): Promise<TurnOutcome> {
  const { settings, windows } = services;
  const { room, personaId, batch, meter, record, signal } = work;
  const { id: turnId, steps } = work.turn;
  const { recalled, view, sizes, requestTokens, lore } = context;
  const { windowAfter, summary } = view;
  const counts = { messages: sizes.messages, estimatedTokens: requestTokens };
  record.saw({ recalled, summary, windowAfter, ...counts, ...(lore && { lore }) });
  const stopWaiting = services.clock.after(WAIT_MS, () => windows.giveWay());
  const cause = batch.findLast(({ author }) => author.kind !== 'persona');
  const paying = { ...services, model: record.watch(meter.model) };
  return runTurn(paying, {
    turnId,
    room,
    tools: work.tools,
    maxToolRounds: settings.maxToolRounds,
    bounds: { ...settings.callLimits, tokens: context.stepTokens },
    persona: context.persona,
    messages: context.messages,
    seen: context.seen,
    authorisation: work.authorisation,
    cause: { kind: 'turn', personaId, turnId },
    record: { room, turnId, parentEventId: cause === undefined ? null : eventIdOf(cause.id) },
    trust: context.trust,
    guard: context.guard,
    approvalMs: settings.approvalMs,
    traced: services.tracing,
    steps,
    save(step, more) {
      stopWaiting();
      return saveStep(services, work, step, more);
    },
    show(text) {
      if (text !== '') stopWaiting();
      live?.tell(text);
    },
    signal,
  }).finally(stopWaiting);
}

/** Artifact blocks in an answer become files only if the turn's tools could make them. */
function mayMake({ artifacts }: RoomServices, { tools }: Answering): boolean {
  return artifacts !== undefined && tools.tools.some(({ name }) => name === 'write_artifact');
}

/** null if the channel cannot show a reply while it is written, or the configuration forbids it. */
function liveReply(services: RoomServices, work: Answering, speaker: string): LiveReply | null {
  const { chat, room, channel, turn } = work;
  const canShow = channel.preview !== undefined || (channel.edit && channel.remove);
  if (!canShow || !services.streams(channel.name)) return null;
  const said = saidBy(work, speaker, work.lateByHours);
  const makes = mayMake(services, work);
  const { anewSaid } = work;
  const soFar = (text: string) => (anewSaid?.how === 'more' ? continued(anewSaid.before, text) : text);
  return services.deliver.live({
    turnId: turn.id,
    chatId: chat.id,
    channel,
    to: recipientIn(chat, room),
    shown: turn.shown,
    deliveriesOf: (text) => replyOf(channel, said, soFar(makes ? wordsSoFar(text) : text)),
  });
}

async function endTurn(
  services: RoomServices,
  work: Answering,
  context: TurnContext,
  outcome: TurnOutcome,
): Promise<AnswerEnd> {
  const { recall, windows } = services;
  const { room, turn, signal, meter, lateByHours } = work;
  if (outcome.kind === 'dropped') return DROPPED;
  if (outcome.kind === 'suspended') {
    recall.heard(room);
    const { waitsFor, until } = outcome;
    return { kind: 'suspended', alarm: until === null ? null : { waitsFor, at: until } };
  }
  const ending = {
    speaker: context.persona.name,
    meter,
    promptMemory: context.promptMemory,
    tainted: isTainted(context.trust, turn.steps),
    aside: work.anewSaid?.aside ?? null,
  };
  if (outcome.kind === 'failed') return fail(services, work, outcome.fault, ending);
  const { wordless, cut } = outcome;
  const { anewSaid } = work;
  const text =
    anewSaid?.how === 'more' && outcome.text !== '' ? continued(anewSaid.before, outcome.text) : outcome.text;
  if (anewSaid?.how === 'again' && text !== '' && isSameText(text, anewSaid.before)) {
    return finish(services, work, { ...ending, outcome: 'failed', text: THE_SAME });
  }
  const counted = measuredOf(services, work, context, outcome);
  const isSilent = text === '' && wordless === undefined;
  const made = mayMake(services, work) && !isSilent ? await madeIn(services, work, text, signal) : { text };
  if (made === null) return DROPPED;
  const said = { ...ending, ...made, measured: counted };
  const finished = isSilent
    ? await fail(services, work, new Fault('model_empty', 'no words'), said)
    : await finish(services, work, { ...said, outcome: 'answered', wordless, lateByHours });
  windows.modelAnswers();
  const measured = counted ?? context.view.measured;
  if (cut || pressureOn(services, context, measured) !== 'none') windows.consider(work, measured);
  return finished;
}

/** How full the window is. */
function pressureOn(services: RoomServices, { persona, sizes }: TurnContext, measured: Measured | null) {
  const { compactAfterMessages } = services.settings;
  return pressureOf(sizes, measured, requestTokens(services, persona.model), compactAfterMessages);
}

/** The server's token count for the turn's last request, next to our estimate of it. */
function measuredOf(
  { windows }: RoomServices,
  { room, turn: { personaId, steps } }: Answering,
  { requestTokens: asked }: TurnContext,
  { last, cut }: TurnOutcome & { kind: 'answered' },
): Measured | null {
  // The count of a request that the server cut says nothing about its size.
  if (!last || last.inputTokens <= 0 || cut) return null;
  const estimated = asked + tokensOf(stepMessages(steps));
  return windows.credible(room, personaId, { counted: last.inputTokens, estimated });
}

/** Stores a step and, if its call needs approval, the question to people. False if the claim is lost. */
async function saveStep(
  services: RoomServices,
  { claim, chat, room, personas, turn }: Answering,
  step: Step,
  { entries = [], asked }: StepExtras = {},
): Promise<boolean> {
  const { store, clock, deliver, rulesFor } = services;
  const now = clock.now();
  if (!asked) return store.addStep(claim, turn.id, step, now, { entries });
  const { controlChats } = rulesFor(chat.channel);
  const who = `${shownName(personaName(personas, turn.personaId))} in the chat ${shownName(chat.title)} (${shownName(chat.id)})`;
  const wants = `${who} wants to call ${shownName(asked.tool)}. ${sentence(asked.why)}`;
  const where = { chat, room, controlChats };
  const question = await questionAbout(services, where, asked, wants, 'To allow it once');
  const isStored = await store.addStep(claim, turn.id, step, now, { entries, question });
  if (isStored) for (const { chatId } of question.posts) deliver.wake(chatId);
  return isStored;
}
