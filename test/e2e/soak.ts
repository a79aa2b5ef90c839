/**
 * One conversation through many compactions, with the process killed again and again: where a flush is answered,
 * where its tools write, between flush and summary, in the summary, while an archive is written, anywhere. The
 * model refuses flushes, hangs, counts nothing or nonsense; the person asks for copies, the operator edits memory.
 * After every kill, and at the end, every message is accounted for from outside.
 */
import { type FSWatcher, watch } from 'node:fs';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { ChatBody } from '../fakes/model.js';
import type { ModelScript } from '../fakes/model-script.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { eventually, type Running } from '../harness/gateway.js';
import { generator, pause } from '../harness/random.js';
import { stage } from '../harness/telegram.js';
import { createLedger, type Entry, flushAt } from './soak-ledger.js';

/** Where a process is ended. */
export const AIMS = ['flush', 'calls', 'between', 'summary', 'archive', 'anywhere'] as const;
export type Aim = (typeof AIMS)[number];

export interface SoakPlan {
  seed: number;
  /** How many the person sends at least. */
  messages: number;
  /** How often each aim is taken at least. */
  kills: number;
  compactAfter: number;
  keepRecent: number;
  /** Waits for what takes its time: a flush hangs until its deadline, a minute, and failures are tried again. */
  patient: boolean;
}

export interface SoakReport {
  seed: number;
  messages: number;
  replies: number;
  moves: number;
  kills: Record<Aim, number>;
  flushes: { finished: number; others: number };
  summaries: number;
  archives: number;
  copies: number;
  /** At most, after a kill. */
  owed: number;
  edits: number;
  /** While a flush hung: how many were answered, the slowest of them, and how long the hard limit let wait, ms. */
  hang: { answered: number; slowest: number; waited: number };
  seconds: number;
}

interface Mood {
  flush: 'works' | 'refused' | 'fails' | 'hangs';
  summary: 'works' | 'refused';
  turn: 'works' | 'refused';
  usage: 'honest' | 'none' | 'one' | 'million';
}

const WELL: Mood = { flush: 'works', summary: 'works', turn: 'works', usage: 'honest' };
const CONTEXT_TOKENS = 24_000;
const ANSWER_TOKENS = 1_000;
/** It is not asked again for this, so that nobody has to wait. */
const REFUSAL: ModelScript = { status: 500, headers: { 'x-should-retry': 'false' } };
const CHAT = `telegram_${ANNA.id}`;
/** Where an aim is not reached with so many messages, the process is ended all the same. */
const MOST_PER_LIFE = 60;
/** A turn that has seen the process end five times is given up; these are no ends of its making. */
const MOST_AT_ONCE = 3;

const WORDS = [
  'and a <b>tag</b> & an &amp; entity',
  '"quoted", with a \\ backslash',
  'over\n\ntwo paragraphs',
  'with ```a fence',
  'مرحبا and 小月 and 😀',
  '- a list\n- of two',
  '# no heading',
  'plain',
];

