/**
 * kill -9 at random moments with 200 messages in flight over 20 chats, aimed at each step of the route: while
 * updates are received, while the model works, right after its answer, and while replies are delivered. The fake
 * platform decides what may stand twice: a reply whose connection it saw cut before anybody could note its answer.
 */
import { expect } from 'vitest';
import type { SentMessage } from '../fakes/telegram.js';
import { eventually } from '../harness/gateway.js';
import { stage } from '../harness/telegram.js';

export const PHASES = ['receiving', 'turn', 'finishing', 'delivering'] as const;
type Phase = (typeof PHASES)[number];

const CHATS = 20;
const IN_FLIGHT = 200;
/** An answer that was written this shortly before the process died may never have been read by it. */
const UNREAD_WITHIN_MS = 250;

export interface KillReport {
  seed: number;
  kills: Record<Phase, number>;
  messages: number;
  sent: number;
  twice: number;
  /** Of those, where the answer had been written and perhaps not been read. */
  twiceUnread: number;
  cut: number;
}

export async function killAtRandom(plan: { kills: number; seed: number }): Promise<KillReport> {
  const random = generator(plan.seed);
  const kills: Record<Phase, number> = { receiving: 0, turn: 0, finishing: 0, delivering: 0 };
  const on = await stage({
    telegram: { answerDelayMs: 3 },
    config: { log: { level: 'info', format: 'json' } },
  });
  const asked: string[][] = Array.from({ length: CHATS }, () => []);
  const person = (chat: number) => ({ id: 500 + chat, first_name: `Person ${chat}` });
  const sentIn = (chat: number) => on.telegram.sent.filter((sent) => sent.chatId === person(chat).id);
  const answeredIn = (chat: number) => new Set(sentIn(chat).flatMap((sent) => tokensOf(sent.text)));
  const outstanding = () =>
    asked.reduce((sum, tokens, chat) => sum + tokens.length - answeredIn(chat).size, 0);

  /** Set while a gateway is to be killed: called with every event of the route as the servers see it. */
  let notice: (phase: Phase) => void = () => {};
  on.model.reply(async (body) => {
    // What an earlier process asked for is no event of this one.
    const told = notice;
    told('turn');
    await pause(10 + random() * 40);
    told('finishing');
    return `answered ${tokensOf(body.messages.at(-1)?.content ?? '').join(' ')}`;
  });

  try {
    for (let n = 0; n < plan.kills; n++) {
      for (let missing = IN_FLIGHT - outstanding(); missing > 0; missing--) {
        const chat = Math.floor(random() * CHATS);
        const token = `c${chat}m${asked[chat]?.length ?? 0}`;
        asked[chat]?.push(token);
        on.telegram.say({ from: person(chat), text: `please answer ${token}` });
      }
      const phase = PHASES[n % PHASES.length] ?? 'turn';
      let left = 1 + Math.floor(random() * (phase === 'receiving' ? 2 : 18));
      const reached = new Promise<void>((resolve) => {
        notice = (seen) => {
          if (seen === phase && --left === 0) resolve();
        };
      });
      let { length: calls } = on.telegram.calls;
      let polls = on.telegram.polls.count;
      const watch = setInterval(() => {
        for (; polls < on.telegram.polls.count; polls++) notice('receiving');
        for (; calls < on.telegram.calls.length; calls++) {
          if (on.telegram.calls[calls]?.method === 'sendMessage') notice('delivering');
        }
      }, 1);
      const gateway = on.launch();
      await Promise.race([reached, pause(5_000)]);
      clearInterval(watch);
      await pause(random() * 5);
      await gateway.stop('SIGKILL');
      if (left <= 0) kills[phase]++;
      notice = () => {};
    }
    const last = await on.start();
    await eventually(() => outstanding() === 0, 'every message is answered', 60_000).catch((error) => {
      const other = on.telegram.sent.filter(({ text }) => !text.startsWith('answered'));
      throw new Error(
        `seed ${plan.seed}, ${outstanding()} open, said: ${other.map(({ text }) => text)}\n${last.err()}`,
        {
          cause: error,
        },
      );
    });
    await last.stop();
    const report = check(asked, sentIn, plan.seed, kills);
    process.stdout.write(`kill -9: ${JSON.stringify(report)}\n`);
    return report;
  } finally {
    await on.close();
  }
}

function check(
  asked: string[][],
  sentIn: (chat: number) => SentMessage[],
  seed: number,
  kills: Record<Phase, number>,
): KillReport {
  const report: KillReport = {
    seed,
    kills,
    messages: asked.flat().length,
    sent: 0,
    twice: 0,
    twiceUnread: 0,
    cut: 0,
  };
  asked.forEach((tokens, chat) => {
    const sent = sentIn(chat);
    report.sent += sent.length;
    report.cut += sent.filter(mayBeUnread).length;
    const seen = new Set<string>();
    const firstTime: string[] = [];
    sent.forEach((message, n) => {
      const again = tokensOf(message.text).filter((token) => seen.has(token));
      if (again.length > 0) {
        report.twice++;
        // Only as the repetition of a message that the platform took while the connection was cut.
        const earlier = sent.slice(0, n).findLast((other) => other.text === message.text);
        if (earlier && !earlier.cut) report.twiceUnread++;
        expect(earlier, `chat ${chat}: "${message.text}" stands twice in parts (seed ${seed})`).toBeDefined();
        expect(
          earlier && mayBeUnread(earlier),
          `chat ${chat}: "${message.text}" stands twice (seed ${seed})`,
        ).toBe(true);
      }
      for (const token of tokensOf(message.text)) {
        if (!seen.has(token)) firstTime.push(token);
        seen.add(token);
      }
    });
    expect(firstTime, `chat ${chat} is answered in order (seed ${seed})`).toEqual(tokens);
  });
  return report;
}

function mayBeUnread(message: SentMessage): boolean {
  return (
    message.cut ||
    !message.answered ||
    (message.hungUpAfterMs !== null && message.hungUpAfterMs < UNREAD_WITHIN_MS)
  );
}

function tokensOf(text: string): string[] {
  return text.match(/c\d+m\d+/g) ?? [];
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** mulberry32: small, and the same on every machine. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
