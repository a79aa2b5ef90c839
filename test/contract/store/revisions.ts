/** The store's contract: when what somebody remembers of a room is void, and what of a window is new. */
import { describe, expect, it } from 'vitest';
import { phraseOf } from '../../../src/core/phrase.js';
import type { StoreUnderTest } from '../store.js';
import { oneView } from './one-view.js';
import {
  begun,
  CHAT,
  claimed,
  edit,
  exchange,
  finish,
  forget,
  looked,
  message,
  overhear,
  receive,
} from './words.js';

export function revisionContract(under: StoreUnderTest): void {
  /** Something waits, so that there is something to be seen. */
  async function waiting(): Promise<void> {
    await receive(under.store, [message('last', 'waits')]);
  }
  const revision = async () => (await looked(under.store)).revision;
  const ask = { room: CHAT, personaId: 'default', limit: 100, overheard: 100, except: [] };

  describe('the revision of a room', () => {
    it('stays while things are said, answered and overheard', async () => {
      await waiting();
      const before = await revision();
      await exchange(under.store, 't1', 'hi');
      await overhear(under.store, ['aside']);
      await receive(under.store, [message('x', 'more'), edit('x', 'and more')]);
      expect(await revision(), 'what waits has not been heard').toBe(before);
    });

    it('moves on with whatever changes what was heard', async () => {
      await exchange(under.store, 't1', 'my secret');
      await waiting();
      const seen = [await revision()];
      async function changed(): Promise<void> {
        const now = await revision();
        expect(seen).not.toContain(now);
        expect(now).toBeGreaterThan(seen.at(-1) ?? 0);
        seen.push(now);
      }
      await receive(under.store, [edit('in-t1', 'my great secret')]);
      await changed();
      const { flush, move, place } = oneView(under.store);
      await flush(await place('my great secret'));
      expect(await revision(), 'a flush moves no window').toBe(seen.at(-1));
      await move(await place('my great secret'));
      await changed();
      await under.store.eraseWords(CHAT, phraseOf('waits'), '…');
      await changed();
      const turn = await begun(under.store, 't2');
      const [id = 0] = turn.batch.map((said) => said.id);
      await under.store.keepFiles(turn.claim, { id, text: 'waits, with a file', attachments: [] });
      await finish(under.store, turn, 't2');
      await receive(under.store, [message('another', 'another')]);
      await changed();
      await begun(under.store, 't3');
      await receive(under.store, [message('later', 'later')]);
      await forget(under.store, { upTo: id });
      await changed();
    });

    it('is another for files of a message that was heard, and the same for one that waits', async () => {
      await waiting();
      const before = await revision();
      const preparing = await claimed(under.store);
      const [id = 0] = preparing.waiting.map((said) => said.id);
      await under.store.keepFiles(preparing.claim, { id, text: 'read', attachments: [] });
      expect(await revision()).toBe(before);
    });
  });

  describe('a window behind a position', () => {
    it('is only what was heard since, in the same order as the whole', async () => {
      await exchange(under.store, 't1', 'one');
      await overhear(under.store, ['aside']);
      const kept = (await under.store.window(ask)).messages;
      await exchange(under.store, 't2', 'two');
      await overhear(under.store, ['another aside']);
      const after = kept.at(-1)?.position;
      const added = await under.store.window({ ...ask, ...(after ? { after } : {}) });
      expect(added.messages.map(({ text }) => text)).toEqual(['two', 'reply of t2', 'another aside']);
      expect([...kept, ...added.messages]).toEqual((await under.store.window(ask)).messages);
      expect(added.view).toEqual((await under.store.window(ask)).view);
    });

    it('never begins before the window itself, and brings the steps of what is new', async () => {
      await exchange(under.store, 't1', 'one');
      await receive(under.store, [message('2', 'two')]);
      const turn = await begun(under.store, 't2');
      await under.store.addStep(turn.claim, 't2', { kind: 'call', callId: 'c' }, 0);
      await finish(under.store, turn, 't2');
      const [first] = (await under.store.window(ask)).messages;
      const { flush, move, place } = oneView(under.store);
      await flush(await place('two'));
      await move(await place('two'));
      const found = await under.store.window({ ...ask, ...(first ? { after: first.position } : {}) });
      expect(found.messages.map(({ text }) => text)).toEqual(['reply of t2']);
      expect(found.steps).toEqual(new Map([['t2', [{ kind: 'call', callId: 'c' }]]]));
    });
  });
}
