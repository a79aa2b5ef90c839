/**
 * Buttons that somebody pressed. Discord shows them that it failed unless it hears of an answer within three seconds:
 * that is given when the press is stored, and takes the buttons away. Where storing takes longer, it is only acknowledged,
 * and the rest follows.
 */
import type { ChoiceOutcome } from '../../core/channel.js';
import { PRESS_ANSWERS } from '../kit/outgoing.js';
import type { Base, Call } from './api.js';
import { CODE, failureOf } from './failure.js';
import type { Press } from './payload.js';

/** Of Discord's three seconds, so many are ours to store it. */
const ACKNOWLEDGE_MS = 1_800;
/** Discord takes an answer for fifteen minutes. */
const EXPIRES_MS = 14 * 60_000;
/** Kinds of a first answer: a message, a promise that something follows, the message below which the button is. */
const ANSWER = 4;
const ACKNOWLEDGED = 6;
const CHANGED = 7;
/** Only who pressed sees it. */
const EPHEMERAL = 1 << 6;
const NO_BUTTONS = { components: [] };

interface Waiting {
  press: Press;
  /** Discord has heard of an answer. */
  isAnswered: boolean;
  /** Ends when the step before has: there is one at a time. */
  before: Promise<void>;
  cancelTimers(): void;
}

export type Presses = ReturnType<typeof createPresses>;

export function createPresses({ api, clock, log }: Base) {
  const waiting = new Map<string, Waiting>();
  const settling = new Set<Promise<void>>();

  /** Best effort: what is lost of it costs whoever pressed a moment. */
  function inTurn(one: Waiting, act: () => Promise<unknown>): Promise<void> {
    one.before = one.before.then(act).then(
      () => {},
      (error) => {
        const { reason } = failureOf(error);
        log.debug({ channel: 'discord', reason }, 'whoever pressed a button could not be answered');
      },
    );
    return one.before;
  }

  /** Whether this was the first answer. */
  async function answerFirst(one: Waiting, body: object): Promise<boolean> {
    if (one.isAnswered) return false;
    one.isAnswered = true;
    try {
      const path = `/interactions/${one.press.id}/${one.press.token}/callback`;
      await api.call({ method: 'POST', path, body, anonymous: true });
      return true;
    } catch (error) {
      if (failureOf(error).code === CODE.alreadyAnswered) return false;
      throw error;
    }
  }

  async function takeButtonsAway(one: Waiting): Promise<void> {
    if (await answerFirst(one, { type: CHANGED, data: NO_BUTTONS })) return;
    await api.call(through(one.press, 'PATCH', '/messages/@original', NO_BUTTONS));
  }

  async function tell(one: Waiting, content: string): Promise<void> {
    const data = { content, flags: EPHEMERAL, allowed_mentions: { parse: [] } };
    if (await answerFirst(one, { type: ANSWER, data })) return;
    await api.call(through(one.press, 'POST', '', data));
  }

  async function answer(one: Waiting, became: ChoiceOutcome): Promise<void> {
    const words = PRESS_ANSWERS[became];
    if (became !== 'not yours') await inTurn(one, () => takeButtonsAway(one));
    if (words !== null) await inTurn(one, () => tell(one, words));
  }

  function forget({ press, cancelTimers }: Waiting): void {
    cancelTimers();
    waiting.delete(press.id);
  }

  return {
    /** From now on it waits. Twice is once. */
    open(press: Press): void {
      if (waiting.has(press.id)) return;
      const acknowledge = () => void inTurn(one, () => answerFirst(one, { type: ACKNOWLEDGED }));
      const timers = [clock.after(ACKNOWLEDGE_MS, acknowledge), clock.after(EXPIRES_MS, () => forget(one))];
      const one: Waiting = {
        press,
        isAnswered: false,
        before: Promise.resolve(),
        cancelTimers() {
          for (const cancel of timers) cancel();
        },
      };
      waiting.set(press.id, one);
    },
    /** It is stored, and this became of it. Returns at once. */
    settle(id: string, became: ChoiceOutcome): void {
      const one = waiting.get(id);
      if (one === undefined) return;
      forget(one);
      const done = answer(one, became);
      settling.add(done);
      void done.then(() => settling.delete(done));
    },
    /** Resolves when those who pressed what is stored are answered. */
    async close(): Promise<void> {
      for (const one of waiting.values()) forget(one);
      await Promise.all(settling);
    },
  };
}

function through(
  { application_id, token }: Press,
  method: Call['method'],
  which: string,
  body: object,
): Call {
  return { method, path: `/webhooks/${application_id}/${token}${which}`, body, anonymous: true };
}
