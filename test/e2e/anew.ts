/** kill -9 at random moments while answers are said anew, in several chats at once, on any of the fake platforms. */
import { expect } from 'vitest';
import { eventually } from '../harness/gateway.js';
import type { Place, Platform } from '../harness/platform.js';
import { generator, pause } from '../harness/random.js';
import { stageOn } from '../harness/stage.js';

const CHATS = 8;
/** Of a model that nobody asks: then whatever the last process took up is said. */
const QUIET_MS = 3_000;

/** Afterwards each chat shows one version, which is the one in its history. */
export async function killWhileSaidAnew(
  platform: Platform,
  { kills, seed }: { kills: number; seed: number },
): Promise<void> {
  const random = generator(seed);
  const on = await stageOn(platform);
  try {
    let tries = 0;
    on.model.reply(async (body) => {
      await pause(random() * 100);
      const asked = JSON.stringify(body.messages.at(-1)?.content);
      return asked.includes('which') ? 'That one.' : `try ${++tries}.`;
    });
    const places = Array.from({ length: CHATS }, (_, n) => ({ kind: 'direct' as const, number: n + 1 }));
    const from = ({ number }: { number: number }) => ({ number, name: `Person ${number}` });
    const triesIn = (place: Place) =>
      platform.shown(place).flatMap(({ text }) => /^try \d+\./.exec(text)?.[0] ?? []);
    let gateway = await on.start();
    for (const place of places) platform.say({ from: from(place), in: place, text: 'hi' });
    await eventually(() => places.every((place) => triesIn(place).length === 1), 'all are answered');
    for (let kill = 0; kill < kills; kill++) {
      for (const place of places) platform.command(from(place), place, '/again');
      await pause(random() * 400);
      await gateway.stop('SIGKILL');
      gateway = await on.start();
    }
    for (let before = -1; before < tries; await pause(QUIET_MS)) before = tries;
    for (const place of places) {
      const question = `which one is it, ${place.number}?`;
      platform.say({ from: from(place), in: place, text: question });
      const isAnswered = () => platform.shown(place).some(({ text }) => text.startsWith('That one.'));
      await eventually(isAnswered, 'the next answer', 120_000);
      const asked = on.model.requests.map(({ body }) => JSON.stringify(body.messages));
      const told = asked.findLast((each) => each.includes(question)) ?? '';
      const known = Array.from(told.matchAll(/try \d+\./g), ([text]) => text);
      expect(triesIn(place), `shown to person ${place.number} (seed ${seed})`).toEqual(known);
      expect(known, `seed ${seed}`).toHaveLength(1);
    }
    await gateway.stop();
  } finally {
    await on.close();
  }
}
