/** A search by meaning that takes too long is answered by words. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { SearchIndex } from '../../src/recall/search-index.js';
import { NOW, newFolder, ROOM, SCOPE } from './support.js';

it('goes by words when comparing takes too long, and by both when there is time again', async () => {
  const file = join(await newFolder(), 'recall.db');
  let now = 0;
  let perLook = 0;
  const index = new SearchIndex(
    file,
    'UTC',
    () => {},
    async () => {},
    () => (now += perLook),
  );
  const [view] = index.views([{ room: ROOM, scope: SCOPE, resetAt: 0 }]);
  const messages = Array.from({ length: 6_000 }, (_, n) => ({
    ...{ id: n + 1, heardAfter: n, at: n * 60_000, author: 'Ann', text: n === 7 ? 'the kitten' : `day ${n}` },
  }));
  const page = {
    scope: SCOPE,
    room: ROOM,
    resetAt: 0,
    addressed: true,
    after: view?.addressed ?? { heardAfter: 0, messageId: 0 },
  };
  index.addMessages({ ...page, messages });
  const value = (n: number) => Float32Array.from({ length: 8 }, (_, k) => Math.sin(n * 8 + k));
  index.addVectors(
    'model',
    index.withoutVector('model', 10_000).map(({ chunk }, n) => ({ chunk, value: value(n) })),
  );
  const search = () =>
    index.search(SCOPE, { text: 'kitten', limit: 3, now: NOW }, 3, [{ model: 'model', value: value(7) }]);
  perLook = 200;
  const late = search();
  expect([late.byVectors, late.ranked[0]]).toMatchObject([false, { kind: 'message', messageId: 8 }]);
  // What was read is kept, so that the next search is nearer to its end.
  perLook = 0;
  expect(search().byVectors).toBe(true);
  perLook = 700;
  expect(search().byVectors).toBe(false);
  index.close();
});
