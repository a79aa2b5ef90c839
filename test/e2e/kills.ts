/**
 * kill -9 at random moments with 200 messages in flight over 20 chats, aimed at each step of the route: while
 * messages are received, while the model works, right after its answer, and while replies are delivered. What stands
 * twice, is missing or is out of order is counted as the fake platform saw it, without excuses.
 */
import { expect } from 'vitest';
import { eventually } from '../harness/gateway.js';
import type { Platform, Shown } from '../harness/platform.js';
import { generator, pause } from '../harness/random.js';
import { stageOn } from '../harness/stage.js';

export const PHASES = ['receiving', 'turn', 'finishing', 'delivering'] as const;
type Phase = (typeof PHASES)[number];

const CHATS = 20;
const IN_FLIGHT = 200;
const FEWEST_TO_RECEIVE = 5;
/**
 * A phone forgets the oldest of some forty sessions, and each process begins one with everybody: after many ends of the
 * process, a message may have to be asked for again, by one phone mostly, and then several times. It is answered all the
 * same; more than this would be a fault of ours (there were dozens while sessions were spoiled).
 */
const MOST_UNREADABLE_PER_KILL = 0.2;
/** With few kills, chance alone may bring this many. */
const UNREADABLE_BY_CHANCE = 2;
/**
 * So long a process has to come to the phase in which it is to end. Where several have ended while they stored a first
 * batch, which takes longer on PostgreSQL, the next one waits half a minute before it reads on.
 */
const PHASE_WITHIN_MS = 45_000;

/** A database on PostgreSQL. Default: SQLite. */
interface Store {
  url: string;
}

export interface KillReport {
  platform: Platform['name'];
  onPostgres: boolean;
  seed: number;
  kills: number;
  /** Of those, the ones that came in the moment they were meant for. */
  aimed: Record<Phase, number>;
  messages: number;
  sent: number;
  /** Messages that nothing answers. */
  lost: number;
  /** Messages that were answered after one that was asked later in the same chat. */
  outOfOrder: number;
  /** Replies that answer again what was answered before. */
  twice: number;
  /** Messages that a phone had to ask for again. */
  unreadable: number;
}

/** What a gateway must come to after any number of kills. */
export const NONE = { lost: 0, outOfOrder: 0, twice: 0 };

export async function killAtRandom(
  platform: Platform,
  plan: { kills: number; seed: number; store?: Store; groups?: boolean },
): Promise<KillReport> {
  // Every second one, if there are any.
  const isGroup = (chat: number) => plan.groups === true && chat % 2 === 0;
  const random = generator(plan.seed);
  const kills: Record<Phase, number> = { receiving: 0, turn: 0, finishing: 0, delivering: 0 };
  /** What processes that were killed have complained of. */
  const complaints: string[] = [];
  const on = await stageOn(platform, { log: { level: 'info', format: 'json' }, store: plan.store ?? {} });
  const asked: string[][] = Array.from({ length: CHATS }, () => []);
  const placeOf = (chat: number) => ({
    kind: isGroup(chat) ? ('group' as const) : ('direct' as const),
    number: chat,
  });
  const sentIn = (chat: number) => platform.shown(placeOf(chat));
  const answeredIn = (chat: number) => new Set(sentIn(chat).flatMap((sent) => tokensOf(sent.text)));
  const outstanding = () =>
    asked.reduce((sum, tokens, chat) => sum + tokens.length - answeredIn(chat).size, 0);

  function askIn(chat: number): void {
    const token = `c${chat}m${asked[chat]?.length ?? 0}`;
    asked[chat]?.push(token);
    const from = { number: chat, name: `Person ${chat}` };
    platform.say({ from, in: placeOf(chat), text: `please answer ${token}`, mention: isGroup(chat) });
  }

  /** Set while a gateway is to be killed: called with every event of the route as the servers see it. */
  let notice: (phase: Phase) => void = () => {};
  platform.onEvent((event) => notice(event === 'sent' ? 'delivering' : 'receiving'));
  on.model.reply(async (body) => {
    // What an earlier process asked for is no event of this one.
    const told = notice;
    told('turn');
    await pause(10 + random() * 40);
    told('finishing');
    return `answered ${tokensOf(body.messages.at(-1)?.content ?? '').join(' ')}`;
  });

  try {
    // Logins are made in peace, and so are acquaintances: on Discord, a bot learns of a direct chat only while it is there.
    const first = await on.start();
    for (let chat = 0; chat < CHATS; chat++) askIn(chat);
    await eventually(() => outstanding() === 0, 'everybody is answered once', 120_000);
    await first.stop();
    for (let n = 0; n < plan.kills; n++) {
      const phase = PHASES[n % PHASES.length] ?? 'turn';
      // Where nothing was answered in the life before, there would be nothing to be received in this one.
      const fewest = phase === 'receiving' ? FEWEST_TO_RECEIVE : 0;
      for (let missing = Math.max(fewest, IN_FLIGHT - outstanding()); missing > 0; missing--) {
        askIn(Math.floor(random() * CHATS));
      }
      let left = 1 + Math.floor(random() * (phase === 'receiving' ? 2 : 18));
      const reached = new Promise<void>((resolve) => {
        notice = (seen) => {
          if (seen === phase && --left === 0) resolve();
        };
      });
      const gateway = on.launch();
      await Promise.race([reached, pause(PHASE_WITHIN_MS)]);
      await pause(random() * 5);
      await gateway.stop('SIGKILL');
      complaints.push(...gateway.err().split('\n').filter(isComplaint).slice(0, 20));
      if (left <= 0) kills[phase]++;
      notice = () => {};
    }
    const last = await on.start();
    await eventually(() => outstanding() === 0, 'every message is answered', 120_000).catch(() => {
      const open = asked.flatMap((tokens, chat) => tokens.filter((token) => !answeredIn(chat).has(token)));
      const told = [...complaints, 'the last process:', last.err()].join('\n').slice(-20_000);
      process.stdout.write(`seed ${plan.seed}, open: ${open.join(' ')}\n${told}\n`);
    });
    await last.stop();
    const report = check(platform, asked, sentIn, plan, kills);
    process.stdout.write(`kill -9: ${JSON.stringify(report)}\n`);
    return report;
  } finally {
    await on.close();
  }
}

