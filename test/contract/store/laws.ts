/** The store's contract as laws: whatever happens in whatever order, no message is lost or answered twice. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Store } from '../../../src/core/store.js';
import type { StoreUnderTest } from '../store.js';
import {
  begin,
  CHAT,
  command,
  finish,
  lease,
  message,
  NOW,
  receive,
  recovered,
  type Taken,
  take,
} from './words.js';

/** What the world knows of one message. */
type Fate = 'waiting' | 'answered' | 'forgotten';

type Move =
  | { kind: 'receive'; count: number }
  | { kind: 'receive again' }
  | { kind: 'claim' }
  | { kind: 'begin'; noted: number }
  | { kind: 'fault' }
  | { kind: 'crash' }
  | { kind: 'finish' }
  | { kind: 'stop' }
  | { kind: 'stop late' }
  | { kind: 'reset' };

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('receive' as const), count: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('claim' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('begin' as const), noted: fc.integer({ min: 0, max: 2 }) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('finish' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'receive again' as const,
        'fault' as const,
        'crash' as const,
        'stop' as const,
        'stop late' as const,
        'reset' as const,
      ),
    }),
  },
);

/** Plays moves against the store as the route would, and keeps its own account of every message. */
class World {
  readonly fates = new Map<string, Fate>();
  /** How often a message was in a turn that finished. */
  readonly answers = new Map<string, number>();
  private claim: Taken | null = null;
  private turn: { id: string; texts: string[] } | null = null;
  /** The turn that ended last. */
  private ended = 'none yet';
  private next = 0;

  constructor(private readonly store: Store) {}

  async play(move: Move): Promise<void> {
    switch (move.kind) {
      case 'receive': {
        const texts = Array.from({ length: move.count }, () => `m${this.next++}`);
        await receive(
          this.store,
          texts.map((text) => message(text, text)),
        );
        for (const text of texts) this.fates.set(text, 'waiting');
        return;
      }
      case 'receive again': {
        const receipts = [...this.fates.keys()].map((text) => message(text, text));
        expect((await receive(this.store, receipts)).duplicates).toBe(receipts.length);
        return;
      }
      case 'claim': {
        const claim = await take(this.store);
        const open = this.turn !== null || [...this.fates.values()].includes('waiting');
        expect(claim !== null, 'a room is claimed when something waits in it').toBe(open);
        this.claim = claim;
        expect(claim?.turn?.id).toBe(this.turn?.id);
        expect(claim?.batch.map(({ text }) => text) ?? []).toEqual(this.turn?.texts ?? []);
        return;
      }
      case 'begin':
        return this.begin(move.noted);
      case 'finish': {
        if (!this.claim || !this.turn) return;
        expect(await finish(this.store, this.claim, this.turn.id)).toBe('finished');
        for (const text of this.turn.texts) {
          this.fates.set(text, 'answered');
          this.answers.set(text, (this.answers.get(text) ?? 0) + 1);
        }
        this.endTurn();
        this.claim = null;
        return;
      }
      case 'fault':
        if (this.claim && this.turn) await this.store.fail(this.claim.claim, this.turn.id);
        else if (this.claim) await this.store.hold(this.claim.claim, null);
        this.claim = null;
        return;
      case 'crash': {
        const { rooms } = await recovered(this.store);
        const open = this.turn !== null || [...this.fates.values()].includes('waiting');
        expect(rooms).toEqual(open ? [CHAT] : []);
        this.claim = null;
        return;
      }
      case 'stop':
      case 'stop late':
      case 'reset':
        return this.order(move.kind);
    }
  }

  private async begin(noted: number): Promise<void> {
    if (!this.claim || this.turn) return;
    const { waiting } = this.claim;
    const aside = waiting.slice(0, Math.min(noted, waiting.length - 1));
    const batch = waiting.slice(aside.length);
    const id = `t${this.next++}`;
    const ids = aside.map((said) => said.id);
    this.claim = await begin(this.store, this.claim, id, { noted: ids, hearers: ['default'] });
    expect(this.claim?.batch.map((said) => said.id)).toEqual(batch.map((said) => said.id));
    for (const { text } of aside) this.fates.set(text, 'answered');
    this.turn = { id, texts: batch.map(({ text }) => text) };
  }

  /** A late stop means a turn that is over: it stops nothing. */
  private async order(kind: 'stop' | 'stop late' | 'reset'): Promise<void> {
    const { commands } = await receive(this.store, [command(`c${this.next++}`, kind)]);
    const stored = await this.store.takeCommand(commands[0]?.id ?? 0, lease());
    const { abortedTurn } = await this.store.finishCommand({
      id: stored?.id ?? 0,
      now: NOW,
      deliveries: [],
      effects: [
        kind === 'reset'
          ? { kind, room: CHAT, personaId: 'default', upTo: stored?.afterMessage ?? 0 }
          : { kind: 'stop', room: CHAT, turnId: (kind === 'stop' && this.turn?.id) || this.ended },
      ],
    });
    if (kind === 'stop late') {
      expect(abortedTurn).toBeNull();
      return;
    }
    expect(abortedTurn).toBe(this.turn?.id ?? null);
    if (this.turn || kind === 'reset') this.claim = null;
    for (const text of this.turn?.texts ?? []) this.fates.set(text, 'answered');
    this.endTurn();
    if (kind === 'reset') for (const text of this.fates.keys()) this.fates.set(text, 'forgotten');
  }

  private endTurn(): void {
    this.ended = this.turn?.id ?? this.ended;
    this.turn = null;
  }

  /** In the end everything that was not forgotten stands in the window once, and waits once or not at all. */
  async check(): Promise<void> {
    const claim = await take(this.store);
    if (claim?.turn) await finish(this.store, claim, claim.turn.id, { reply: null });
    if (claim?.turn) for (const { text } of claim.batch) this.fates.set(text, 'answered');
    const rest = claim?.turn ? await take(this.store) : claim;
    expect(rest?.waiting.map(({ text }) => text) ?? []).toEqual(this.all('waiting'));
    const ask = { room: CHAT, personaId: 'default', limit: 10_000, overheard: 10_000, except: [] };
    const { messages } = await this.store.window(ask);
    const heard = messages.filter(({ author }) => author.kind === 'person').map(({ text }) => text);
    expect(heard).toEqual(this.all('answered'));
    for (const [text, times] of this.answers) expect(times, `${text} was answered`).toBe(1);
  }

  private all(fate: Fate): string[] {
    return [...this.fates].filter(([, is]) => is === fate).map(([text]) => text);
  }
}

export function lawContract(under: StoreUnderTest): void {
  it('loses and doubles no message, whatever happens in whatever order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(move, { minLength: 5, maxLength: 40 }), (moves) =>
        under.withFresh(async ({ store }) => {
          const world = new World(store);
          for (const one of moves) await world.play(one);
          await world.check();
        }),
      ),
      { numRuns: 40 },
    );
  });
}
