/**
 * The store's contract as a law: whatever happens in whatever order, a message that was said to a persona is in
 * its window, or was seen by a flush that finished, or stands in an archive of which a flush is owed.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { phraseOf } from '../../../src/core/phrase.js';
import type { Store } from '../../../src/core/store.js';
import type { Position, ViewRecord } from '../../../src/core/transcript.js';
import type { StoreUnderTest } from '../store.js';
import {
  begin,
  CHAT,
  command,
  END,
  finish,
  lease,
  looked,
  message,
  NOW,
  note,
  receive,
  type Taken,
} from './words.js';

const PERSONAS = ['default', 'luna'] as const;
type Who = (typeof PERSONAS)[number];

type Move =
  | { kind: 'begin'; who: Who; count: number; noted: number }
  | { kind: 'finish'; silent: boolean }
  | { kind: 'overhear'; count: number }
  | { kind: 'look'; who: Who }
  | { kind: 'flush'; who: Who; most: number; late: boolean }
  | { kind: 'move'; who: Who; share: number; late: boolean }
  | { kind: 'archive'; who: Who; share: number; crash: boolean; late: boolean }
  | { kind: 'make up' }
  | { kind: 'order reset'; who: Who }
  | { kind: 'reset' };

const who = fc.constantFrom(...PERSONAS);
const few = fc.integer({ min: 1, max: 3 });
const share = fc.double({ min: 0, max: 1, noNaN: true });
const late = fc.boolean();
const kind = <K extends Move['kind']>(name: K) => fc.constant(name);

const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: kind('begin'), who, count: few, noted: fc.nat(2) }) },
  { weight: 6, arbitrary: fc.record({ kind: kind('finish'), silent: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('overhear'), count: few }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('look'), who }) },
  { weight: 4, arbitrary: fc.record({ kind: kind('flush'), who, most: few, late }) },
  { weight: 4, arbitrary: fc.record({ kind: kind('move'), who, share, late }) },
  { weight: 4, arbitrary: fc.record({ kind: kind('archive'), who, share, crash: fc.boolean(), late }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('make up') }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('order reset'), who }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('reset') }) },
);

/** What the world knows of one persona's view, without asking the store where anything is. */
class Account {
  /** What was said to it, or by it: the text, and the first message of the turn it belongs to. */
  readonly said = new Map<string, { id: number; turnBegan: number }>();
  /** What finished flushes were shown. */
  readonly flushed = new Set<string>();
  /** What archive files hold, by name. */
  readonly files = new Map<string, string[]>();
  /** The view as somebody has seen it, who may come late with it. */
  seen: ViewRecord | null = null;
}

/** Plays moves as the route and the compaction would make them, with a second one that comes too late. */
class World {
  readonly accounts: Record<Who, Account> = { default: new Account(), luna: new Account() };
  private turn: { claim: Taken; id: string; who: Who; batch: { id: number; text: string }[] } | null = null;
  private orders: { id: number; who: Who; upTo: number }[] = [];
  private next = 0;

  constructor(private readonly store: Store) {}

  async play(move: Move): Promise<void> {
    switch (move.kind) {
      case 'begin':
        return this.begin(move);
      case 'finish':
        return this.finish(move.silent);
      case 'overhear':
        return this.overhear(move.count);
      case 'look':
        this.accounts[move.who].seen = await this.store.view(CHAT, move.who);
        return;
      case 'flush':
        return this.flush(move.who, move.most, await this.viewOf(move));
      case 'move':
        return this.moveFlushed(move.who, move.share, await this.viewOf(move));
      case 'archive':
        return this.archive(move, await this.viewOf(move));
      case 'make up':
        return this.makeUp();
      case 'order reset':
        return this.order(move.who);
      case 'reset':
        return this.reset();
    }
  }

  private async viewOf({ who, late }: { who: Who; late: boolean }): Promise<ViewRecord> {
    const { seen } = this.accounts[who];
    return late && seen ? seen : this.store.view(CHAT, who);
  }

  private async say(count: number): Promise<void> {
    const texts = Array.from({ length: count }, () => `w${this.next++}w`);
    await receive(
      this.store,
      texts.map((text) => message(text, text)),
    );
  }