function check(
  platform: Platform,
  asked: string[][],
  sentIn: (chat: number) => Shown[],
  plan: { kills: number; seed: number; store?: Store },
  aimed: Record<Phase, number>,
): KillReport {
  const { kills, seed, store } = plan;
  const report: KillReport = {
    ...{ platform: platform.name, onPostgres: store !== undefined, seed, kills, aimed },
    messages: asked.flat().length,
    ...{ sent: 0, ...NONE, unreadable: 0 },
  };
  const count = (what: keyof typeof NONE, chat: number, text: string) => {
    report[what]++;
    process.stdout.write(`${what}: chat ${chat}, "${text}" (seed ${seed})\n`);
  };
  const unreadable = platform.unreadable?.() ?? [];
  report.unreadable = unreadable.length;
  expect(unreadable.length, `${unreadable.join('; ')} (seed ${seed})`).toBeLessThanOrEqual(
    Math.max(UNREADABLE_BY_CHANCE, kills * MOST_UNREADABLE_PER_KILL),
  );
  asked.forEach((tokens, chat) => {
    const seen = new Set<string>();
    let newest = -1;
    for (const { text } of sentIn(chat)) {
      report.sent++;
      const said = tokensOf(text);
      if (said.some((token) => seen.has(token))) count('twice', chat, text);
      for (const token of said) {
        if (seen.has(token)) continue;
        seen.add(token);
        const place = tokens.indexOf(token);
        if (place < newest) count('outOfOrder', chat, text);
        newest = Math.max(newest, place);
      }
    }
    for (const token of tokens) if (!seen.has(token)) count('lost', chat, token);
  });
  return report;
}

/** One line for each platform, as docs/figures.md has it. */
export function crashTable(reports: KillReport[]): string {
  const names = { telegram: 'Telegram', discord: 'Discord', whatsapp: 'WhatsApp' };
  const lines = reports.map(({ platform, onPostgres, kills, messages, lost, outOfOrder, twice }) => {
    const name = `${names[platform]}${onPostgres ? ', PostgreSQL' : ''}`;
    return `| ${[name, kills, messages.toLocaleString('en'), lost, outOfOrder, twice].join(' | ')} |`;
  });
  return ['| | kills | messages | lost | out of order | twice |', '|---|--:|--:|--:|--:|--:|', ...lines].join(
    '\n',
  );
}

function isComplaint(line: string): boolean {
  return /"level":"(?:warn|error)"/.test(line);
}

function tokensOf(text: string): string[] {
  return text.match(/c\d+m\d+/g) ?? [];
}