export async function soak(plan: SoakPlan): Promise<SoakReport> {
  const begun = Date.now();
  const { seed, compactAfter, keepRecent } = plan;
  const random = generator(seed);
  const pick = <One>(of: readonly One[]): One => of[Math.floor(random() * of.length)] as One;
  const on = await stage({
    config: {
      log: { level: 'info', format: 'json' },
      model: { context_tokens: CONTEXT_TOKENS, max_output_tokens: ANSWER_TOKENS, timeout_seconds: 120 },
      conversation: { compact_after_messages: compactAfter, keep_recent_messages: keepRecent },
    },
  });
  const folder = join(on.home.folder, 'groups', CHAT);
  const ledger = createLedger({ id: CHAT, folder, why: `seed ${seed}` });
  const kills = Object.fromEntries(AIMS.map((aim) => [aim, 0])) as Record<Aim, number>;
  const saidAt = new Map<number, number>();
  const byHand: string[] = [];
  let mood: Mood = WELL;
  let said = 0;
  let copies = 0;
  let owed = 0;
  let strangers = 0;
  let atOnce = 0;
  let gateway: Running | null = null;
  let dead = true;
  /** Called with what happens, as the model and the disk see it, while a kill is aimed. */
  let notice: (event: Aim) => void = () => {};
  let letGo: () => void = () => {};
  let held: Promise<void> | null = null;

  // ── The model ────────────────────────────────────────────────────────────────────────────────────────────

  on.model.reply(async (body) => {
    const request = on.model.requests.at(-1);
    const entry = request ? ledger.open(body, request) : null;
    // Of chats that are only here to be answered meanwhile.
    if (!entry) return { text: 'yes' };
    const answer = await answerTo(entry);
    entry.answer = answer;
    return { ...answer, ...usage() };
  });

  function usage(): Pick<ModelScript, 'usage'> {
    if (mood.usage === 'honest') return {};
    if (mood.usage === 'none') return { usage: null };
    return { usage: { prompt_tokens: mood.usage === 'one' ? 1 : 1_000_000, completion_tokens: 1 } };
  }

  async function answerTo({ kind, body }: Entry): Promise<ModelScript> {
    if (kind === 'turn') return mood.turn === 'refused' ? REFUSAL : turnAnswer(body);
    if (kind === 'summary') {
      notice('summary');
      await pause(random() * 30);
      if (mood.summary === 'refused') return REFUSAL;
      return { text: `## Facts\n- summary ${ledger.entries.length}` };
    }
    notice('flush');
    if (mood.flush === 'refused') return REFUSAL;
    if (mood.flush === 'fails') return { status: 500 };
    if (mood.flush === 'hangs') {
      held ??= new Promise((resolve) => {
        letGo = resolve;
      });
      await held;
    } else await pause(random() * 30);
    return flushAnswer(body);
  }

  /** Some turns use a tool, the same ones whenever they are made again. */
  function turnAnswer(body: ChatBody): ModelScript {
    const text = ledger.replyTo(body);
    const number = Number(/\d+/.exec(text)?.[0]);
    if (number % 11 !== 0 || body.messages.at(-1)?.role === 'tool') return { text };
    return { calls: [daily(`m${number} was said`)] };
  }

  function flushAnswer({ messages }: ChatBody): ModelScript {
    const answered = messages.slice(flushAt(messages) + 1);
    const rounds = answered.filter(({ role }) => role === 'assistant').length;
    const merge = answered
      .findLast(({ role }) => role !== 'assistant')
      ?.content?.includes('Merge your change');
    if (rounds > 0 && !merge) {
      notice('between');
      return { text: 'done' };
    }
    const newest = messages
      .flatMap(({ content }) => content?.match(/>m\d+/g) ?? [])
      .at(-1)
      ?.slice(1);
    if (rounds === 0 && random() < 0.1) {
      notice('between');
      return { text: 'colourless green ideas' };
    }
    notice('calls');
    // What a person has written into the tier stays in it.
    const kept = new Set(JSON.stringify(messages).match(/- by hand \d+/g));
    const tier3 = [...kept, `- last heard ${newest}`].join('\n');
    const other = random() < 0.1 ? [{ name: 'shell', arguments: { command: 'ls' } }] : [];
    return {
      calls: [
        ...(merge ? [] : [daily(`flushed up to ${newest}`)]),
        ...other,
        { name: 'write_tiered_memory', arguments: { tier: 3, content: tier3 } },
      ],
    };
  }

  const daily = (content: string) => ({ name: 'write_memory', arguments: { scope: 'chat_daily', content } });

  // ── The person, and the operator ─────────────────────────────────────────────────────────────────────────

  const sent = () => on.sentTo(ANNA.id);
  const isAnswered = (number: number) =>
    sent().some((text) => new RegExp(`^re[ m\\d]* m${number}\\b`).test(text));

  function say(more = ''): number {
    said++;
    saidAt.set(said, Date.now());
    on.telegram.say({ text: ledger.say(said, `${pick(WORDS)}${more}`) });
    return said;
  }

  async function answered(number: number): Promise<void> {
    await eventually(
      () => dead || isAnswered(number),
      `an answer to m${number} (seed ${seed})`,
      90_000,
    ).catch((error) => {
      throw new Error(`${(error as Error).message}\n${gateway?.err().slice(-6_000)}`);
    });
  }

  /** Says so many, some together, each after the answer to those before. */
  async function talk(count: number): Promise<void> {
    for (let left = count; left > 0 && !dead; ) {
      const together = Math.min(left, random() < 0.8 ? 1 : 3);
      for (let n = 0; n < together; n++) say();
      left -= together;
      await answered(said);
    }
  }

  async function askForCopy(): Promise<void> {
    const before = sent().filter((text) => text.startsWith('Copied')).length;
    on.telegram.say({ text: '/archive' });
    await eventually(
      () => dead || sent().filter((text) => text.startsWith('Copied')).length > before,
      'a copy of the conversation',
    );
    copies++;
  }

  /** As an editor does it: a whole new file in the place of the old one. */
  async function editByHand(): Promise<void> {
    const path = join(folder, 'default/MEMORY.md');
    const text = await readFile(path, 'utf8').catch(() => '');
    const heading = pick(['## Tier 1 — Long term\n', '## Tier 3 — Short term\n']);
    if (!text.includes(heading)) return;
    const line = `- by hand ${byHand.length}`;
    byHand.push(line);
    const lines = text.replace(heading, `${heading}\n${line}`);
    await writeFile(join(folder, 'edited'), lines);
    await rename(join(folder, 'edited'), path);
  }

  async function strangerIsAnswered(): Promise<void> {
    const from = { id: 800_000 + strangers++, first_name: 'Somebody' };
    on.telegram.say({ from, text: 'and me?' });
    await on.replies(from.id, 1);
  }

  // ── The process ──────────────────────────────────────────────────────────────────────────────────────────

  function launch(): Running {
    dead = false;
    gateway = on.launch();
    return gateway;
  }

  async function kill(): Promise<void> {
    dead = true;
    notice = () => {};
    await gateway?.stop('SIGKILL');
    // What was under way is seen to be cut off.
    await pause(30);
    letGo();
    held = null;
    await settle(false);
  }

  async function settle(all: boolean) {
    const account = await ledger.account(sent(), all);
    owed = Math.max(owed, account.owed);
    return account;
  }

  /** A life of the process, which ends where it is aimed. */
  async function dieAt(aim: Aim): Promise<void> {
    let hit = false;
    let watcher: FSWatcher | null = null;
    launch();
    atOnce = atOnce < MOST_AT_ONCE && random() < 0.5 ? atOnce + 1 : 0;
    if (atOnce === 0) await talk(1);
    const reached = new Promise<void>((resolve) => {
      const seen = (event: Aim) => {
        if (event !== aim || hit) return;
        hit = true;
        resolve();
      };
      notice = seen;
      if (aim === 'archive') {
        mood = { ...mood, flush: 'refused' };
        watcher = watch(join(folder, 'archive'), (_, name) => {
          if (name?.endsWith('.tmp')) seen('archive');
        });
      }
      if (aim === 'anywhere') setTimeout(() => seen('anywhere'), 400 + random() * 800);
    });
    const talking = talk(MOST_PER_LIFE);
    await Promise.race([reached, talking]);
    const within = { flush: 40, calls: 20, between: 15, summary: 40, archive: 3, anywhere: 0 }[aim];
    if (hit) await pause(random() * within);
    (watcher as FSWatcher | null)?.close();
    // Where all was said before its time came, that is anywhere, too.
    if (hit || aim === 'anywhere') kills[aim]++;
    await kill();
    await talking;
    mood = { ...mood, flush: 'works' };
  }

  // ── Phases ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Flushes fail until an archive holds what no flush has seen. */
  async function flushesRefused(how: 'refused' | 'fails'): Promise<void> {
    launch();
    mood = { ...WELL, flush: how };
    const made = async () => (await ledger.archives()).filter(({ copy }) => !copy).length;
    const before = await made();
    await talk(compactAfter);
    // What is owed is tried again first; the next message after that finds the window full.
    for (let n = 0; (await made()) === before; n++) {
      expect(n, `an archive while flushes fail (seed ${seed})`).toBeLessThan(MOST_PER_LIFE);
      await talk(1);
      await pause(how === 'fails' ? 500 : 20);
    }
    await talk(2);
    await kill();
    mood = WELL;
  }

  async function modelIsDown(): Promise<void> {
    mood = { ...WELL, flush: 'refused', summary: 'refused', turn: 'refused' };
    for (let n = 0; n < 2; n++) {
      const before = sent().length;
      say();
      await on.replies(ANNA.id, before + 1);
    }
    mood = WELL;
  }

  /** A flush hangs: everybody is answered all the same, until the next request would not fit. */
  async function flushHangs(): Promise<SoakReport['hang']> {
    launch();
    mood = { ...WELL, flush: 'hangs' };
    const first = said + 1;
    while (!held) await talk(1);
    const sizeOf = (chars: number) => {
      const last = ledger.entries.findLast(({ kind }) => kind === 'turn');
      const there = last?.body.messages.reduce((sum, { content }) => sum + (content?.length ?? 0), 0) ?? 0;
      return (there + chars) / 4 / (CONTEXT_TOKENS - ANSWER_TOKENS);
    };
    while (sizeOf(8_000) < 0.8) {
      say(' long'.repeat(1_600));
      await answered(said);
    }
    await strangerIsAnswered();
    const slowest = latencies(first, said);
    // Not until here is there a turn that has to wait.
    const waiting = say(' longer'.repeat(5_000));
    await strangerIsAnswered();
    await pause(plan.patient ? 2_000 : 200);
    expect(isAnswered(waiting), `no turn beyond the hard limit (seed ${seed})`).toBe(false);
    const hangs = ledger.entries.findLast(({ kind }) => kind === 'flush');
    if (!plan.patient) letGo();
    await answered(waiting);
    const waited = latencies(waiting, waiting);
    if (plan.patient) {
      expect(hangs?.request.abandoned, `the flush was given up (seed ${seed})`).toBe(true);
      expect(waited, `a wait at the hard limit (seed ${seed})`).toBeLessThan(70_000);
    }
    const report = { answered: waiting - first, slowest, waited };
    letGo();
    held = null;
    mood = WELL;
    await talk(2);
    await kill();
    return report;
  }

  function latencies(from: number, to: number): number {
    const all = [];
    for (let number = from; number <= to; number++) {
      const reply = on.telegram.sent.find(
        ({ chatId, text }) => chatId === ANNA.id && new RegExp(`^re[ m\\d]* m${number}\\b`).test(text),
      );
      all.push((reply?.at ?? Number.POSITIVE_INFINITY) - (saidAt.get(number) ?? 0));
    }
    return Math.max(...all);
  }

  // ── The whole ────────────────────────────────────────────────────────────────────────────────────────────

  try {
    // Watched before there is any archive.
    await mkdir(join(folder, 'archive'), { recursive: true });
    launch();
    await talk(3);
    await editByHand();
    await askForCopy();
    await talk(compactAfter / 2);
    await kill();

    for (let n = 0; n < plan.kills; n++) {
      for (const aim of AIMS) {
        mood = {
          ...WELL,
          usage: pick(['honest', 'honest', 'none', 'one', 'million']),
          summary: random() < 0.15 ? 'refused' : 'works',
        };
        const soon = setTimeout(() => void (dead ? null : editByHand()), 300 + random() * 500);
        await dieAt(aim);
        clearTimeout(soon);
      }
    }
    await flushesRefused('refused');
    if (plan.patient) await flushesRefused('fails');
    const hang = await flushHangs();
    launch();
    for (const usage of ['million', 'none', 'one'] as const) {
      mood = { ...WELL, usage };
      await talk(compactAfter);
      await askForCopy();
    }
    await modelIsDown();
    await kill();
    launch();
    while (said < plan.messages - 3) {
      await talk(Math.min(40, plan.messages - 3 - said));
      if (random() < 0.2) await askForCopy();
      if (random() < 0.2) await editByHand();
    }
    await kill();

    const last = launch();
    await last.saw('coterie is up');
    await talk(2);
    await eventually(
      async () => (await ledger.archives()).every(({ flushed }) => flushed),
      `every archive is flushed (seed ${seed})`,
      90_000,
    );
    await talk(1);
    const account = await settle(true);
    expect(account.owed).toBe(0);
    expect(await last.stop()).toBe(0);
    await checkFiles();
    checkReplies();
    const flushes = ledger.entries.filter(({ kind }) => kind === 'flush');
    const finished = flushes.filter(
      ({ answer, request }) => answer?.text !== undefined && request.answeredAt !== null,
    );
    const report: SoakReport = {
      ...{ seed, messages: said, replies: sent().filter((text) => text.startsWith('re m')).length },
      ...{ moves: ledger.moves(), kills },
      flushes: { finished: finished.length, others: flushes.length - finished.length },
      summaries: ledger.entries.filter(({ kind }) => kind === 'summary').length,
      archives: (await ledger.archives()).filter(({ copy }) => !copy).length,
      ...{ copies, owed, edits: byHand.length, hang },
      seconds: Math.round((Date.now() - begun) / 1000),
    };
    process.stdout.write(`soak: ${JSON.stringify(report)}\n`);
    return report;
  } finally {
    letGo();
    await on.close();
  }

  function checkReplies(): void {
    const first: number[] = [];
    for (const text of sent()) {
      const numbers = /^re((?: m\d+)+)/.exec(text)?.[1]?.match(/\d+/g)?.map(Number) ?? [];
      first.push(...numbers.filter((number) => !first.includes(number)));
    }
    expect(first, `the replies are in order (seed ${seed})`).toEqual(first.toSorted((a, b) => a - b));
    const refused = ledger.entries.filter(
      ({ kind, answer }) => kind === 'turn' && answer?.status !== undefined,
    );
    const told = new Set(refused.flatMap(({ body }) => JSON.stringify(body).match(/>m\d+/g) ?? []));
    const silent = [...saidAt.keys()].filter((number) => !first.includes(number) && !told.has(`>m${number}`));
    expect(silent, `messages that nobody answered (seed ${seed})`).toEqual([]);
  }

  /** What was saved is there, once; what a person wrote, too; nothing is left lying about. */
  async function checkFiles(): Promise<void> {
    const memory = await readFile(join(folder, 'default/MEMORY.md'), 'utf8');
    for (const line of byHand) expect(memory.split('\n'), `seed ${seed}`).toContain(line);
    const lines: string[] = [];
    for (const name of await readdir(join(folder, 'memory'))) {
      if (name.endsWith('.md'))
        lines.push(...(await readFile(join(folder, 'memory', name), 'utf8')).trim().split('\n'));
    }
    expect(lines.length, `no line of the daily log twice (seed ${seed})`).toBe(new Set(lines).size);
    for (const { kind, body } of ledger.entries) {
      if (kind !== 'flush') continue;
      for (const { content } of body.messages.slice(flushAt(body.messages) + 1)) {
        const line = /(?:Added to the daily log of \S+: |stands there as )(flushed up to m\d+)/.exec(
          content ?? '',
        )?.[1];
        if (line) expect(lines, `seed ${seed}`).toContain(line);
      }
    }
    const leftOver = (await readdir(join(folder, 'archive'))).filter((name) => !name.endsWith('.md'));
    expect(leftOver, `half archives (seed ${seed})`).toEqual([]);
  }
}