  private async begin(move: { who: Who; count: number; noted: number }): Promise<void> {
    if (this.turn) return;
    await this.say(move.count);
    const claim = await looked(this.store);
    const noted = claim.waiting.slice(0, Math.min(move.noted, claim.waiting.length - 1));
    const batch = claim.waiting.slice(noted.length);
    const id = `t${this.next++}`;
    const taken = await begin(this.store, claim, id, {
      personaId: move.who,
      noted: noted.map((said) => said.id),
      hearers: [...PERSONAS],
    });
    if (taken === null) return expect.fail('the room was taken');
    const turnBegan = batch[0]?.id ?? 0;
    for (const said of batch) this.accounts[move.who].said.set(said.text, { id: said.id, turnBegan });
    this.turn = { claim: taken, id, who: move.who, batch };
  }

  private async finish(silent: boolean): Promise<void> {
    const { turn } = this;
    if (!turn) return;
    this.turn = null;
    const reply = silent ? null : `w${this.next++}w`;
    const outcome = silent ? ('failed' as const) : ('answered' as const);
    expect(await finish(this.store, turn.claim, turn.id, { outcome, reply, hearers: [...PERSONAS] })).toBe(
      'finished',
    );
    if (reply === null) return;
    const turnBegan = turn.batch[0]?.id ?? 0;
    this.accounts[turn.who].said.set(reply, { id: Number.MAX_SAFE_INTEGER, turnBegan });
  }

  private async overhear(count: number): Promise<void> {
    if (this.turn) return;
    await this.say(count);
    expect(await note(this.store, await looked(this.store), { hearers: [...PERSONAS] })).toBe(true);
  }

  /** Everything of a view behind a position, in pages. */
  private async read(
    who: Who,
    after: Position,
    upTo: Position,
  ): Promise<{ text: string; position: Position }[]> {
    const all: { text: string; position: Position }[] = [];
    for (let from = after; ; ) {
      const ask = { room: CHAT, personaId: who, after: from, upTo, limit: 3, overheard: 2 };
      const { messages, more } = await this.store.span(ask);
      all.push(...messages);
      const last = messages.at(-1);
      if (!more || !last) return all;
      from = last.position;
    }
  }

  private async flush(who: Who, most: number, view: ViewRecord): Promise<void> {
    const shown = (await this.read(who, view.flushedTo, END)).slice(0, most);
    const to = shown.at(-1)?.position;
    if (!to || !(await this.store.commitFlush({ view, to, usage: null, now: NOW }))) return;
    for (const { text } of shown) this.accounts[who].flushed.add(text);
  }

  /** A position somewhere in the window. */
  private async placeIn(who: Who, view: ViewRecord, share: number): Promise<Position | undefined> {
    const lines = await this.read(who, view.windowAfter, END);
    return lines[Math.floor(share * (lines.length - 1))]?.position;
  }

  private async moveFlushed(who: Who, share: number, view: ViewRecord): Promise<void> {
    const to = await this.placeIn(who, view, share);
    if (!to) return;
    // Where no flush has been, the store says no.
    await this.store
      .moveWindow({ view, to, summary: 's', archive: null, usage: null, now: NOW })
      .catch((error) => expect(error).toMatchObject({ code: 'internal' }));
  }

  private async archive(
    { who, share, crash }: { who: Who; share: number; crash: boolean },
    view: ViewRecord,
  ): Promise<void> {
    const to = await this.placeIn(who, view, share);
    if (!to) return;
    const file = `${this.next++}.md`;
    const after = view.windowAfter;
    await this.store.noteArchive({
      chatId: CHAT,
      room: CHAT,
      personaId: who,
      file,
      after,
      to,
      state: 'writing',
    });
    const lines = await this.read(who, after, to);
    if (crash) return;
    const common = { view, to, summary: null, usage: null, now: NOW };
    const moved = await this.store.moveWindow({ ...common, archive: file });
    const texts = lines.map(({ text }) => text);
    if (moved) this.accounts[who].files.set(file, texts);
    else await this.store.noteArchive({ chatId: CHAT, file: file, state: 'dropped' });
  }

  /** What a gateway does when it starts: half archives go, and the oldest flush that is owed is made. */
  private async makeUp(): Promise<void> {
    const open = await this.store.openArchives({ channels: ['test'] });
    for (const { state, file } of open) {
      if (state === 'writing') await this.store.noteArchive({ chatId: CHAT, file: file, state: 'dropped' });
    }
    const [owed] = open.filter(({ state }) => state === 'unflushed');
    if (!owed) return;
    const who = owed.personaId as Who;
    const view = await this.store.view(CHAT, who);
    const shown = await this.read(who, view.flushedTo, owed.to);
    await this.store.commitFlush({ view, to: owed.to, usage: null, now: NOW });
    for (const { text } of shown) this.accounts[who].flushed.add(text);
    await this.store.noteArchive({ chatId: CHAT, file: owed.file, state: 'settled' });
  }

  /** The word comes in now, and takes effect later. */
  private async order(who: Who): Promise<void> {
    const { commands } = await receive(this.store, [command(`c${this.next++}`, 'reset')]);
    const stored = await this.store.takeCommand(commands[0]?.id ?? 0, lease());
    if (stored) this.orders.push({ id: stored.id, who, upTo: stored.afterMessage });
  }

  private async reset(): Promise<void> {
    const order = this.orders.shift();
    if (!order) return;
    const { id, who, upTo } = order;
    const effect = { kind: 'reset' as const, room: CHAT, personaId: who, upTo };
    const { abortedTurn } = await this.store.finishCommand({
      id,
      now: NOW,
      deliveries: [],
      effects: [effect],
    });
    const account = this.accounts[who];
    if (abortedTurn !== null) {
      expect(abortedTurn).toBe(this.turn?.id);
      for (const said of this.turn?.batch ?? []) account.said.delete(said.text);
      this.turn = null;
    }
    for (const [text, said] of account.said) {
      const isReply = said.id === Number.MAX_SAFE_INTEGER;
      if (isReply ? said.turnBegan <= upTo : said.id <= upTo) account.said.delete(text);
    }
  }

  async check(): Promise<void> {
    const owed = (await this.store.openArchives({ channels: ['test'] })).filter(
      ({ state }) => state === 'unflushed',
    );
    const total = { window: 0, flushed: 0, archived: 0 };
    for (const personaId of PERSONAS) {
      const { said, flushed, files } = this.accounts[personaId];
      const ask = { room: CHAT, personaId, limit: 10_000, overheard: 10_000, except: [] };
      const window = (await this.store.window(ask)).messages.map(({ text }) => text);
      expect(new Set(window).size, 'each once').toBe(window.length);
      const kept = new Set([
        ...window,
        ...flushed,
        ...owed.filter((span) => span.personaId === personaId).flatMap(({ file }) => files.get(file) ?? []),
      ]);
      expect(
        [...said.keys()].filter((text) => !kept.has(text)),
        `lost for ${personaId}`,
      ).toEqual([]);

      const sums = { window: 0, flushed: 0, archived: 0 };
      for (const text of said.keys()) {
        const wanted = { phrase: phraseOf(text), personaId };
        const [trace] = await this.store.trace({ chatId: CHAT, wanted, most: 1 });
        const fate = trace?.fate ?? { kind: 'reset' };
        if (fate.kind === 'window') {
          expect(window).toContain(text);
          // It may have been seen before it was said to this persona: overheard, in a turn that a reset ended.
          if (fate.flushed) expect([...flushed]).toContain(text);
        } else if (fate.kind === 'flushed') {
          expect(window).not.toContain(text);
          expect([...flushed]).toContain(text);
        } else if (fate.kind === 'archived') {
          expect(files.get(fate.file)).toContain(text);
        } else {
          expect.fail(`${text} was said to ${personaId}, and is ${fate.kind}`);
        }
        sums[fate.kind]++;
        total[fate.kind]++;
      }
      expect(await this.store.whereabouts(CHAT, personaId)).toEqual(sums);
    }
    expect(await this.store.whereabouts(null, null)).toEqual(total);
  }
}

export function whereaboutsLaw(under: StoreUnderTest): void {
  it('knows of every message where it went, and lets none go unseen', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(move, { minLength: 5, maxLength: 60 }), (moves) =>
        under.withFresh(async ({ store }) => {
          const world = new World(store);
          for (const one of moves) await world.play(one);
          await world.check();
        }),
      ),
      { numRuns: 60 },
    );
  });
}
